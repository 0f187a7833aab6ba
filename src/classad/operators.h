/* operators: the operators on evaluated operands (private to classad/).
 *
 * None of these looks at scopes or allocates. && || ?: and the ternary, which need not evaluate all operands,
 * are in eval.c; they share operator_truth. Source: the ClassAd language as HTCondor's library 25.x evaluates
 * it.
 */
#pragma once
#include "classad/code.h"

void operator_unary(enum op op, const struct value *x, struct value *ret);
void operator_binary(enum op op, const struct value *x, const struct value *y, struct value *ret);

/* Truth of a value as a condition: a number is true unless 0; strings, lists and the like are an error. */
enum truth { TRUTH_FALSE, TRUTH_TRUE, TRUTH_UNDEFINED, TRUTH_ERROR };
static inline enum truth operator_truth(const struct value *v)
{
        switch (v->type) {
        case VALUE_BOOLEAN: return v->boolean ? TRUTH_TRUE : TRUTH_FALSE;
        case VALUE_INTEGER: return v->integer ? TRUTH_TRUE : TRUTH_FALSE;
        case VALUE_REAL: return v->real != 0 ? TRUTH_TRUE : TRUTH_FALSE;
        case VALUE_UNDEFINED: return TRUTH_UNDEFINED;
        default: return TRUTH_ERROR;
        }
}
