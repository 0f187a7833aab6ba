/* fill: values that a place fills in for the $$() references in a job's attributes (base/job/match_macro.h).
 *
 * References are evaluated once, when members are matched and both ads are at hand. The values are logged
 * with EVENT_FILLED, sent to the agent with the assignment, and set in the job's ad under HTCondor's names:
 * MATCH_Name is the place's attribute Name, MATCH_EXP_Args the attribute Args with all values inserted. They
 * remain until the job is matched again.
 *
 * Packed values hold for each reference its inside, whether the value is text, and the value as written.
 */
#pragma once
#include "base/pack.h"
#include "core/model/names.h"

struct fill {
        struct str inside, value;
        bool is_text; /* a string or a default; false: a literal of another type */
};
/* Reads the next of packed values and advances *rest. Returns false at the end. */
bool fill_next(struct str *rest, struct fill *ret);

struct need;

#define FILL_VALUES_MAX (64u << 10) /* size of the packed values of one job */

bool fill_wanted(const struct part *p); /* returns whether some member of the part has references */

enum fill_result {
        FILL_SAME,    /* the values hold for every member of the part */
        FILL_VARIES,  /* the values hold for this member */
        FILL_MISSING, /* the place has no value for a reference of this member, whose inside is in *ret */
        FILL_MISSING_SAME, /* the same, for every member of the part */
};
/* Evaluates the references of a member that takes `need` of the queue. *ret: packed values. A member whose
 * references take more than a number of steps together lacks a value. Counts the work in core_steps. */
enum fill_result fill_member(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                             const struct queue *q, const struct need *need, struct buf *ret);
/* Sets the MATCH_… attributes in a member's ad. */
void fill_show(struct core *c, const struct part *p, struct str values, struct ad *ad);
