/* methods: what operators, functions and methods of expressions do with values. Each: 0 with *ret; -EINVAL or
 * -E2BIG with err, which names what is not supported or doesn't fit. */
#pragma once
#include "jdl/galaxy/expression.h"

/* op: + - * / // % == != < <= > >= in "not in" */
int operator_apply(struct expressions *x, const char *op, struct datum *a, struct datum *b,
                   struct datum **ret, struct err *err);
int builtin_call(struct expressions *x, struct str name, const struct datum *arguments, struct datum **ret,
                 struct err *err);
int method_call(struct expressions *x, struct datum *self, struct str name, const struct datum *arguments,
                struct datum **ret, struct err *err);
