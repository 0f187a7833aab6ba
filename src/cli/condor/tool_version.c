/* condor_version: programs look for a version number in the first line to know which flags exist, so it is
 * that of the HTCondor whose commands are imitated. */
#include <ctype.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "base/job/condor_like.h"
#include "cli/condor/condor.h"

static void machine(char ret[65])
{
        struct utsname u;

        snprintf(ret, 65, "%s", uname(&u) == 0 ? u.machine : "unknown");
        for (char *p = ret; *p; p++)
                *p = (char)toupper((unsigned char)*p);
}

void condor_version_print(void)
{
        char arch[65];

        machine(arch);
        printf(CONDOR_LIKE_VERSION "\n$CondorPlatform: %s_Linux $\n", arch);
}

static int version(struct cli *cli, const struct flags *f)
{
        char arch[65];

        (void)cli;
        machine(arch);
        if (flags_has(f, "arch"))
                puts(arch);
        else if (flags_has(f, "opsys"))
                puts("LINUX");
        else
                condor_version_print();
        return 0;
}

static const struct flag_row rows[] = {
        {"arch", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Show this machine's architecture."},
        {"opsys", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Show this machine's operating system."},
        {0},
};
const struct condor_tool condor_version = {
        .name = "condor_version",
        .usage = "[-arch | -opsys]",
        .line = "Shows which HTCondor these commands resemble, and Drover's own version.",
        .rows = rows,
        .run = version,
};
