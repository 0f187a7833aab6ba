/* split: the members of a request on their way into buckets, some at a time.
 *
 * A request of a million jobs whose late attributes matter has each of them looked at. The new buckets are
 * made aside: until split_end whoever looks at the request sees the ones that it had, or none. In between
 * anything may happen, but for the end of the request: who has begun a split ends or frees it then. When a
 * name becomes significant meanwhile the split begins anew by itself.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct split;

/* What a step costs is counted in members that are like an earlier one, some 0.6 µs each. */
#define SPLIT_STEPS 64u /* of evaluations are worth as much as a member that is like another */
#define SPLIT_CLASS 25u /* to find the class of a member */

/* classes_max: with more buckets than this it ends early (split_too_many); 0: any number. */
struct split *split_new(struct core *c, struct request *r, uint32_t classes_max);
/* Takes what it did off *budget, and stops when that is used up. True: there is more. */
bool split_some(struct split *s, uint32_t *budget);
bool split_too_many(const struct split *s);
struct request *split_request(const struct split *s);
/* There is no more: the request has the new buckets, with those of its members that were idle. Frees it. */
void split_end(struct split *s);
void split_free(struct split *s); /* of one that has not ended: the request stays as it is; NULL is fine */

/* Parts of its request have changed: it begins anew. */
void split_again(struct split *s);

/* These members, at once, into new buckets beside those of the others. Not of a shadow. */
void request_split_some(struct core *c, struct request *r, const struct set *members);
/* All of it at once. */
void request_split(struct core *c, struct request *r);
