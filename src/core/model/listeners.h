/* listeners: calls from lower parts of the core to higher parts, whose headers they may not include. core.c
 * sets all of them.
 */
#pragma once
#include "core/model/names.h"

struct core_listeners {
        void (*agent_made)(struct core *c, struct core_agent *a); /* an agent was created */
        void (*class_ready)(struct core *c, struct job_class *k); /* a class without idle members got some */
        void (*class_gone)(struct core *c, struct job_class *k);  /* a class has no idle members any more */
        void (*bucket_gone)(struct core *c, const struct bucket *b);
        void (*request_gone)(struct core *c, const struct request *r); /* the request is out of all lists */
        void (*limit_grew)(struct core *c, struct limit *x);   /* classes that wait at it may find units */
        void (*rekeyed)(struct core *c);                       /* all jobs are put into new buckets */
        void (*matching)(struct core *c);                      /* offers are about to be matched */
        void (*event_before)(struct core *c, struct event *e); /* a live event is about to be applied */
        void (*event_after)(struct core *c,
                            const struct event *e); /* the event was applied, and the world was told */
        void (*attempt_began)(struct core *c, const struct job *j); /* the attempt is live or replayed */
        void (*job_started)(struct core *c, const struct job *j);
};
