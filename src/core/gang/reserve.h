/* reserve: room kept at a queue for a job that would never find it; for the files of core/ only.
 *
 * A job that asks for much of a place loses it again and again to small ones that are given what becomes
 * free. A class that was given nothing for a while (core_config.reserve_after_ms) while queues that could run
 * it went to classes behind it in the order gets a *reservation*: at the queue where enough attempts will
 * have ended soonest, from then on. What an attempt's author allows it to run (AllowedExecuteDuration) is
 * when it ends, else what jobs like it took.
 *
 * Jobs that start together (gang.h) have places kept at as many queues as they need, from the time on when
 * there is room for all of them.
 *
 * Others are given that queue's room meanwhile only where this should not delay the reserved job: when they
 * start at once and are over by then, or when there is room for both then. How long they take is what their
 * author allows, else what jobs like them took (Tsafrir, Etsion, Feitelson: "Backfilling using
 * system-generated predictions rather than user runtime estimates", 2007). A queue has one reservation, a
 * class one, which may be for several queues. Of those that are due, who is next in the order and who was
 * submitted first take turns.
 *
 * Room that is kept stands idle, and nobody may know for how long. So each queue has an account of the
 * processor time that its reservations kept idle while somebody could have used it: the time is made good at
 * core_config.reserve_idle of the queue's processors, and until it is, no further reservation is made there.
 * Where all that runs said how long it may, the start is no guess, and what stands idle until then is not
 * owed; but one that costs more than some hours of the whole queue ends, and has to make all of it good.
 *
 * Reservations are plans: no event, in no snapshot; after a restart they are made again.
 */
#pragma once
#include "core/model/need.h"

struct reservation;
struct reserved { /* at one queue */
        struct reservation *of;
        struct queue *queue;
        struct need need;    /* of all that are to go there */
        bool keeps;          /* it has kept somebody from what is free */
        double said_idle_ms; /* of what it kept idle, what is not owed */
};
struct reservation {
        struct job_class *job_class;
        struct reserved *places;
        size_t count;
        int64_t start_ms; /* Unix milliseconds */
        double idle_ms;   /* processor time that it has kept idle, until places were last looked at */
        struct reservation *next;
};

struct reservations {
        struct reservation *first;
        uint32_t count;
        int64_t due_ms;
        size_t at;      /* where the next slice of agents begins */
        uint64_t made;  /* ever */
        uint64_t round; /* every hungry class has one turn in it; 1 and more */
};

/* May a job of this class that needs so much be given to this queue now? */
bool reserve_allows(struct core *c, const struct job_class *k, const struct queue *q,
                    const struct need *need);
/* The same for so many that need this each, given at once. */
bool reserve_allows_all(struct core *c, const struct job_class *k, const struct queue *q,
                        const struct need *need, uint64_t count);
/* What the queue has and no attempt holds: what it would take ahead of its turn is not in it. INT64_MAX: it
 * does not say how much it has. */
void reserve_free_now(struct core *c, const struct queue *q, int64_t *ret_cpus, int64_t *ret_memory_mib);
/* The class is about to be given something at this queue. */
void reserve_given(struct core *c, struct job_class *k, struct queue *q);
/* What it was given it was not given after all: it waits since when it waited before. */
void reserve_refused(struct job_class *k);
void reserve_class_ready(struct core *c, struct job_class *k); /* it has idle members now */
void reserve_class_gone(struct core *c, struct job_class *k);  /* it has none any more */
/* From time to time: makes one, and looks at those that there are. Milliseconds until it wants to be called.
 */
int64_t reserve_step(struct core *c);
void reserve_init(struct core *c);
void reserve_deinit(struct core *c);
const char *reserve_invariant(const struct core *c); /* NULL, or a sentence */

/* ---- reserve.c, for reserve_gang.c */
int64_t reserve_ends_ms(struct core *c, struct job *j); /* when the attempt will be over */
int64_t reserve_after_ms(const struct core *c);
/* Could the class use this queue, as far as it is known without asking the ads? */
bool reserve_may_use(struct core *c, const struct job_class *k, const struct queue *q);
/* Was it given lately to a class behind this one? */
bool reserve_was_passed(struct core *c, const struct job_class *k, const struct queue *q);

/* ---- reserve_gang.c: places for the first set of the class, at the queues where all of it has room soonest.
 * True: there are; *ret_places is the caller's. */
bool reserve_gang_find(struct core *c, struct job_class *k, struct reserved **ret_places, size_t *ret_count,
                       int64_t *ret_start_ms);
