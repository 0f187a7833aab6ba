/* allowance: how much of a thread's time each user's texts may take for what nobody waits for in a call of
 * the API: notices about jobs, and answers to their programs.
 *
 * A user has a burst, and a share of the time that passes. What is asked for when the allowance is spent is
 * left out or refused by the caller, so that one user's expressions delay nobody else's calls. Work is
 * measured when it is done, and may cost more than is left: a debt is paid back by time. Not thread-safe.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct allowances;
/* burst_ns: what a user may take at once; per_s_ns: in each second, in the long run. */
struct allowances *allowances_new(int64_t burst_ns, int64_t per_s_ns);
void allowances_free(struct allowances *a); /* NULL is fine */

/* Returns whether the user has anything left. now_ms: a clock that never goes back. */
bool allowance_left(struct allowances *a, struct str user, int64_t now_ms);
void allowance_spend(struct allowances *a, struct str user, int64_t took_ns);
