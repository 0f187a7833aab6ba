/* edit: what a user has changed of jobs that wait, after the submit.
 *
 * Templates are never changed. Members that were edited come into another part of their request, which has a
 * number and a template of its own, and shares members' numbers, items and input files with the part that
 * they were submitted in: what was sent to an agent under a part's number stays true. Members with the same
 * changes are one group, wherever they come from.
 *
 * Changes travel packed (model/changes.h). Groups come from events and are part of snapshots; a shadow, which
 * has no templates, has groups without parts.
 */
#pragma once
#include "base/set.h"
#include "core/model/changes.h"
#include "core/model/request.h"

#define EDIT_GROUPS_MAX 1000u /* of a request */

struct edit_part {
        uint32_t base, kib; /* base: the number of the part that they were submitted in */
        struct part part;
};
struct edit_group {
        uint32_t serial;
        struct str changes; /* owned */
        struct set members;
        struct edit_part *parts; /* by base */
        uint32_t part_count;
};
struct edits {
        struct set members;         /* of all groups */
        struct edit_group **groups; /* by serial */
        uint32_t count, cap, next_serial;
};

/* One part after an edit. */
struct edit_step {
        const struct part *from;
        struct str changes; /* all of them, with those of before */
        uint32_t first;     /* a member that is edited */
        bool is_new;        /* no part has these changes yet */
};
/* Calls fn for each part, edited before or not, that has some of the members, until it returns another value
 * than 0, which is returned. `changes` are changes_ok. */
int edits_each(const struct request *r, const struct set *members, struct str changes,
               int (*fn)(void *arg, const struct edit_step *step), void *arg);
/* The members, none of which has an attempt, are edited; their buckets are the caller's to make anew. Sets
 * *ret_kib to what the request takes of memory beside what it took (below 0: less). 0; -EINVAL, -E2BIG with
 * err: nothing, or a part of it, is done. */
int edits_apply(struct core *c, struct request *r, const struct set *members, struct str changes,
                int64_t *ret_kib, struct err *err);
/* One group of a snapshot; those of lower serials came before. As edits_apply. */
int edits_restore(struct core *c, struct request *r, uint32_t serial, const struct set *members,
                  struct str changes, int64_t *ret_kib, struct err *err);
void edits_continue(struct request *r, uint32_t next_serial); /* serials go on from here, or above */
void edits_free(struct core *c, struct request *r);
/* KiB that are counted for the template of an edited part. */
uint32_t edit_kib(const struct job_template *t);
size_t edits_bytes(const struct request *r); /* without templates */
/* Properties that parts share with those they come from may have changed: inputs, estimates, stores. */
void edits_follow(struct request *r);
const struct set *edits_members(const struct request *r); /* that were edited */
/* The changes made for this member; STR_NONE: none. */
struct str edits_of(const struct request *r, uint32_t member);

/* The parts of a request, edited ones behind the others, and which members are in each. */
struct piece {
        struct part *part;
        uint32_t number;        /* as a part's */
        const struct set *only; /* of the part's range; NULL: all that were not edited */
};
uint32_t request_piece_count(const struct request *r);
struct piece request_piece(const struct request *r, uint32_t i);
void piece_keep(const struct request *r, const struct piece *p, struct set *members); /* its, of them */
uint64_t piece_next(const struct request *r, const struct piece *p, uint64_t from);   /* or SET_END */
