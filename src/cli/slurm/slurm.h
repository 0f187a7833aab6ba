/* slurm: the Slurm-compatible commands, one file each: tool_NAME.c, and what they share. main.c finds one by
 * the name by which it was called. Source of their options: Slurm 22.05 to 24.11, manual pages. */
#pragma once
#include "cli/terminal/cli.h"
#include "cli/terminal/words.h"

extern const struct words_tool slurm_sbatch, slurm_squeue, slurm_scancel, slurm_sacct, slurm_sinfo,
        slurm_scontrol, slurm_srun, slurm_salloc;

void slurm_version_print(void);

/* Prints "sbatch: error: …" on standard error, and returns the code. */
int slurm_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
