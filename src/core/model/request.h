/* request: requests, their parts, and the state of each of their members.
 *
 *   request --- parts --- template    (and parts of edited members, edit.h)
 *     |
 *     +-- buckets: the idle members of one class with one priority
 *     +-- jobs: a record for each member that has had an attempt and has not ended, or is in `left`
 *     +-- cold, unless all of it is empty: held, completed, removed, failed, unfiled, left; logs; …
 *
 * Only events change requests (events/apply.h).
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
        char *items; /* rows of values, in the allocation of the request's `parts`; NULL: none */
        uint32_t items_n;
        uint16_t output_store; /* number of the store; sites.store_count: the server's spool */
        uint32_t claim_units;  /* what each member may write to it, see data/space.h; 0: it is not counted */
        bool item_fills;       /* some item has a $$() reference */
        bool leaks;            /* with `labelled`: its outputs may go where its labels are not (label.h) */
        uint64_t labels;       /* the labels that all members carry, if `labelled` is job_template */
        const struct job_template *labelled; /* compared only; NULL: members may carry different ones */
        bool periodic_over; /* its periodic policies took too long: they are not evaluated any more, and its
                               jobs are held */
        uint32_t *row_at; /* byte offset of every ROW_STRIDEth row; NULL: there are at most ROW_STRIDE rows */
        struct estimate *likes; /* estimate of jobs like its members, owned by the core; NULL in a shadow */
        struct inputs *inputs;  /* files that its members read; NULL: none, or the request has ended */
};
#define ROW_STRIDE 32u

/* Members that were held, released or removed without a record of their own. There are at most
 * HOLD_GROUPS_MAX in a request, and one more for each code: each hold and release looks at all of them. */
#define HOLD_GROUPS_MAX 1000u
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

/* A user, shared by all of his requests. */
struct owner {
        unsigned refs;
        /* The user's limits; NULL: no request of his was counted yet. */
        struct limit *user, *queued, *queued_kib;
        uint64_t policy_steps, policy_round; /* of lifecycle/policy.c: steps that periodic policies of his
                                                jobs took in that round */
        char name[];
};

/* Rarely used state of a request, allocated when some of it is first set (request_cold_make). */
struct request_cold {
        struct set held, completed, removed, failed, unfiled;
        struct set left; /* members of completed and removed that are still shown (retention.h) */
        int64_t finished_ms;
        struct request *uuid_next; /* next request with the same hash of the uuid */
        struct hold_group *holds;
        uint32_t hold_count, hold_cap;
        struct range_log *log;
        uint32_t log_count, log_cap;
        struct priority_group *priorities;
        uint32_t priority_count, priority_cap;
        struct idmap *waits; /* place_wait of members that wait for a better place; NULL: none */
        struct submission_file *spooled;
        char *spooled_names;
        struct map *spooled_index; /* `spooled` by name, while somebody uses it (request_spooled_take) */
        uint32_t spooled_count, spooled_users;
        struct delegation delegation;
        struct edits *edits; /* NULL: none of its members was edited */
        struct set blocked;  /* members with unsatisfied dependencies (dependency.h), whatever their state */
        struct set delayed;  /* members that wait for the end of a pause (losses.h), all of them idle */
        struct set waiting;  /* idle members of `blocked` and `delayed`: they are in no bucket */
        struct set reserved; /* idle members with a reservation of their own (meta/meta.h); follows from
                                struct advances */
        struct set authorised; /* of these, those whose reservation has begun */
        struct idmap *exits; /* failures of jobs in a graph (request_exit); NULL: no job waits for one of the
                                request */
        struct graph *graph;
        struct dependent {
                uint64_t id;
                uint32_t edges;
        } * dependents; /* requests with jobs that wait for this one's jobs, or did, and the number of such
                           edges */
        uint32_t dependent_count, dependent_cap, dependent_edges;
        uint64_t linked; /* dependency.c: serial of the last count of edges to the request */
};

/* A single-job request has one of these too, so its size in bytes matters
 * (core_bytes_per_single_job_request). */
struct request {
        uint64_t id;
        unsigned char uuid[16];
        struct owner *owner; /* NULL in a shadow */
        uint64_t digest;     /* digest of the submission; 0: not known */
        int64_t submitted_ms;
        /* Numbers of all members, of those with an attempt, and of those that have started. */
        uint32_t count, active, running;
        uint32_t idle;         /* idle members, without those that wait for other jobs */
        uint32_t queued_count; /* members that have not ended, as counted in owner->queued */
        uint32_t part_count;
        struct part *parts;                    /* followed by the items of all parts */
        struct bucket **buckets, *only_bucket; /* only_bucket: the array, if it has one bucket */
        uint32_t bucket_count, bucket_cap;
        struct idmap *jobs;               /* records by member; NULL: none */
        struct request_cold *cold;        /* NULL: all of it is empty */
        struct request *next, *prev;      /* list sorted by id */
        uint32_t kib;                     /* submission_kib; 0 in a shadow */
        bool periodic, leaves, has_gangs; /* some template has such a policy, see job_template.h */
        bool has_metas, together; /* some of its jobs are meta jobs; all start together (meta_rule.h) */
};

