/* operators: what the operators of expressions make of two values, as Python does. */
#pragma once
#include "jdl/galaxy/expression.h"

/* op: + - * / // % == != < <= > >= in "not in". ret may be where a or b stands. 0; -EINVAL or
 * -E2BIG with err, which names what doesn't fit. */
int operator_apply(struct expressions *x, const char *op, struct datum *a, struct datum *b,
                   struct datum **ret, struct err *err);
