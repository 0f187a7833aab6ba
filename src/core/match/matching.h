/* matching: what the files of this part keep from one pass to the next. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct matching {
        uint64_t looks;       /* pairs that were looked at in matching, ever, and what giving is worth */
        size_t reached_at;    /* where dispatch.c goes on to look for buckets whose stores answer */
        uint64_t choice;      /* of a place; counts */
        uint64_t searches;    /* of places.c, ever */
        uint64_t passed_over; /* members that were kept for a better place, ever */
        int64_t delay_due_ms; /* when those that wait for a better place are looked at; 0: nobody does */
        bool wrong_choice;    /* by config.check_choices */
        bool any_overrun, any_kept_back; /* overrun_tick has something to do */
};
