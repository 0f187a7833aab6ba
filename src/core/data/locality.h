/* locality: for each agent, the members of a part whose own files it holds; for the files of core/ only.
 *
 * Kept up to date with the agents' caches and with requests, by an index from files to the parts that want
 * them; an entry exists only where an agent holds something. Members that are no longer idle stay in the
 * sets.
 */
#pragma once
#include "base/set.h"
#include "core/model/names.h"

struct locality;

/* Records that the member wants this file, before the file is in its row. Returns how many agents hold it.
 */
uint32_t locality_wanted(struct core *c, struct inputs *in, uint32_t member, uint64_t file);
/* Removes inputs that are no longer needed, and frees them: at once, or in slices when they are many. */
void locality_leave(struct core *c, struct inputs *in);
bool locality_leave_slice(struct core *c); /* true: there are more */
void locality_deinit(struct core *c);      /* after all requests are gone */

/* The agent has received, or has dropped, this file. */
void locality_came(struct core *c, struct core_agent *a, uint64_t file);
void locality_went(struct core *c, struct core_agent *a, uint64_t file);

/* Returns the members with own files at this agent; NULL: none. Borrowed until the core changes. */
const struct set *locality_members(const struct inputs *in, const struct core_agent *a);
/* Iterates over all agents with such members, in no order: size_t at = 0; while ((members =
 * locality_next(...))). */
const struct set *locality_next(const struct inputs *in, size_t *at, struct core_agent **ret_agent);
size_t locality_bytes(const struct locality *n);
bool locality_ok(const struct core *c, const struct inputs *in); /* for core_check; in may be NULL */
