/* workers: processes that do the items of a list, several at a time.
 *
 * Each worker takes the next item until none is left. A worker that dies, or shows no sign of life for too
 * long, is replaced, and its item is done once more. How many work at once is measured: the number doubles as
 * long as that makes the whole faster, goes back by one step when it does not, and is tried again from time
 * to time, because the links and the machine change. workers_run() forks, so it is for a process with one
 * thread.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define WORKERS_MAX   64u /* at least TUNING_STREAMS_MAX of move/tuning.h */
#define WORKERS_TRIED 32u
#define WORKERS_LIVES 5 /* workers that one item may bring down */

/* The part of a worker's state that it shares with the process that started it. */
struct worker {
        atomic_uint beats;           /* signs of life */
        atomic_uint_fast64_t moved;  /* bytes of its present item */
        atomic_uint_fast64_t claim;  /* bytes that its present item has claimed in workers.claimed */
        atomic_uint_fast64_t begins; /* its present item plus one; 0: none */
};

/* Totals of all workers, in shared memory. */
struct workers_sum {
        atomic_uint_fast64_t next, bytes, claimed, tries, done;
        atomic_bool again, refused, denied; /* some item failed with MOVER_AGAIN or an error of this machine;
                                               with MOVER_REFUSED or MOVER_DENIED; a credential was refused */
        atomic_uint wanted;                 /* number of workers that there should be */
        atomic_uint told;                   /* 1: `first` is being written, 2: it is the first error */
        struct err first;
};

struct workers_spec {
        size_t count;
        unsigned most;      /* greatest number at once, 1 to WORKERS_MAX */
        bool fixed;         /* `most` from the beginning */
        uint64_t silent_ms; /* time without a sign of life after which a worker is ended */
        /* In a worker: does an item, and adds to the sums what it has moved and tried. Calls worker_beat at
         * least about every second. Returns 0, or an outcome of move/mover.h, or -errno, with err. */
        int (*work)(void *arg, struct worker *me, struct workers_sum *sum, size_t item, struct err *err);
        /* In the process that waits, some times a second. Returns 0, or -errno: all workers are ended. */
        int (*alive)(void *arg, uint64_t bytes, uint64_t done);
        void *arg;
};

/* A number of workers, and what the measured units (bytes, and 64 KiB for each item) a second were. */
struct workers_tried {
        unsigned workers;
        uint64_t bytes_per_s, items_per_s;
};
struct workers_report {
        uint64_t bytes, tries;
        size_t done, failed;
        bool again, refused, denied;
        struct err first; /* the first error; "": none */
        struct workers_tried tried[WORKERS_TRIED];
        unsigned tried_count, last; /* last: workers at the end */
};

/* Does all items. Returns 0, whatever came of them; or -errno, of `alive` or because no process can be made.
 */
int workers_run(const struct workers_spec *s, struct workers_report *ret);
static inline void worker_beat(struct worker *w, uint64_t moved)
{
        atomic_store(&w->moved, moved);
        atomic_fetch_add(&w->beats, 1);
}
