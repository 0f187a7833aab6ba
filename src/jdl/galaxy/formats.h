/* formats: which of Galaxy's formats is a kind of which, as the registry of Galaxy 24.2 has them. */
#pragma once
#include "base/str.h"

/* Is a file of the first format also one of the second? A format that Galaxy does not know is its own kind
 * only. */
bool format_is(struct str format, struct str of);
