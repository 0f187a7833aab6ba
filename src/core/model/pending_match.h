/* pending_match: who is to be looked at in the next pass of matching, as something about him has changed. */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pending_match {
        struct job_class **dirty; /* have become ready since they last met every offer */
        size_t dirty_count, dirty_cap;
        struct queue **changed; /* offers that are new since they last met every class */
        size_t changed_count, changed_cap;
        bool changed_sorted, dirty_sorted;
        uint64_t offers_new; /* offers that came or got room, ever */
};
struct pending_match *pending_match_new(void);
void pending_match_free(struct pending_match *p); /* NULL is fine */

/* At the next pass the class meets every offer, the queue every class. Both for who was told "not
 * now" and might be told otherwise. */
void job_class_look_again(struct core *c,
                          struct job_class *k); /* NULL, and one without idle members, are fine */
void queue_look_again(struct core *c, struct queue *q);
void job_class_look_no_more(struct core *c, struct job_class *k);
