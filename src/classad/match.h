/* match: matching of two ads. Two ads match if both `Requirements` are true or a nonzero number; missing
 * Requirements, undefined, error or a string are a refusal. */
#pragma once
#include "classad/eval.h"

enum match { MATCH_YES, MATCH_LEFT_REFUSES, MATCH_RIGHT_REFUSES };

/* Evaluates the Requirements of left first. Both ads have the same symbol table. */
enum match match_ads(struct eval *ev, const struct ad *left, const struct ad *right);
bool match_one_way(struct eval *ev, const struct ad *my, const struct ad *target); /* my Requirements hold */
double match_rank(struct eval *ev, const struct ad *my,
                  const struct ad *target); /* my Rank; no number is 0 */

/* Finds the first clause of my's Requirements, in the order written, that is not true for `target`.
 * Returns its number, and its value in *ret_value; -1: the Requirements hold. Without Requirements: 0, and
 * *ret_clauses is 0. */
int match_first_refusal(struct eval *ev, const struct ad *my, const struct ad *target, unsigned *ret_clauses,
                        struct value *ret_value);
