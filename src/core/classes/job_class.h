/* job_class: finds or creates the class of a job by the text of its significant attributes: those that matter
 * for matching.
 *
 * Classes are not in the log: they are made from templates, and made anew (core_rekey) when another attribute
 * becomes significant.
 */
#pragma once
#include "core/model/core_parts.h"

struct classes *classes_new(void);
void classes_free(struct classes *all); /* to be called when no class is left; NULL is fine */

/* Returns whether the class may differ between members of a part with this template. */
bool job_class_is_per_member(struct core *c, struct job_template *t);
/* Finds or creates the class of a member, with a new reference (job_class_unref). */
struct job_class *job_class_get(struct core *c, const struct request *r, const struct part *p,
                                uint32_t member);
/* Drops a reference; NULL is fine. The last one frees the class, which must have no idle members. */
void job_class_unref(struct core *c, struct job_class *k);
/* Counts `more` idle members that were added to the bucket. The class may become ready. */
void job_class_bucket_filled(struct core *c, struct bucket *b, uint64_t more);
/* Counts `fewer` idle members that were removed from the bucket. */
void job_class_bucket_drained(struct core *c, struct bucket *b, uint64_t fewer);
/* After a change of its position in the order. */
void job_class_bucket_moved(struct core *c, struct bucket *b);
#define DEFERRAL_GRACE_MS 10000 /* see lifecycle/deferral.h */
static inline bool deferral_waits(const struct core *c, const struct job_class *k)
{
        return k->not_before_ms > c->now_ms;
}
/* Returns whether the class has an idle job that may be running unknown to the server (core_lost). */
bool job_class_is_lost(const struct core *c, const struct job_class *k);
/* Puts all jobs into their classes again: some now, the others in slices before anything is matched. Drafts
 * notice by classes.keyed. */
void core_rekey(struct core *c);
bool core_rekey_slice(struct core *c); /* true: there are more to do */
