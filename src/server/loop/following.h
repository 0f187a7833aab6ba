/* following: what a server that only reads another's queue knows of that (daemon/follow.h). */
#pragma once
#include <stdatomic.h>
#include <stdint.h>

struct following {
        char *leader; /* where writes go: an address, or words; from the leader's record */
        /* Boot clock: a time at which all that the leader had acknowledged before is known here; 0: none yet.
         * Any thread. */
        atomic_int_least64_t current_ms;
};
