/* leases: ends attempts as lost whose lease was not renewed in time. */
#pragma once
#include "core/model/names.h"
#include <stdint.h>

struct leases {
        int64_t due_ms; /* steady clock: no lease ends before this time; 0: to be computed */
};

/* Ends leases that are over. Returns the milliseconds to the next end; INT64_MAX: there is none. */
int64_t leases_end(struct core *c);
void lease_began(struct core *c, const struct job *j); /* takes the lease of a new attempt into account */
