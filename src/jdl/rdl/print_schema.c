/* Prints rdl.xsd, for the build. */
#include <stdio.h>

#include "jdl/rdl/elements.h"

int main(void)
{
        BUF_CLEANUP struct buf out = {0};

        schema_write(&rdl_schema, &out);
        return fwrite(out.p, 1, out.n, stdout) == out.n && fflush(stdout) == 0 ? 0 : 1;
}
