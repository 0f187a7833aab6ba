/* slurm: the Slurm-compatible commands, one file each: tool_NAME.c, and what they share. main.c finds one by
 * the name by which it was called. */
#pragma once
#include "cli/slurm/words.h"
#include "cli/terminal/cli.h"

extern const struct slurm_tool slurm_sbatch, slurm_squeue, slurm_scancel, slurm_sacct, slurm_sinfo,
        slurm_scontrol, slurm_srun;

void slurm_version_print(void);

/* Prints "sbatch: error: …" on standard error, and returns the code. */
int slurm_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
