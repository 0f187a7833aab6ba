/* qos: the configured qualities of service; for the files of core/ only.
 *
 * A job that asks for one (the attribute QOS) gets its priority as points in the order, and counts against
 * its own limit of running jobs, "qos/NAME".
 */
#pragma once
#include "base/str.h"
#include "classad/symbols.h"
#include "core/model/names.h"

struct qos {
        char *name;
        double priority;
        char **users; /* ann@local, *@local, *; empty: everybody may use it */
        size_t user_count;
};

/* Returns the quality of service that an ad asks for; NULL: none, or an unknown one. */
const struct qos *qos_of(struct core *c, const struct ad *ad);
/* Returns 0; or -EINVAL with err: the ad asks for an unknown one, or the owner may not use it. */
int qos_check(struct core *c, struct str owner, const struct ad *ad, struct err *err);
/* Returns the points for the owner, the accounting group and the class of a job with this ad, set by
 * core_credential_set. */
double credential_points(struct core *c, struct str owner, struct str group, const struct ad *ad);
/* Returns the attributes of an ad that its points depend on beside the accounting group: none, unless classes
 * have points. They are the core's. */
const symbol *credential_names(const struct core *c, size_t *count);
void qos_deinit(struct core *c);
