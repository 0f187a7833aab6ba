/* order: the settings that say whose turn it is.
 *
 *   fair_share: {half_life: 7d, memory_per_cpu: 4G}
 *   accounts:
 *     physics: {shares: 60, users: [ann@local, "*@far.org"], accounts: {cms: {shares: 2}}}
 *   qos: {urgent: {priority: 1000, users: [ann@local], max_running: 10}}
 *   priority: {fair_share: 1, qos: 1, size: 0, age: 0, user: 0, credential: 1}
 *   credentials: {users: {ann@local: 5}, groups: {far.org: -2}, accounts: {physics: 10}, classes: {short: 3}}
 */
#pragma once
#include "base/format/doc.h"
#include "core/core.h"

struct config_users {
        char **v;
        size_t count;
};
struct config_order {
        struct config_account {
                char *group; /* "physics.cms" */
                double shares;
                struct config_users users;
        } * accounts;
        size_t account_count, account_cap;
        struct config_qos {
                char *name;
                double priority;
                int64_t max_running; /* -1: not set */
                struct config_users users;
        } * qos;
        size_t qos_count, qos_cap;
        struct config_credential {
                enum core_credential what;
                char *name;
                double points;
        } * credentials;
        size_t credential_count, credential_cap;
        struct share_config share;
        struct order_weights weights;
};

void config_order_deinit(struct config_order *o);
/* Read the settings into *at. Return 0; -EINVAL with err. */
int config_order_read_share(void *at, const struct doc *d, struct err *err);
int config_order_read_accounts(void *at, const struct doc *d, struct err *err);
int config_order_read_qos(void *at, const struct doc *d, struct err *err);
int config_order_read_credentials(void *at, const struct doc *d, struct err *err);
int config_order_read_weights(void *at, const struct doc *d, struct err *err);
/* sets the parts of the core's settings */
void config_order_config(const struct config_order *o, struct core_config *ret);
int config_order_apply(const struct config_order *o, struct core *c, struct err *err);
