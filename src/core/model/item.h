/* item: the rows of a part's item table, and the expansion of a template's texts for one member. */
#pragma once
#include "base/str.h"
#include "classad/symbols.h"
#include "core/model/names.h"

/* Reads the values of a row, borrowed, at most `max`. Returns their number; 0: there is no such row. */
size_t part_row(const struct part *p, uint64_t row, struct str *values, size_t max);
#define LATE_TEXT_MAX (2u << 20)
/* Appends the text with the macros of a member expanded, and subtracts the bytes read and written from *left,
 * which begins with LATE_TEXT_MAX for all late attributes of a member. Adds the work to core.late_steps.
 * Returns as macro_expand does. */
int part_expand(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                struct str text, size_t *left, struct buf *out, struct err *err);
/* Evaluates a job's text or number that is asked for outside of what is charged for conditions, and of many
 * jobs in one turn: an expression that takes more than some steps has no value. Otherwise as eval_string and
 * eval_integer. */
bool item_text(struct core *c, const struct ad *ad, symbol name, struct str *ret);
bool item_integer(struct core *c, const struct ad *ad, symbol name, int64_t *ret);
/* Does what core_member_text does, also for a request that has not been shown (request_show). */
int request_member_text(struct core *c, const struct request *r, uint32_t member, symbol name,
                        struct buf *to);
