/* reserve: backfill reservations, which keep resources of a queue for a large job that would otherwise
 * starve; for the files of core/ only.
 *
 * Small jobs take the resources that become free before they suffice for a large job. A class that was given
 * nothing for a while (core_config.reserve_after_ms), while queues that could run it went to classes behind
 * it in the order, gets a *reservation* at the queue where enough attempts will have ended soonest, from
 * that time on. An attempt's end is predicted by its allowed run time (AllowedExecuteDuration), else by the
 * run times of similar jobs.
 *
 * A gang (gang.h) has resources reserved at as many queues as it needs, from the time on when all of
 * it fits.
 *
 * Other jobs are backfilled at that queue only if they should not delay the reserved job: they start at once
 * and end before, or there is room for both. Their run time is the allowed one, else that of similar jobs
 * (Tsafrir, Etsion, Feitelson: "Backfilling using system-generated predictions rather than user runtime
 * estimates", 2007). A queue has at most one reservation, and so has a class, for one or several queues.
 * Among classes that are due, the next in the order and the one submitted first take turns.
 *
 * Reserved resources stand idle, for a time that may be unknown. So each queue has a debt: the processor
 * time that its reservations kept idle while another job could have used it. The debt is repaid at
 * core_config.reserve_idle of the queue's processors, and no further reservation is made there before. Where
 * all running attempts have an allowed run time the start is certain, and time left idle until then is not
 * added to the debt; but a reservation that costs more than some hours of the whole queue ends, and all of
 * its cost becomes debt.
 *
 * Reservations are plans: no event, in no snapshot; after a restart they are made again.
 */
#pragma once
#include "core/model/need.h"

struct reservation;
struct reserved { /* the reservation at one queue */
        struct reservation *of;
        struct queue *queue;
        struct need need;    /* resources of all jobs that are to start there */
        bool keeps;          /* it has kept another job from free resources */
        double said_idle_ms; /* processor time kept idle that is not added to the debt */
};
struct reservation {
        struct job_class *job_class;
        struct reserved *places;
        size_t count;
        int64_t start_ms; /* Unix milliseconds */
        double idle_ms;   /* processor time kept idle, up to the last look at its places */
        struct reservation *next;
};

struct reservations {
        struct reservation *first;
        uint32_t count;
        int64_t due_ms;
        size_t at;      /* start of the next slice of agents */
        uint64_t made;  /* number of reservations ever made */
        uint64_t round; /* each class that is due has one turn in a round; 1 and more */
};

/* Returns whether reserve_allows or reserve_allows_all may refuse this class at this queue. */
bool reserve_may_keep(const struct job_class *k, const struct queue *q);
/* Returns whether a job of this class with this need may be given to this queue now. */
bool reserve_allows(struct core *c, const struct job_class *k, const struct queue *q,
                    const struct need *need);
/* Returns what reserve_allows returns, for `count` jobs given at once, each with this need. */
bool reserve_allows_all(struct core *c, const struct job_class *k, const struct queue *q,
                        const struct need *need, uint64_t count);
/* Computes the queue's resources that no attempt holds and that no delivery ahead of its turn would use.
 * INT64_MAX: the queue does not report the total. */
void reserve_free_now(struct core *c, const struct queue *q, int64_t *ret_cpus, int64_t *ret_memory_mib);
/* An attempt at the queue has ended. If reservations keep jobs from the queue until attempts end, it is
 * matched again: the agent may have offered the room before, as deliveries ahead of their turn. */
void reserve_attempt_ended(struct core *c, struct queue *q);
/* The class is about to be given jobs at this queue. */
void reserve_given(struct core *c, struct job_class *k, struct queue *q);
/* The last delivery to the class was refused: its wait counts from before it. */
void reserve_refused(struct job_class *k);
void reserve_class_ready(struct core *c, struct job_class *k); /* the class has its first idle member */
void reserve_class_gone(struct core *c, struct job_class *k);  /* the class has no idle members left */
/* Returns when the queue will have room for this need, by the predicted ends of its attempts and beside
 * advance reservations. INT64_MAX: never, or not known. */
int64_t reserve_room_ms(struct core *c, const struct queue *q, const struct need *need);
/* Makes a reservation and checks the existing ones, at intervals. Returns the milliseconds until the next
 * call. */
int64_t reserve_step(struct core *c);
void reserve_init(struct core *c);
void reserve_deinit(struct core *c);
const char *reserve_invariant(const struct core *c); /* NULL, or a sentence */

/* ---- reserve.c, for reserve_gang.c */
int64_t reserve_ends_ms(struct core *c, struct job *j); /* predicted end of the job's attempt */
int64_t reserve_after_ms(const struct core *c);
/* Returns whether the class may be able to use this queue, without evaluating the ads. */
bool reserve_may_use(struct core *c, const struct job_class *k, const struct queue *q);
/* Returns whether the queue was lately given to a class behind this one in the order. */
bool reserve_was_passed(struct core *c, const struct job_class *k, const struct queue *q);

/* Computes the queue's total resources less those of attempts that end after at_ms (INT64_MIN: of all
 * attempts). */
void reserve_free_at(struct core *c, const struct queue *q, int64_t at_ms, int64_t *ret_cpus,
                     int64_t *ret_memory_mib);

/* ---- reserve_advance.c: advance reservations (reservation/advance.h) */

/* Returns whether advance reservations allow a job of the class with this need now. A job that names a
 * reservation runs only in it, in the resources that its other jobs leave, never in those of another. A job
 * that names none needs room at the beginning of each reservation that it may run into. */
bool reserve_advance_allows(struct core *c, const struct job_class *k, const struct queue *q,
                            const struct need *need);
/* Returns the first time from at_ms on at which advance reservations leave room for this need; INT64_MAX:
 * none found. */
int64_t reserve_advance_after(struct core *c, const struct queue *q, int64_t at_ms, const struct need *need);

/* ---- reserve_gang.c: finds places for the class's first gang, at the queues where all of it fits soonest.
 * True: found; *ret_places is the caller's. */
bool reserve_gang_find(struct core *c, struct job_class *k, struct reserved **ret_places, size_t *ret_count,
                       int64_t *ret_start_ms);
