/* eta_turn: predicts when each waiting bucket has its turn. For the files of core/ only.
 *
 * Computed in steps, between which the world may change: the values of a bucket are read once, when it is
 * found. A bucket that arrives later is not included; one that is removed stays as an entry without bucket.
 */
#pragma once
#include "core/forecast/eta_share.h"
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct idmap;

#define ETA_FIRST_FEW 4u /* jobs of a bucket that are looked at one by one */

struct eta_turn {              /* the turn of a bucket */
        struct bucket *bucket; /* NULL: it was removed */
        uint64_t jobs;         /* waiting jobs; for `also`, all jobs of its part */
        /* Milliseconds from now, if all processors were alike and could run all jobs: when its first job
         * starts, the one behind the first few, and when all have been served. INFINITY: never. */
        double start, rest, end;
        /* eta_turn.c's own: what is read of it */
        uint64_t request, job_class, account; /* serials of class and account */
        int64_t priority;
        uint32_t due_s, part, stream;
        double own, points, cpus, cap, own_cap;
        double standing, work, before;
        /* Results of forecast.c: start of the first job, Unix milliseconds (0: unknown), the delay of each
         * job behind it, and their run time. */
        int64_t start_ms;
        float step_ms, run_ms;
        int64_t last_ms; /* when the last of the first few starts */
        uint64_t placed;
        uint64_t known; /* jobs, from the first on, whose start is known */
        bool open;      /* when they end is not known */
};

struct eta_turns {
        struct core *core;
        struct eta_turn *v; /* `also` first, then in the order of requests */
        size_t count, cap;
        uint32_t *order;     /* indexes into v in the order of turns */
        bool request_limits; /* some requests have a limit on active jobs */
        struct bucket *also;
        /* eta_turn.c's own */
        int stage;
        struct request *next; /* next request to read; NULL: none left */
        struct idmap *accounts;
        struct eta_stream *streams;
        size_t stream_count, stream_cap;
        uint32_t *room; /* scratch space for sorting */
        size_t width, at;
        double jobs_cpus, stream_work; /* sums over all jobs */
        struct eta_flow flow;
        bool flows;
        size_t *cursor; /* position in each stream, and work done */
        double *done;
};
/* Starts with all waiting buckets, and `also`, which may be one of them (NULL: none). */
void eta_turns_begin(struct eta_turns *t, struct core *c, struct bucket *also);
/* Performs one step with `all` processors, of which `free` are free; the same numbers in each call. Returns
 * the approximate work in tenths of microseconds; 0: finished, and `order` is valid. */
unsigned eta_turns_step(struct eta_turns *t, double all, double free);
void eta_turns_end(struct eta_turns *t);
void eta_turns_bucket_gone(struct eta_turns *t, const struct bucket *b);
void eta_turns_request_gone(struct eta_turns *t, const struct request *r);
