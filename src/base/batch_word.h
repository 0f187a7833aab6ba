/* batch_word: the attributes of a job that are words for a batch system, as +SlurmAccount = "physics" makes
 * one.
 *
 * Their names begin with that of a runner (run/runners.def) or with "Batch", for any of them, in any case.
 * The server sends them to the agent with the job; a reader of descriptions knows that their texts need
 * quotes.
 */
#pragma once
#include "base/str.h"

bool batch_word_is(struct str attribute);
