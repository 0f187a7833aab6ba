/* edit: attributes of waiting jobs that a user has changed after the submit.
 *
 * Templates never change. Edited members move to another part of their request, with its own number and
 * template, which shares the members' numbers, items and input files with the part in which they were
 * submitted. Agents can therefore rely on the template that they have for a part's number. Members with the
 * same changes are one group, regardless of the part that they come from.
 *
 * Changes are packed as described in model/changes.h. Groups come from events and are part of snapshots; in a
 * shadow, which has no templates, groups have no parts.
 */
#pragma once
#include "base/set.h"
#include "core/model/changes.h"
#include "core/model/request.h"

#define EDIT_GROUPS_MAX 1000u /* limit for one request */

struct edit_part {
        uint32_t base, kib; /* base: the number of the part in which the members were submitted */
        struct part part;
};
struct edit_group {
        uint32_t serial;
        struct str changes; /* owned */
        struct set members;
        struct edit_part *parts; /* sorted by base */
        uint32_t part_count;
};
struct edits {
        struct set members;         /* the members of all groups */
        struct edit_group **groups; /* sorted by serial */
        uint32_t count, cap, next_serial;
};

/* A part of a request as an edit makes it anew. */
struct edit_step {
        const struct part *from;
        struct str changes; /* the complete changes, including earlier ones */
        uint32_t first;     /* an edited member */
        bool is_new;        /* no existing part has these changes */
};
/* Calls fn for each part, edited or not, that has some of the members. Stops when fn returns nonzero, and
 * returns that value; otherwise 0. `changes` must pass changes_ok. */
int edits_each(const struct request *r, const struct set *members, struct str changes,
               int (*fn)(void *arg, const struct edit_step *step), void *arg);
/* Edits the members, none of which may have an attempt; the caller makes their buckets anew. Sets *ret_kib to
 * the change of the request's memory in KiB, which may be negative. Returns 0; -EINVAL or -E2BIG with err,
 * with the edit undone or done in part. */
int edits_apply(struct core *c, struct request *r, const struct set *members, struct str changes,
                int64_t *ret_kib, struct err *err);
/* Restores one group of a snapshot, in the order of serials. Otherwise as edits_apply. */
int edits_restore(struct core *c, struct request *r, uint32_t serial, const struct set *members,
                  struct str changes, int64_t *ret_kib, struct err *err);
/* Sets the lowest serial of the next group. */
void edits_continue(struct request *r, uint32_t next_serial);
void edits_free(struct core *c, struct request *r);
/* Returns the KiB that the template of an edited part counts. */
uint32_t edit_kib(const struct job_template *t);
size_t edits_bytes(const struct request *r); /* memory in bytes, without templates */
/* Copies properties that edited parts share with their base parts (inputs, estimates, stores), after a change
 * of the base parts. */
void edits_follow(struct request *r);
const struct set *edits_members(const struct request *r); /* the edited members */
/* Returns the changes of this member, packed; STR_NONE: none. */
struct str edits_of(const struct request *r, uint32_t member);

/* The parts of a request, original ones first, each with the members that are in it. */
struct piece {
        struct part *part;
        uint32_t number;        /* part number */
        const struct set *only; /* members within the part's range; NULL: all that were not edited */
};
uint32_t request_piece_count(const struct request *r);
struct piece request_piece(const struct request *r, uint32_t i);
/* Removes members that are not in the piece from *members. */
void piece_keep(const struct request *r, const struct piece *p, struct set *members);
/* Returns the first member of the piece from `from` on; SET_END: there is none. */
uint64_t piece_next(const struct request *r, const struct piece *p, uint64_t from);
