/* sizes: sizes of the input files of a submit, as far as they can be read on this machine, so that the
 * server can count the bytes that a place would have to fetch. Files that are sent along are counted by the
 * server. */
#pragma once
#include "jdl/form/form.h"

/* Sets TransferInputSizes in each part that does not set it, to the sizes of those elements of TransferInput
 * that are plain files here and the same for all members. Unknown sizes are left empty; if none is known,
 * nothing is set. */
void sizes_fill(struct form *f);
