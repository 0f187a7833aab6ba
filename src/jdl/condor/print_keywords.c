/* Prints the manual's table of keywords. */
#include <stdio.h>

#include "jdl/condor/keywords.h"

int main(void)
{
        BUF_CLEANUP struct buf out = {0};

        keyword_write_manual(&out);
        fwrite(out.p, 1, out.n, stdout);
        return 0;
}
