/* meta: meta jobs, which get the best of all places by a reservation there.
 *
 * A job with Meta (meta_rule.h) is not given to whatever place has its turn. Every place that would take it
 * is asked when it could begin the job at the soonest (forecast/quote.h, which includes what batch systems
 * and other servers say of their queues), and the bank what the job would cost there. The best by the job's
 * preference is reserved (reservation/advance.h), from the time on when there is room:
 *
 *   idle        meta_tick asks the places of one job after the other, some at a time
 *   reserved    the room is kept. When the job's turn to be asked for comes again and another place is
 *               clearly better, or the reserved one is gone, the reservation moves
 *   authorised  its time has come, there is room, and the account can pay: it does not move any more.
 *               gang_place_authorised (match/gang_place.h) gives the job to the place in the next turn, and
 *               the reservation ends, since the attempt has the room now
 *
 * All moves are events (EVENT_ADVANCE), so they survive a restart, and are in the job's log with the reason.
 *
 * Jobs that start together (CoAllocate) are one unit: each has a reservation at a place of its own, all from
 * the same time on, or none has one; they become authorised together and are dispatched as one gang
 * (gang/gang.h).
 *
 * So that reservations do not move to and fro: a place is clearly better if it is so by a tenth, and the time
 * that must pass between two moves of a job doubles with each of them.
 */
#pragma once
#include "core/core.h"
#include "core/model/names.h"

#define META_RESERVED_MAX 500u /* reservations for jobs; further meta jobs wait */
#define META_OWNER_MAX    50u  /* the same for one owner */

/* A meta job that waits, and what is reserved for it. */
struct core_meta {
        bool reserved; /* the fields from here to `why` are set */
        uint64_t id;   /* of the reservation */
        const char *agent, *queue;
        int64_t start_ms,
                end_ms;    /* Unix milliseconds: when there should be room, and until when it is kept */
        uint32_t moves;    /* how often the reservation has moved */
        const char *why;   /* why there; never NULL */
        double time;       /* weight of the time to the result, 0 to 1; the rest is that of the cost */
        uint32_t parts;    /* jobs that start together; 1: it starts alone */
        const char *waits; /* why nothing is reserved; never NULL */
};
/* Returns 0; CORE_UNKNOWN: the job is no meta job, or does not wait. */
int core_job_meta(struct core *c, uint64_t request, uint32_t member, struct core_meta *ret);
/* Returns whether the part's jobs are meta jobs. */
bool core_part_is_meta(struct core *c, uint64_t request, uint32_t part);

/* ---- for the files of core/ only */
struct bucket;
void meta_init(struct core *c);
void meta_deinit(struct core *c); /* to be called before requests are freed */
int64_t meta_tick(struct core *c);
/* Called before offers are matched. */
void meta_matching(struct core *c);
/* Called after a live event was applied. */
void meta_event(struct core *c, const struct event *e);
void meta_ready(struct core *c); /* replay is over */
void meta_bucket_gone(struct core *c, const struct bucket *b);
void meta_rekeyed(struct core *c);
/* Checks that each reservation for a job has a job that waits, and that parts are reserved for together.
 * Returns NULL, or a sentence. */
const char *meta_invariant(struct core *c);
