/* formats: the hierarchy of Galaxy's file formats, as in the registry of Galaxy 24.2. */
#pragma once
#include "base/str.h"

/* Returns whether a file of the first format is also one of the second. A format that Galaxy does not know
 * is only a kind of itself. */
bool format_is(struct str format, struct str of);
