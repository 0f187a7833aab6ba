/* templates_place: what a job's ad says to the place where it runs: countable things that it wants, and words
 * for a batch system. Part of templates.c. */
#pragma once
#include "classad/ad.h"
#include "classad/eval.h"
#include "server/loop/message.h"

/* RequestNAME, for every NAME but Cpus, Memory and Disk, as t->resources; attributes that begin with Batch,
 * Slurm or GridEngine, and JobBatchName, as t->attributes. */
void templates_place(struct message *m, struct eval *e, const struct ad *ad, Drover__Template *t);
