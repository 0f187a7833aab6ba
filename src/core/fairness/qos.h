/* qos: qualities of service, as the settings name them; for the files of core/ only.
 *
 * A job that asks for one (the attribute QOS) gets its priority as points in the order, and counts against
 * its own limit of running jobs, "qos/NAME".
 */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

struct qos {
        char *name;
        double priority;
        char **users; /* ann@local, *@local, *; none: everybody */
        size_t user_count;
};

/* The one that an ad asks for; NULL: none, or none that is there. */
const struct qos *qos_of(struct core *c, const struct ad *ad);
/* 0; -EINVAL with err: there is no such, or the owner may not use it. */
int qos_check(struct core *c, struct str owner, const struct ad *ad, struct err *err);
void qos_deinit(struct core *c);
