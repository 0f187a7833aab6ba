/* locality: for each agent, the members of a part whose own files it holds; for the files of core/ only.
 *
 * They follow the agents' caches, with some delay if much changes, and requests, by an index from files to
 * the parts that want them; an entry exists only where an agent holds something. Members that are no longer
 * idle stay in the sets.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct locality;
struct locality_late;

/* Records that the member wants this file, before the file is in its row. Returns how many agents hold it.
 */
uint32_t locality_wanted(struct core *c, struct inputs *in, uint32_t member, uint64_t file);
/* Removes inputs that are no longer needed, and frees them: at once, or in slices when they are many. */
void locality_leave(struct core *c, struct inputs *in);
bool locality_leave_slice(struct core *c); /* true: there are more */
void locality_init(struct core *c);
void locality_deinit(struct core *c); /* after all requests are gone */

/* The agent has received, or has dropped, this file: it holds it, or not, already. The sets follow with
 * locality_follow and locality_tick. */
void locality_changed(struct core *c, struct core_agent *a, uint64_t file);
/* Lets the sets follow what the agent has reported, as far as that is little. */
void locality_follow(struct core *c, struct core_agent *a);
/* Lets them follow in slices, of all agents in turn. Returns the time until the next slice, or INT64_MAX. */
int64_t locality_tick(struct core *c);
void locality_late_free(struct locality_late *l); /* accepts NULL */

/* Returns the members with own files at this agent; NULL: none. Borrowed until the core changes. */
const struct set *locality_members(const struct inputs *in, const struct core_agent *a);
/* Iterates over all agents with such members, in no order: size_t at = 0; while ((members =
 * locality_next(...))). */
const struct set *locality_next(const struct inputs *in, size_t *at, struct core_agent **ret_agent);
size_t locality_bytes(const struct locality *n);
bool locality_ok(const struct core *c, const struct inputs *in); /* for core_check; in may be NULL */
