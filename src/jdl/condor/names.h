/* names: attributes that expressions of a submit file are likely to mean, for "did you mean". */
#pragma once
#include <stdbool.h>

#include "base/str.h"

/* The known attribute that `name` is one slip of the finger away from; NULL when it is known itself, or none
 * is near. Never an error: places and jobs may have attributes of their own. */
const char *names_near(struct str name);
/* Is it one of the known attributes, in whatever case? */
bool names_known(struct str name);
