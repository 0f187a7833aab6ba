/* limits: the settings `limits` and `users`: how many units there are of what, and how much one user
 * may have.
 *
 *   limits: {sw: 5, large.*: 3, default: 10}
 *   users: {max_running: 100, max_queued: 10000, max_queued_bytes: 1G, max_spool: 20G, ann@local:
 * {max_running: 500}}
 */
#pragma once
#include "base/format/doc.h"
#include "core/accounts/limit.h"

#define CONFIG_QUEUED_DEFAULT 20000000

struct core;
struct config_limits {
        struct config_limit {
                /* in the form of core_limit_set: "sw", "large.*", "user/ann@local", "queued/…" */
                char *name;
                int64_t units;
        } * v;
        size_t count, cap;
        struct config_spool { /* max_spool, which holdings.h enforces, not the core */
                char *user;   /* "*": all other users */
                uint64_t bytes;
        } * spool;
        size_t spool_count, spool_cap;
};

void config_limits_deinit(struct config_limits *l);
/* Add the values of the two settings to *at. Return 0; -EINVAL with err. */
int config_limits_read(void *at, const struct doc *d, struct err *err);
int config_limits_read_users(void *at, const struct doc *d, struct err *err);
/* Sets the limits in the core. The default limit of what one user may keep in the queue is
 * CONFIG_QUEUED_DEFAULT jobs and a quarter of the machine's memory. */
void config_limits_apply(const struct config_limits *l, uint64_t memory_bytes, struct core *c);
