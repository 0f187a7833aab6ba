/* sm: a declared state machine.
 *
 * A module declares its states and the moves that are allowed as a table; one function of the module changes
 * the state, and calls sm_check first. An illegal move is a bug of ours: it aborts, with the names of both
 * states.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct sm {
        const char *name;
        const char *const *states; /* names, count of them; NULL: there is none of this number */
        const uint32_t *moves;     /* moves[from]: bit n set if from -> n is allowed */
        unsigned count;            /* at most 32 */
};

#define SM_TO(state) (1u << (state))

bool sm_may(const struct sm *sm, unsigned from, unsigned to);
void sm_check(const struct sm *sm, unsigned from, unsigned to); /* aborts when the move is not allowed */
const char *sm_state(const struct sm *sm, unsigned state); /* its name; "?" when there is no such state */
