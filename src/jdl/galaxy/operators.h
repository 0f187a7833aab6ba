/* operators: the operators of expressions, with Python's results. */
#pragma once
#include "jdl/galaxy/expression.h"

/* op: + - * / // % == != < <= > >= in "not in" is "is not". ret may point to a or b. Returns 0; -EINVAL or
 * -E2BIG with err, which names what is invalid. */
int operator_apply(struct expressions *x, const char *op, struct datum *a, struct datum *b,
                   struct datum **ret, struct err *err);
