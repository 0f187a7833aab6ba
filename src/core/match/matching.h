/* matching: the state that the files of core/match keep from one pass to the next. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct matching {
        uint64_t looks;       /* work done so far: one for each pair looked at, more for a dispatch */
        size_t reached_at;    /* position at which dispatch.c continues its search for reachable buckets */
        uint64_t choice;      /* serial number of the current search for a place */
        uint64_t turns;       /* groups of jobs that were given to a queue so far */
        uint64_t searches;    /* searches that places.c has made so far */
        uint64_t passed_over; /* members that were made to wait for a better place so far */
        int64_t delay_due_ms; /* when the waiting jobs are looked at next; 0: no job waits */
        bool wrong_choice;    /* config.check_choices has found a choice that was not the best */
        bool any_overrun, any_kept_back; /* overrun_tick has something to do */
};
