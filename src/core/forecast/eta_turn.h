/* eta_turn: which waiting buckets come to their turn when, for the files of eta. For the files of core/ only.
 *
 * Found in steps, between which the world may change: what matters of a bucket is read once, when it is
 * found. One that comes later is not among them; one that goes is there without its bucket.
 */
#pragma once
#include "core/forecast/eta_share.h"
#include "core/model/names.h"
#include <stdint.h>

struct idmap;

#define ETA_FIRST_FEW 4u /* jobs of a bucket that are looked at one by one */

struct eta_turn {              /* of a bucket */
        struct bucket *bucket; /* NULL: it is gone */
        uint64_t jobs;         /* that wait; of one that is only asked about, all of its part */
        /* In milliseconds from now, if all processors were alike and could run all jobs: when its first job
         * starts, the one behind the first few, and when all have been given what they need. INFINITY: never.
         */
        double start, rest, end;
        /* eta_turn.c's own: what is read of it */
        uint64_t request, job_class, account; /* of the latter two their serials */
        int64_t priority;
        uint32_t due_s, part, stream;
        double own, points, cpus, cap, own_cap;
        double standing, work, before;
        /* what forecast.c found: when the first starts, Unix milliseconds (0: nobody knows), how much later
         * each behind it, and how long they run */
        int64_t start_ms;
        float step_ms, run_ms;
        int64_t last_ms; /* when the last of the first few starts */
        uint64_t placed;
};

struct eta_turns {
        struct core *core;
        struct eta_turn *v; /* `also` first, then in the order of the requests */
        size_t count, cap;
        uint32_t *order;     /* of v: which comes first */
        bool request_limits; /* some may have only so many jobs of their request under way */
        struct bucket *also;
        /* eta_turn.c's own */
        int stage;
        struct request *next; /* that is looked at next; NULL: all were */
        struct idmap *accounts;
        struct eta_stream *streams;
        size_t stream_count, stream_cap;
        uint32_t *room; /* for sorting */
        size_t width, at;
        double jobs_cpus, stream_work; /* of all jobs */
        struct eta_flow flow;
        bool flows;
        size_t *cursor; /* of each stream: where it is, and how far */
        double *done;
};
/* All that wait, and `also` (NULL: none). */
void eta_turns_begin(struct eta_turns *t, struct core *c, struct bucket *also);
/* One step; about how much work it was, in tenths of microseconds. 0: all is done, and `order` is theirs.
 * `all` processors, of which `free` are: the same ones each time. */
unsigned eta_turns_step(struct eta_turns *t, double all, double free);
void eta_turns_end(struct eta_turns *t);
void eta_turns_bucket_gone(struct eta_turns *t, const struct bucket *b);
void eta_turns_request_gone(struct eta_turns *t, const struct request *r);
