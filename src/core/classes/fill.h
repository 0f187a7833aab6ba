/* fill: what the place that a job is given to fills in: the $$() references of its attributes
 * (base/match_macro.h).
 *
 * They are evaluated once, when members are given, for then both ads are there; the values go into the log
 * with the event `filled`, to the agent with the assignment, and into the job's ad as HTCondor names them:
 * MATCH_Name is the place's attribute Name, MATCH_EXP_Args the attribute Args with all values in it. They
 * stay until the job is given again.
 *
 * Values travel packed: for each reference its inside, whether it is text, and the value as it is written.
 */
#pragma once
#include "base/pack.h"
#include "core/model/names.h"

struct fill {
        struct str inside, value;
        bool is_text; /* a string, or a default; otherwise a literal of another type */
};
/* The next of packed values; false at their end. *rest is moved behind it. */
bool fill_next(struct str *rest, struct fill *ret);

struct need;

bool fill_wanted(const struct part *p); /* some member of the part has references */

enum fill_result {
        FILL_SAME,         /* the values are those of every member of the part */
        FILL_VARIES,       /* those of this member */
        FILL_MISSING,      /* *ret holds the inside of a reference that the place gives no value for; of this
                              member's */
        FILL_MISSING_SAME, /* the same, for every member */
};
/* What the queue fills in for a member that takes `need` of it. *ret: packed values. */
enum fill_result fill_member(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                             const struct queue *q, const struct need *need, struct buf *ret);
/* Sets MATCH_… in a member's ad. */
void fill_show(struct core *c, const struct part *p, struct str values, struct ad *ad);
