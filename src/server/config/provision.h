/* provision: the settings `provision` and `provisioners`: which programs start machines for the queue, of
 * which shapes, and how much may be spent. */
#pragma once
#include "base/format/doc.h"
#include "base/job/args.h"
#include "base/job/owners.h"

#define CONFIG_PROVISIONERS_MAX 16u
#define CONFIG_SHAPES_MAX       64u
#define CONFIG_PLAN_ACCOUNTS    64u

struct config_provisioner {
        char *name, *kind;
        struct args command;
        /* addresses of the server for its agents, separated by commas; NULL: the socket of this machine */
        char *addresses;
        char *owners, *tags, *labels; /* limits of its agents, as in tokens; NULL: none */
        uint32_t max;
        int64_t poll_ms, timeout_ms, boot_limit_ms, period_ms, idle_ms, stop_ms;
        /* pause before a shape that could not be started is tried again; it doubles each time */
        int64_t retry_ms;
};
struct config_shape {
        size_t provisioner;
        char *name;
        int64_t cpus, memory_mib, disk_kib, price_micro;
        uint32_t min, max;
        char *attributes; /* "Name = expression; ..."; NULL: none */
        char *with;       /* a JSON object */
};
struct config_provision {
        struct config_provisioner provisioners[CONFIG_PROVISIONERS_MAX];
        size_t provisioner_count;
        struct config_shape shapes[CONFIG_SHAPES_MAX];
        size_t shape_count;
        struct {
                char *name;
                uint32_t max;
        } accounts[CONFIG_PLAN_ACCOUNTS];
        size_t account_count;
        int64_t horizon_ms, wait_ms;
        uint32_t max;                    /* 0: no limit */
        int64_t hour_micro, month_micro; /* -1: no limit */
};
void config_provision_default(struct config_provision *c);
void config_provision_deinit(struct config_provision *c);
int config_provision_read(void *place, const struct doc *d, struct err *err);    /* reads `provision` */
int config_provisioners_read(void *place, const struct doc *d, struct err *err); /* reads `provisioners` */
