/* batch_word: attributes of a job that are passed to a batch system, such as +SlurmAccount = "physics".
 *
 * Their names begin with that of a batch system, mostly as a runner has it (run/runners.def; Lsf is one of
 * the runner exec), or with "Batch" for all of them, in any case. The server sends them to the agent with the
 * job; a reader of descriptions knows that their texts need quotes.
 */
#pragma once
#include "base/str.h"

bool batch_word_is(struct str attribute);
