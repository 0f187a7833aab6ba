#include <stdio.h>

#include "cli/slurm/slurm.h"

const struct slurm_tool *const slurm_tools[] = {&slurm_sbatch, &slurm_squeue, &slurm_scancel,
                                                &slurm_sacct,  &slurm_sinfo,  NULL};

int slurm_error(int code, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        return cli_error(code, "error: %s", buf_z(&text));
}
