#include "base/sm.h"

#include <stdio.h>
#include <stdlib.h>

bool sm_may(const struct sm *sm, unsigned from, unsigned to)
{
        return from < sm->count && to < sm->count && (sm->moves[from] & SM_TO(to));
}

void sm_check(const struct sm *sm, unsigned from, unsigned to)
{
        if (sm_may(sm, from, to))
                return;
        fprintf(stderr, "%s: illegal move from %s to %s\n", sm->name, sm_state(sm, from), sm_state(sm, to));
        abort();
}

const char *sm_state(const struct sm *sm, unsigned state)
{
        return state < sm->count && sm->states[state] ? sm->states[state] : "?";
}
