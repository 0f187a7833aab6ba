/* notify: the section "notify" of the settings: how users are notified about their jobs, and admins about
 * nodes. */
#pragma once
#include "notify/notify.h"

struct doc;
struct config_notify {
        struct notify_config out;
        char *domain;       /* domain of mail addresses without one; NULL: mail to local users */
        int64_t gather_ms;  /* events within this time share one notice */
        int64_t retry_ms;   /* the first pause after a failure; each later one is twice as long */
        int64_t give_up_ms; /* a notice that cannot be sent for this long is dropped */
        uint32_t per_hour;  /* notices to one user, and to all admins about nodes */
        /* mail addresses and URLs that are told of nodes that fail or drain themselves; NULL behind the last
         */
        char *nodes[NOTIFY_LIST_MAX + 1];
};
/* `place` is a struct config_notify, which is replaced. Returns 0, or -EINVAL with err that names file and
 * line. */
int config_notify_read(void *place, const struct doc *d, struct err *err);
void config_notify_default(struct config_notify *n);
void config_notify_deinit(struct config_notify *n);
