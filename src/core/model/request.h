/* request: requests, their parts, and which of their members are in which state.
 *
 *   request --- parts --- template    (and parts of members that were edited, edit.h)
 *     |
 *     +-- buckets: the idle members of one class with one priority
 *     +-- jobs: a record for each member that ever had an attempt and has not ended, or is left
 *     +-- cold, when there is some: held, completed, removed, failed, unfiled, left; logs, a hop
 *
 * Requests change by events only (events/apply.h).
 */
#pragma once
#include "base/map.h"
#include "base/set.h"
#include "core/model/delegation.h"
#include "core/model/job_class.h"
#include "core/model/job_record.h"
#include "core/model/job_template.h"

struct forgotten;
struct graph;
struct submission_file;
struct edits;
struct estimate;
struct inputs;

struct part {
        struct job_template *job_template;
        uint32_t first, count, steps, rows;
        char *items; /* rows of values, behind the request's parts; NULL: none */
        uint32_t items_n;
        uint16_t output_store;  /* its number; sites.store_count: the server's spool */
        bool item_fills;        /* $$() stands in an item */
        uint32_t *row_at;       /* byte offset of every ROW_STRIDEth row; NULL: there are no more rows */
        struct estimate *likes; /* of jobs like its members, of the core; NULL in a shadow */
        struct inputs *inputs;  /* files that its members read; NULL: none, or the request has ended */
};
#define ROW_STRIDE 32u

/* Members that were held, released or removed without a record of their own. */
struct hold_group {
        struct set members;
        int64_t at_ms;
        int32_t code, subcode;
        char *reason;
};
struct range_log {
        struct set members;
        struct joblog_entry entry;
};
struct priority_group {
        struct set members;
        int64_t priority;
};

/* A user, one for all of his requests. */
struct owner {
        unsigned refs;
        /* His own; NULL: no request of his was counted yet. */
        struct limit *user, *queued, *queued_kib;
        char name[];
};

/* What most requests do without while they wait: made when the first of it is set (request_cold_make). */
struct request_cold {
        struct set held, completed, removed, failed, unfiled;
        struct set left; /* of completed and removed, those that are still shown (retention.h) */
        int64_t finished_ms;
        struct request *uuid_next; /* with the same hash of it */
        struct hold_group *holds;
        uint32_t hold_count, hold_cap;
        struct range_log *log;
        uint32_t log_count, log_cap;
        struct priority_group *priorities;
        uint32_t priority_count, priority_cap;
        struct idmap *waits; /* members that wait for a better place (delay_scheduling.c); NULL: none */
        struct submission_file *spooled;
        char *spooled_names;
        uint32_t spooled_count;
        struct delegation delegation;
        struct edits *edits; /* edit.h; NULL: none of its members was edited */
        struct set blocked;  /* members that wait for other jobs (dependency.h), whatever their state; */
        struct set delayed;  /* members that wait for the end of a pause (losses.h), all of them idle */
        struct set waiting;  /* of blocked and delayed ones, those that are idle: they are in no bucket */
        struct idmap *exits; /* of a graph: how jobs failed (request_exit); NULL: nobody waits here */
        struct graph *graph;
        struct dependent {
                uint64_t id;
                uint32_t edges;
        } * dependents; /* requests whose jobs wait for jobs of this one, or did, and in how many edges */
        uint32_t dependent_count, dependent_cap, dependent_edges;
        uint64_t linked; /* dependency.c: when edges to it were counted last */
};

/* There are as many of these as jobs that came alone: each byte counts (core_bytes_per_single_job_request).
 */
struct request {
        uint64_t id;
        unsigned char uuid[16];
        struct owner *owner; /* NULL in a shadow */
        uint64_t digest;     /* of what was submitted; 0: not known */
        int64_t submitted_ms;
        uint32_t count, active,
                running;       /* members; those with an attempt; of these, those that were started */
        uint32_t idle;         /* members, without those that wait for other jobs */
        uint32_t queued_count; /* members that have not ended, as counted in owner->queued */
        uint32_t part_count;
        struct part *parts;                    /* and the items of all behind them */
        struct bucket **buckets, *only_bucket; /* of one alone the array is only_bucket */
        uint32_t bucket_count, bucket_cap;
        struct idmap *jobs;               /* NULL until there is one */
        struct request_cold *cold;        /* NULL: all of it is empty */
        struct request *next, *prev;      /* by id */
        uint32_t kib;                     /* submission_kib; 0 in a shadow */
        bool periodic, leaves, has_gangs; /* some template has such policies, or a LeaveJobInQueue */
};

