/* pending_match: the classes and queues that changed and are to be looked at in the next matching pass. */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pending_match {
        /* Classes that became ready since they were last compared with every offer. */
        struct job_class **dirty;
        size_t dirty_count, dirty_cap;
        struct queue **changed; /* queues with offers that have not been compared with every class */
        size_t changed_count, changed_cap;
        bool changed_sorted, dirty_sorted;
        uint64_t offers_new; /* number of offers that were new or gained room so far */
};
struct pending_match *pending_match_new(void);
void pending_match_free(struct pending_match *p); /* NULL is fine */

/* To be called when a reason for which the class or queue was turned away may have changed: the next pass
 * compares the class with every offer, or the queue with every class. No-op for a class that is NULL or has
 * no idle members. */
void job_class_look_again(struct core *c, struct job_class *k);
void queue_look_again(struct core *c, struct queue *q);
/* Takes the class off the list of the next pass; no-op if it is not listed. */
void job_class_look_no_more(struct core *c, struct job_class *k);
