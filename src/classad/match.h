/* match: do two ads accept each other? Both `Requirements` must be true or a nonzero number; a missing one,
 * undefined, error or a string is a refusal. */
#pragma once
#include "classad/eval.h"

enum match { MATCH_YES, MATCH_LEFT_REFUSES, MATCH_RIGHT_REFUSES };

/* left is asked first. Both ads have the same symbol table. */
enum match match_ads(struct eval *ev, const struct ad *left, const struct ad *right);
bool match_one_way(struct eval *ev, const struct ad *my, const struct ad *target); /* my Requirements hold */
double match_rank(struct eval *ev, const struct ad *my,
                  const struct ad *target); /* my Rank; no number is 0 */

/* Why `my` refuses `target`: the first clause of its Requirements that is not true, in the order written.
 * Returns its number, or -1 when they hold; *ret_value is what the clause gave. With no Requirements: 0, and
 * *ret_clauses is 0. */
int match_first_refusal(struct eval *ev, const struct ad *my, const struct ad *target, unsigned *ret_clauses,
                        struct value *ret_value);
