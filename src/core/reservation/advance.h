/* advance: advance reservations: resources of queues set aside for certain jobs at a set time.
 *
 * A reservation has a number, places (each a queue with processors and memory), a start, an end, and users.
 * With `every_ms` it recurs: when one occurrence is over, the record is moved to the next one, until there
 * is none. Occurrences never overlap. Jobs that name it (ReservationId) run only in it; all other jobs run
 * outside of it. A maintenance reservation takes whole queues, and no job may use it. One for a job has one
 * place, and is for a single job that need not name it (meta/meta.h): it ends when the job gets its place.
 *
 * All changes are orders, recorded in events; the same orders make the same records.
 * lifecycle/reservations.c decides whether an order is valid and when it is due; gang/reserve_advance.c
 * decides what a queue may be given meanwhile. Backfill reservations for waiting jobs are in gang/reserve.h.
 * Times are Unix milliseconds.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/model/names.h"

#define ADVANCES_MAX          1000u
#define ADVANCE_PLACES_MAX    1000u
#define ADVANCES_AT_QUEUE_MAX 32u /* all are examined for each job that is considered for the queue */
#define ADVANCE_USERS_MAX     100u
#define ADVANCE_TEXT_MAX      1024u
#define ADVANCE_MS_MAX        (366ll * 86400000) /* longest length, and longest time from one start to the next */
#define ADVANCE_NEED_MAX      (1ll << 50)        /* processors, or MiB of memory, at one place */

struct advance;
struct advance_place {
        struct advance *of;
        struct queue *queue;
        int64_t cpus, memory_mib;
        struct advance_place *next; /* next place at the same queue */
};
struct advance {
        uint64_t id;
        char *owner;   /* who made it: ann@lab */
        char *users;   /* who else may use it: ann@lab, *@lab, *, separated by commas; NULL: no one else */
        char *groups;  /* accounting groups whose jobs may use it, including those below; NULL: none */
        char *account; /* account of the bank that pays for it; NULL: none */
        char *reason;  /* NULL: none given */
        bool maintenance;
        bool evict;       /* attempts in its resources at its start are evicted and requeued */
        int64_t start_ms; /* start of the current or next occurrence */
        int64_t end_ms;
        int64_t every_ms; /* from one start to the next; 0: it occurs once */
        int64_t until_ms; /* latest start; 0: no limit */
        bool begun;
        int64_t used_ms;  /* processor time used in this occurrence by jobs that have ended */
        uint64_t lien;    /* the bank's lien for this occurrence; 0: none */
        uint64_t request; /* it is for this request's job `member`; 0: it is for no single job */
        uint32_t member;
        uint32_t moves;  /* reservations that the job had before this one since it was submitted or ran */
        int64_t made_ms; /* steady clock: when it was made or, for a job, begun; or when that was replayed */
        struct advance_place *places;
        size_t place_count;
        struct advance *next; /* in the order of numbers */
};
struct advances {
        struct advance *first;
        uint32_t count, for_jobs; /* all; those for single jobs */
        uint64_t last_id;
        /* The jobs [first, first + size) of this request are being placed: their own reservations are left
         * out of what is kept. request 0: none are. */
        struct {
                uint64_t request;
                uint32_t first, size;
        } placing;
        int64_t due_ms; /* steady clock; used by lifecycle/reservations.c */
};

/* ---- orders; the values are stored and never reused */
enum advance_op {
        ADVANCE_MAKE = 1,
        ADVANCE_BEGIN, /* an occurrence starts */
        ADVANCE_USE,   /* an attempt in it has ended after `amount` ms of processor time */
        ADVANCE_AGAIN, /* an occurrence is over: the next one is `amount` times every_ms later, and has `lien`
                        */
        ADVANCE_END,   /* the reservation is removed */
        ADVANCE_OPS
};
struct advance_order {
        enum advance_op op;
        uint64_t id, lien;
        int64_t amount;
        struct str who, reason; /* for ADVANCE_END; one for a job ends without a word in the job's log if
                                   there is no reason */
        /* ADVANCE_MAKE: as in struct advance; empty texts: none */
        struct str owner, users, groups, account;
        bool maintenance, evict;
        int64_t start_ms, end_ms, every_ms, until_ms;
        uint64_t request; /* for a job; 0: for none */
        uint32_t member, moves;
        const struct advance_room {
                struct str agent, queue;
                int64_t cpus, memory_mib;
        } * rooms;
        size_t room_count;
};
void advance_order_pack(struct buf *out, const struct advance_order *o);
/* Applies a packed order, given at that time. Returns 0, or -EBADMSG with err. Unknown queues are made. */
int advance_apply(struct core *c, struct str record, int64_t at_ms, struct err *err);

/* ---- looking */
struct advance *advance_find(const struct core *c, uint64_t id); /* NULL: unknown, or removed */
/* Returns the reservation for this job; NULL: there is none. */
struct advance *advance_for_job(const struct core *c, uint64_t request, uint32_t member);
/* Returns whether the owner may use it with a job of this accounting group, of which the owner is known to
 * be a member (empty: none). */
bool advance_admits(const struct advance *a, struct str owner, struct str group);
/* Returns the latest start that is not after at_ms, or else the first start. */
int64_t advance_start_at(const struct advance *a, int64_t at_ms);
bool advance_covers(const struct advance *a, int64_t at_ms); /* true: at_ms is in an occurrence */
/* Returns whether the reservation is for one of the jobs that are being placed. */
bool advance_is_placing(const struct core *c, const struct advance *a);
/* Computes the resources of the queue that reservations keep at that time, without those of `except` (NULL:
 * all) and of jobs that are being placed. */
void advance_kept(const struct core *c, const struct queue *q, int64_t at_ms, const struct advance *except,
                  int64_t *ret_cpus, int64_t *ret_memory_mib);
const struct advance_place *advance_place_at(const struct queue *q, uint64_t id); /* NULL: none */
uint64_t advance_of_job(const struct job *j); /* id of the reservation that its attempt runs in; 0: none */

struct unpack;
void advances_pack(const struct core *c, struct buf *out);
void advances_unpack(struct core *c, struct unpack *in); /* damage sets in->bad */
void advances_init(struct core *c);
void advances_deinit(struct core *c);
const char *advance_invariant(struct core *c); /* NULL, or a sentence */
