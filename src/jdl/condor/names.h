/* names: attributes that expressions of a submit file are likely to use, for "did you mean". */
#pragma once
#include <stdbool.h>

#include "base/str.h"

/* Returns the known attribute from which `name` differs by one typing error; NULL if `name` is known itself,
 * or none is near. An unknown name is never an error: places and jobs may have attributes of their own. */
const char *names_near(struct str name);
/* Returns whether the name is a known attribute, in any case of letters. */
bool names_known(struct str name);
