/* sizes: how large the input files of a submit are, as far as they can be seen from here, so that the server
 * can count what a place would have to fetch. Files that are sent along are counted by the server itself. */
#pragma once
#include "jdl/form.h"

/* Gives each part that says nothing about the sizes of its inputs TransferInputSizes, with the sizes of those
 * elements of TransferInput that are plain files here and are the same for all members. What is not known is
 * left empty; where nothing is, nothing is set. */
void sizes_fill(struct form *f);
