/* job_class: jobs that are alike in everything that matters for matching, by the text of the significant
 * attributes.
 *
 * Classes are no part of the log: they are made from the templates, and made anew (core_rekey) when a name
 * becomes significant.
 */
#pragma once
#include "core/model/core_parts.h"

struct classes *classes_new(void);
void classes_free(struct classes *all); /* when no class is left; NULL is fine */

bool job_class_is_per_member(struct core *c, const struct job_template *t);
struct job_class *job_class_get(struct core *c, const struct request *r, const struct part *p,
                                uint32_t member);
void job_class_unref(struct core *c, struct job_class *k);
void job_class_bucket_filled(struct core *c, struct bucket *b, uint64_t more);
void job_class_bucket_drained(struct core *c, struct bucket *b, uint64_t fewer);
void job_class_bucket_moved(struct core *c, struct bucket *b); /* its place in the order may be another */
#define DEFERRAL_GRACE_MS 10000                                /* see lifecycle/deferral.h */
static inline bool deferral_waits(const struct core *c, const struct job_class *k)
{
        return k->not_before_ms > c->now_ms;
}
/* The class has an idle job that may run where nobody knows of it (core_lost). */
bool job_class_is_lost(const struct core *c, const struct job_class *k);
/* Puts all jobs into their classes again: some now, the others in slices before anything is matched. Drafts
 * see it by `keyed`. */
void core_rekey(struct core *c);
bool core_rekey_slice(struct core *c); /* true: there are more */
