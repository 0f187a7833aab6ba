#include "base/system/secret.h"

#include <sys/prctl.h>
#include <sys/resource.h>

/* The kernel takes a limit of one byte as a sign not to start the program that core_pattern names; 0 would
 * start it. */
void secret_no_dumps(void)
{
        struct rlimit l;

        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        if (getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max >= 1) {
                l.rlim_cur = 1;
                setrlimit(RLIMIT_CORE, &l);
        }
}
