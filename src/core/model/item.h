/* item: the rows of a part, and what the texts of its template come to for one member. */
#pragma once
#include "base/str.h"
#include "classad/symbols.h"
#include "core/model/names.h"

size_t part_row(const struct part *p, uint64_t row, struct str *values, size_t max);
/* Appends the text with the macros of a member in it filled in, and takes from *left the bytes that were
 * looked at and written: it begins with LATE_TEXT_MAX for all late attributes of a member. The work is
 * counted in core.late_steps. As macro_expand. */
#define LATE_TEXT_MAX (2u << 20)
int part_expand(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                struct str text, size_t *left, struct buf *out, struct err *err);
/* As core_member_text, of a request that need not be shown. */
int request_member_text(struct core *c, const struct request *r, uint32_t member, symbol name,
                        struct buf *to);
