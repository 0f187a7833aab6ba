/* leases: an attempt that is not renewed in time is lost. */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

struct leases {
        int64_t due_ms; /* on the steady clock: no lease ends before; 0: look */
};

/* Ends the leases whose time has come; milliseconds to the next end, INT64_MAX when there is none. */
int64_t leases_end(struct core *c);
void lease_began(struct core *c, const struct job *j); /* an attempt is there that was not: its end counts */
