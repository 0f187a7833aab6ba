/* locality: which agents hold files that members of a part want for their own, and which members; for the
 * files of core/ only.
 *
 * It follows the agents' caches and the requests both ways, by an index from files to the parts that want
 * them, so that there is something to look at only where an agent does hold something. Members that do not
 * wait any more stay in the sets.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct locality;

/* The member wants this file; called before the file is in its row. Returns how many agents hold it. */
uint32_t locality_wanted(struct core *c, struct inputs *in, uint32_t member, uint64_t file);
/* Nobody asks for these inputs any more. They are freed here, or in slices when they are many. */
void locality_leave(struct core *c, struct inputs *in);
bool locality_leave_slice(struct core *c); /* true: there are more */
void locality_deinit(struct core *c);      /* after all requests are gone */

/* An agent has this file now, or no longer. */
void locality_came(struct core *c, struct core_agent *a, uint64_t file);
void locality_went(struct core *c, struct core_agent *a, uint64_t file);

/* Members that have files of their own at this agent; NULL: there are none. Borrowed until the core changes.
 */
const struct set *locality_members(const struct inputs *in, const struct core_agent *a);
/* The same for one agent after the other, in no order: size_t at = 0; while ((members = locality_next(...))).
 */
const struct set *locality_next(const struct inputs *in, size_t *at, struct core_agent **ret_agent);
size_t locality_bytes(const struct locality *n);
bool locality_ok(const struct core *c, const struct inputs *in); /* for core_check; in may be NULL */
