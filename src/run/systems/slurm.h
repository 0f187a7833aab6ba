/* slurm: the part that Slurm's commands and its daemon slurmrestd share.
 *
 * Both use one form of a script's head, and one form of lines about jobs and nodes: those of squeue and
 * sinfo as slurm.c asks for them. slurm_rest.c makes a request from the former, and such lines from answers,
 * so there is one table of options, one of states and one of reasons. The calls are those of struct
 * batch_system (batch.h), which is their contract.
 */
#pragma once
#include "run/batch/batch.h"

#define SLURM_OTHERS                                                                                         \
        "*" /* index in a line about all members of an array that have no line of their own                  \
             */

/* The batch step is the one that runs the script. */
#define SLURM_ENERGY "sstat --noheader --parsable2 --format=ConsumedEnergyRaw --jobs=\"$SLURM_JOB_ID.batch\""
/* OverMemoryKill: the state is FAILED */
#define SLURM_MEMORY_WORDS "error: Exceeded job memory limit"

extern const char *const slurm_settings[]; /* names of settings, NULL behind the last */
int slurm_check(const struct batch_settings *s, struct err *err);
int slurm_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                    struct err *err);
void slurm_naming(const char *name, const char *log, unsigned count, struct buf *out);
/* Returns whether the refusal may be temporary, or may not be the controller's own: the connection failed,
 * for example. */
bool slurm_unsure(struct str errors);
/* Returns whether a limit on the jobs of a user, an account or a QoS was met. */
bool slurm_full(struct str errors);
extern const char *const slurm_limited_by[];
bool slurm_refused_array(struct str errors);
void slurm_native_of(const char *native, unsigned index, struct buf *out);
void slurm_status_read(struct str out, batch_take_fn *take, void *arg);
void slurm_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c);

#define SLURM_REST_OLD "v0.0.38" /* the API that is of its own form, unlike all later ones */

extern const struct request_service slurm_rest_service;
bool slurm_rest_refused(int exit_code, struct str errors); /* see batch_system.refused */
