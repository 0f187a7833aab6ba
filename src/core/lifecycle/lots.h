/* lots: changes of the space of stores (data/space.h) by jobs and time: a successful job of type reserve
 * creates a lot, one of type release ends it, written and removed bytes are counted when a job ends, and lots
 * end when they have expired and no job writes into them.
 */
#pragma once
#include "core/core.h"
#include "core/data/space.h"

/* Sets the bytes that count for an owner outside of lots, where files came or went that Drover's jobs have
 * not written or removed. Returns 0; CORE_UNKNOWN with err: there is no such store with a capacity;
 * CORE_INVALID with err. */
int core_space_set(struct core *c, struct str store, struct str owner, uint64_t bytes, struct err *err);
/* Ends a lot, when what is being written there has been. Returns 0; CORE_UNKNOWN with err. */
int core_lot_release(struct core *c, struct str store, struct str owner, struct str name, struct err *err);
/* Explains an idle job's wait for space. Returns 0 with the text in *ret_why; CORE_UNKNOWN: it waits for
 * none.
 */
int core_job_space(struct core *c, uint64_t request, uint32_t member, struct err *ret_why);
/* Returns the bytes that each job of the part may write to its store; 0: that is not counted. */
uint64_t core_part_space(struct core *c, uint64_t request, uint32_t part);

/* ---- for the files of core/ only */
/* Checks at submit what jobs of the part say of lots. Returns 0, or -EINVAL with err. */
int lots_check_part(struct core *c, struct str owner, const struct part *p, struct err *err);
/* The change that an attempt's end makes to the space of its store: found out before the attempt's record
 * goes, and emitted behind the event of its end, in the same turn. */
struct lots_end {
        struct space_order order; /* op 0: nothing */
        char name[SPACE_NAME_MAX + 1];
};
void lots_end_find(struct core *c, const struct job *j, const struct core_result *res, struct lots_end *ret);
void lots_end_emit(struct core *c, const struct lots_end *x);
int64_t lots_tick(struct core *c);
