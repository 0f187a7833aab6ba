/* listeners: what lower parts of the core tell to higher ones, which they do not know. core.c fills in all of
 * them. */
#pragma once
#include "core/model/names.h"

struct core_listeners {
        void (*agent_made)(struct core *c, struct core_agent *a); /* it was first heard of */
        void (*class_ready)(struct core *c, struct job_class *k); /* it has idle members now, and had none */
        void (*class_gone)(struct core *c, struct job_class *k);  /* it has none any more */
        void (*bucket_gone)(struct core *c, const struct bucket *b);
        void (*request_gone)(struct core *c, const struct request *r); /* out of all lists */
        void (*rekeyed)(struct core *c);                               /* all jobs come into other buckets */
        void (*event_before)(struct core *c, struct event *e);         /* it is about to be applied, live */
        void (*event_after)(struct core *c,
                            const struct event *e); /* it was applied, and told to the world */
        void (*attempt_began)(struct core *c, const struct job *j); /* live or replayed */
        void (*job_started)(struct core *c, const struct job *j);
};