/* All requests. */
struct requests {
        struct idmap *by_id, *by_uuid; /* by_uuid: first request with a hash of the uuid */
        struct request *found; /* the last that was found by its id, because walks ask for it and the next;
                                  NULL: none */
        struct forgotten *forgotten;
        struct map *owners;           /* one struct owner for each name */
        struct request *first, *last; /* list sorted by id */
        uint64_t last_id;             /* highest id that was accepted */
        uint64_t draft_id;            /* highest id of a draft; 0: none */
        uint64_t number_from;         /* lowest id of a new request; fence_from: likewise for attempts */
        uint32_t fence_from;
        struct loaded_record *loaded; /* that of request_load_stored (admission.c); NULL: none */
        struct request *accepting;    /* draft that is being accepted: its record need not be loaded */
        bool suspected;               /* some job has been suspected since the start (losses.h) */
        struct idmap *delayed;        /* requests with delayed members, by id */
        int64_t delayed_due_ms;       /* Unix milliseconds: no pause ends before; 0: to be computed */
        uint64_t unfiled;             /* number of unfiled members of all requests */
        size_t left;        /* members that have ended and are still shown, see lifecycle/retention.h */
        uint64_t *finished; /* ids in the order in which requests finished */
        size_t finished_count, finished_cap;
        bool crowded; /* some owner's requests take more than half of his limit */
};
struct requests *requests_new(void);
void requests_free(struct requests *all); /* to be called when no request is left; NULL is fine */

/* Returns the request with this id; NULL: there is none. */
struct request *request_find(const struct core *c, uint64_t id);
/* Returns the owner's request with this uuid; NULL: there is none. Others may have made up the same one. */
struct request *request_by_uuid(const struct core *c, const unsigned char uuid[16], struct str owner);
/* Creates a request that is in no list, map or limit until it is shown. */
struct request *request_new(uint64_t id, int64_t at_ms, uint32_t count);
/* Adds the request to the core's list and maps, and removes it. */
void requests_add(struct core *c, struct request *r);
void requests_remove(struct core *c, struct request *r);
struct owner *owner_ref(struct core *c, struct str name);        /* finds the user, or creates him */
void owner_unref(struct core *c, struct owner *o);               /* NULL is fine */
static inline const char *request_owner(const struct request *r) /* NULL in a shadow */
{
        return r->owner ? r->owner->name : NULL;
}
struct job *request_job(const struct request *r, uint32_t member); /* NULL: it has no record */
/* Returns the member's record, created if there is none. */
struct job *request_job_make(struct core *c, struct request *r, uint32_t member);
/* Frees a record that has no attempt. */
void request_job_drop(struct request *r, struct job *j);
void job_free(struct job *j); /* frees a record that is in no request's map */
struct part *request_part(const struct request *r, uint32_t member, uint32_t *ret_part);
/* ---- edit.c */
struct part *request_part_edited(const struct request *r, uint32_t number); /* NULL: there is none */
/* Returns the part of an edited member that was submitted in part `base`, with the part's number in *ret;
 * NULL: the member was not edited. */
struct part *request_part_of_edit(const struct request *r, uint32_t member, uint32_t base, uint32_t *ret);

/* Returns the part with a number as request_part returns it; NULL: there is none. */
static inline struct part *request_part_at(const struct request *r, uint32_t number)
{
        return number < r->part_count ? &r->parts[number] : request_part_edited(r, number);
}
/* Returns the state of a member, from its record or from the sets of the request. */
enum job_state request_state(const struct request *r, uint32_t member);
/* Moves an idle member to reserved, authorised, or back to idle, as its reservation says. */
void request_reserve_move(struct request *r, uint32_t member, enum job_state to);
/* The members leave idle: what was reserved for them is not shown any more. */
void request_reserve_over(struct request *r, const struct set *members);
/* Returns the member's bucket; NULL: it is in none. */
struct bucket *request_bucket(struct core *c, const struct request *r, uint32_t member);
/* Includes members that wait for other jobs. */
void request_idle_all(const struct request *r, struct set *to);
/* Includes members that wait for other jobs. */
bool request_idle_has(const struct request *r, uint32_t member);
uint64_t request_unended(const struct request *r); /* number of members that have not ended */
bool request_ended(const struct request *r);

/* Returns the part of the class's first bucket. */
static inline const struct part *job_class_first_part(const struct job_class *k)
{
        const struct bucket *b = job_class_first_bucket(k);

        return request_part_at(b->request, b->part);
}

/* ---- cold.c */
extern const struct request_cold request_nothing_cold;
static inline const struct request_cold *request_cold(const struct request *r) /* for reading; never NULL */
{
        return r->cold ? r->cold : &request_nothing_cold;
}
struct request_cold *request_cold_make(struct request *r); /* for writing; allocates it if need be */
void request_cold_trim(struct request *r);                 /* frees it if all of it is empty */
/* Returns the exit code of a failed member, or its signal as a negative number; 0: not known, or not failed.
 * Kept only for requests with graphs. */
int32_t request_exit(const struct request *r, uint32_t member);
/* Stores an exit code as request_exit returns it; no-op for 0 and without a graph. */
void request_exit_set(struct request *r, uint32_t member, int32_t code);
void request_cold_free(struct request *r);
size_t request_cold_bytes(const struct request *r); /* in bytes */
void request_spooled_load(struct request *r, const struct submission *s);
/* Keeps the index of the spooled files by name from the first time that it is made until
 * request_spooled_give: it is made once for all parts of a request, which may have ten thousand parts and a
 * hundred thousand files. */
void request_spooled_keep(const struct request *r);
/* Returns the index, struct submission_file by name, kept as above; NULL: there are no files, and nothing is
 * to be given back. */
struct map *request_spooled_take(const struct request *r);
void request_spooled_give(const struct request *r);
/* Returns the group of a held member; NULL: it is in none. */
const struct hold_group *request_hold(const struct request *r, uint32_t member);
/* Takes members out of their hold groups, and frees empty groups. */
void request_hold_drop(struct request *r, const struct set *members);
