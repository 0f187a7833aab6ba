/* modules: the functions of Python's modules that templates may import: os.path and re. Each returns 0
 * with *ret; or -EINVAL or -E2BIG with err, which names what is invalid. */
#pragma once
#include "jdl/galaxy/expression.h"

/* Returns whether a template may use `#import NAME`, or `#from NAME import …`. */
bool module_is_known(struct str name);

int module_basename(struct expressions *x, const struct datum *arguments, struct datum **ret,
                    struct err *err);
int module_dirname(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err);
int module_join(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err);
int module_splitext(struct expressions *x, const struct datum *arguments, struct datum **ret,
                    struct err *err);
/* Implement re.sub(pattern, by, text); re.search and re.match(pattern, text) return true or false. */
int module_sub(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err);
int module_search(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err);
int module_match(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err);
