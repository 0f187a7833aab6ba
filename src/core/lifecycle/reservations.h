/* reservations: commands for advance reservations (reservation/advance.h), and their begin and end.
 *
 * A reservation can be made where enough room is not reserved otherwise, at all its occurrences. Running jobs
 * do not matter: they will have ended by then, or keep the room for longer, or are evicted. When its time
 * begins, its jobs may be matched to its places. When it is over, running jobs continue as ordinary jobs, and
 * its waiting jobs are held unless it recurs.
 */
#pragma once
#include "core/core.h"
#include "core/model/need.h"
#include "core/reservation/advance.h"

struct expr;
struct job_template;
struct request;
struct core_reserve {
        struct str who; /* the creator, who may use it too */
        /* Further users and groups that may use it: see struct advance; empty: none. */
        struct str users, groups;
        struct str account; /* account of the bank that pays for it; empty: none */
        struct str reason;
        const struct str *places; /* AGENT or AGENT/QUEUE: choose among these; none: choose among all */
        size_t place_count;
        /* Must be true of the queue's ad with all resources free; NULL: any queue. */
        const struct expr *where;
        uint32_t nodes;     /* number of queues; 0: one, or for maintenance all that match */
        int64_t cpus;       /* processors at each; 0: all that the queue has */
        int64_t memory_mib; /* 0: the same share of its memory as of its processors */
        bool maintenance, evict;
        int64_t start_ms, duration_ms; /* start 0: now */
        int64_t every_ms, until_ms;    /* as in struct advance */
};
/* Number of occurrences of a recurring reservation that are compared with others. */
#define CORE_RESERVE_TIMES 60u
/* Makes a reservation. check_only: changes nothing. Returns 0; CORE_INVALID with err: it makes no sense, or
 * there is not enough room; CORE_TOO_MANY; CORE_CONFLICT: the account cannot pay. Nothing has changed on
 * failure. */
int core_reserve(struct core *c, const struct core_reserve *r, bool check_only, uint64_t *ret_id,
                 struct err *err);
/* Ends a reservation. The bank charges it for the time that has passed. Returns 0; CORE_UNKNOWN with err. */
int core_reserve_end(struct core *c, uint64_t id, struct str who, struct str reason, struct err *err);
const struct advance *core_reserved(const struct core *c, uint64_t id); /* NULL: there is none */
const struct advance *core_reserved_first(const struct core *c); /* first of the list linked by `next` */
/* A place of a reservation, and the resources that its attempts take there now. */
struct core_reserved_place {
        const char *agent, *queue;
        int64_t cpus, memory_mib, used_cpus;
        uint32_t attempts;
};
/* Gives the i-th place without what its attempts take, whatever their number; i is less than a->place_count.
 */
void core_reserved_where(const struct advance *a, size_t i, struct core_reserved_place *ret);
/* Gives the whole i-th place; the cost grows with the queue's attempts. */
void core_reserved_place(const struct advance *a, size_t i, struct core_reserved_place *ret);
/* Explains an idle job's wait for its reservation: returns 0 with the text in *ret_why; CORE_UNKNOWN: it does
 * not wait for one. */
int core_job_reserved(struct core *c, uint64_t request, uint32_t member, struct err *ret_why);

/* ---- for the files of core/ only */
/* Returns the first time from at_ms on at which other reservations leave this much room for so long, whatever
 * runs there; INT64_MAX: none found. */
int64_t reservations_after(const struct core *c, const struct queue *q, const struct need *need,
                           int64_t at_ms, int64_t duration_ms);
/* A reservation for one job, which has none; meta/meta.h makes, begins and ends them. */
struct reservation_for_job {
        struct request *request;
        uint32_t member, moves; /* moves: as in struct advance */
        struct queue *queue;
        struct need need;
        int64_t start_ms, end_ms;
        struct str why; /* why there, for people */
};
void reservations_make_for_job(struct core *c, const struct reservation_for_job *j);
void reservations_begin_for_job(struct core *c, const struct advance *a);
/* why: empty if the job gets what was reserved, or another reservation at once. */
void reservations_end_for_job(struct core *c, struct advance *a, struct str why);

int64_t reservations_tick(struct core *c);
/* called before the event of an attempt's end is applied */
void reservations_before(struct core *c, const struct event *e);
/* Checks at submit that jobs with this template may use the reservation that they name. Returns 0, or -EINVAL
 * with err. */
int reservations_check_part(struct core *c, struct str owner, const struct job_template *t, struct err *err);
