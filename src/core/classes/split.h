/* split: puts the members of a request into buckets, in slices.
 *
 * In a request whose late attributes matter for matching, each member is looked at, of up to millions. The
 * new buckets are kept aside: until split_end the request has its former buckets, or none. Between slices
 * anything may happen except the end of the request, before which the owner of the split must end or free it.
 * If another attribute becomes significant in between, the split begins anew by itself.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stdint.h>

struct split;

/* The cost of a step is counted in members that are like an earlier one, about 0.6 µs each. */
#define SPLIT_STEPS 64u /* steps of evaluation that cost as much as such a member */
#define SPLIT_CLASS 25u /* cost of finding the class of a member */

/* Begins a split. It stops early with more buckets than classes_max (split_too_many); 0: no limit. */
struct split *split_new(struct core *c, struct request *r, uint32_t classes_max);
/* Continues until *budget is used up, and subtracts the work from it. Returns whether there is more. */
bool split_some(struct split *s, uint32_t *budget);
/* Returns whether there are more buckets than classes_max. */
bool split_too_many(const struct split *s);
struct request *split_request(const struct split *s);
/* Gives the request the new buckets, with the members that were idle, and frees s. To be called when nothing
 * is left to do. */
void split_end(struct split *s);
/* Frees a split that has not ended: the request remains as it is; NULL is fine. */
void split_free(struct split *s);

/* Begins anew, after a change of the request's parts. */
void split_again(struct split *s);

/* Puts these members into new buckets at once, beside the buckets of the others. Not for a shadow. */
void request_split_some(struct core *c, struct request *r, const struct set *members);
/* Puts all members into new buckets at once. */
void request_split(struct core *c, struct request *r);
