/* methods: the functions of expressions, and the methods of their values. Each returns 0 with *ret; or
 * -EINVAL or -E2BIG with err, which names what is not supported or invalid. */
#pragma once
#include "jdl/galaxy/expression.h"

/* calls NAME(arguments) */
int builtin_call(struct expressions *x, struct str name, const struct datum *arguments, struct datum **ret,
                 struct err *err);
/* The same of a value that is a function, also of one that a template has defined. */
int value_call(struct expressions *x, const struct datum *function, const struct datum *arguments,
               struct datum **ret, struct err *err);
/* Returns the function of this name as a value; NULL: there is none. */
struct datum *builtin_named(struct expressions *x, struct str name);
/* Calls self.NAME(arguments); append and extend change self. */
int method_call(struct expressions *x, struct datum *self, struct str name, const struct datum *arguments,
                struct datum **ret, struct err *err);
