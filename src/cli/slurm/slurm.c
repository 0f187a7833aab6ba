#include <stdio.h>

#include "cli/slurm/slurm.h"

#define LOOKS_LIKE "22.05.8" /* version of Slurm whose options and columns are imitated */

void slurm_version_print(void)
{
        printf("slurm " LOOKS_LIKE " (Drover " DROVER_VERSION ")\n");
}

int slurm_error(int code, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        return cli_error(code, "error: %s", buf_z(&text));
}