/* All of them. */
struct requests {
        struct idmap *by_id, *by_uuid; /* by_uuid: a hash of the uuid → request */
        struct forgotten *forgotten;
        struct map *owners;           /* one string each */
        struct request *first, *last; /* by id */
        uint64_t last_id;             /* the highest that was accepted */
        uint64_t draft_id;            /* the highest that a draft has; 0: none */
        uint64_t number_from;         /* no lower number is given, and no lower fence */
        uint32_t fence_from;
        struct request *accepting; /* a draft, while it is accepted: spares loading the record */
        bool suspected;            /* some job has been suspected since the start (losses.h) */
        struct idmap *delayed;     /* requests that have delayed members, by id */
        int64_t delayed_due_ms;    /* no pause ends before; Unix milliseconds, 0: look */
        uint64_t unfiled;          /* members, of all requests */
        size_t left;        /* members that have ended and are still shown, see lifecycle/retention.h */
        uint64_t *finished; /* ids in the order in which they finished */
        size_t finished_count, finished_cap;
        bool crowded; /* some owner's requests take more than half of what they may */
};
struct requests *requests_new(void);
void requests_free(struct requests *all); /* when none is left; NULL is fine */

struct request *request_find(const struct core *c, uint64_t id);
struct request *request_by_uuid(const struct core *c, const unsigned char uuid[16]); /* NULL: there is none */
/* Nobody knows of it, no list, map or limit, until it is shown. */
struct request *request_new(uint64_t id, int64_t at_ms, uint32_t count);
/* Into the list and the maps of the core, and out of them. */
void requests_add(struct core *c, struct request *r);
void requests_remove(struct core *c, struct request *r);
struct owner *owner_ref(struct core *c, struct str name);        /* a user's, made when he is new */
void owner_unref(struct core *c, struct owner *o);               /* NULL is fine */
static inline const char *request_owner(const struct request *r) /* NULL in a shadow */
{
        return r->owner ? r->owner->name : NULL;
}
struct job *request_job(const struct request *r, uint32_t member); /* NULL: it has no record */
struct job *request_job_make(struct core *c, struct request *r, uint32_t member);
void request_job_drop(struct request *r, struct job *j);
void job_free(struct job *j); /* of one that is in no request's map */
struct part *request_part(const struct request *r, uint32_t member, uint32_t *ret_part);
/* ---- edit.c */
struct part *request_part_edited(const struct request *r, uint32_t number); /* NULL: there is none */
/* The part of an edited member, which was submitted in `base`; NULL: it was not edited. */
struct part *request_part_of_edit(const struct request *r, uint32_t member, uint32_t base, uint32_t *ret);

/* A part by the number that request_part gave; NULL: it has none of this number. */
static inline struct part *request_part_at(const struct request *r, uint32_t number)
{
        return number < r->part_count ? &r->parts[number] : request_part_edited(r, number);
}
enum job_state request_state(const struct request *r, uint32_t member);
struct bucket *request_bucket(struct core *c, const struct request *r, uint32_t member);
void request_idle_all(const struct request *r, struct set *to);  /* with those that wait for other jobs */
bool request_idle_has(const struct request *r, uint32_t member); /* the same */
uint64_t request_unended(const struct request *r);               /* members that have not ended */
bool request_ended(const struct request *r);

static inline const struct part *job_class_first_part(const struct job_class *k) /* of its first bucket */
{
        const struct bucket *b = job_class_first_bucket(k);

        return request_part_at(b->request, b->part);
}

/* ---- cold.c */
extern const struct request_cold request_nothing_cold;
static inline const struct request_cold *request_cold(const struct request *r) /* to look at; never NULL */
{
        return r->cold ? r->cold : &request_nothing_cold;
}
struct request_cold *request_cold_make(struct request *r); /* to change */
void request_cold_trim(struct request *r);                 /* frees it when all of it is empty */
/* The exit code of a member that has failed, or its signal below zero; 0: it is not known, or has not failed.
 * Kept for requests with graphs only. */
int32_t request_exit(const struct request *r, uint32_t member);
void request_exit_set(struct request *r, uint32_t member, int32_t code);
void request_cold_free(struct request *r);
size_t request_cold_bytes(const struct request *r); /* memory it takes */
void request_spooled_load(struct request *r, const struct submission *s);
const struct hold_group *request_hold(const struct request *r, uint32_t member);
void request_hold_drop(struct request *r, const struct set *members);
