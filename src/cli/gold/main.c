/* drover-gold: Gold's commands over the bank of Drover's API. One program under the names of them all (links
 * in libexec/drover/gold). */
#include <string.h>

#include "cli/client/lookalike.h"
#include "cli/gold/gold.h"

int main(int argc, char **argv)
{
        static const struct words_tool *const tools[] = {
                &gold_gbalance,   &gold_mybalance,  &gold_gdeposit,   &gold_gwithdraw,  &gold_gtransfer,
                &gold_glsalloc,   &gold_gchalloc,   &gold_gquote,     &gold_glsquote,   &gold_greserve,
                &gold_glsres,     &gold_gchres,     &gold_grmres,     &gold_gcharge,    &gold_gchargejob,
                &gold_grefund,    &gold_gstatement, &gold_gusage,     &gold_glstxn,     &gold_gmkproject,
                &gold_gchproject, &gold_glsproject, &gold_gmkaccount, &gold_gchaccount, &gold_glsaccount,
                &gold_glsuser,    &gold_gmkmachine, &gold_gchmachine, &gold_grmmachine, &gold_glsmachine,
                &gold_grmproject, &gold_grmaccount, &gold_grmalloc,   &gold_gchquote,   &gold_grmquote,
                &gold_glsjob,     &gold_gmkjob,     &gold_gchjob,     &gold_grmjob,     &gold_gmkuser,
                &gold_gchuser,    &gold_grmuser,    &gold_gchpasswd,  &gold_goldsh,     NULL};
        static const struct lookalike gold = {.program = "drover-gold",
                                              .system = "Gold's",
                                              .page = "drover-gold(7)",
                                              .tools = tools,
                                              .warns = true,
                                              .version = gold_version_print};
        static char help[] = "--help";

        /* getopt_long cannot tell an option -? from one that it does not know */
        for (int i = 1; i < argc; i++)
                if (strcmp(argv[i], "-?") == 0)
                        argv[i] = help;
        return lookalike_main(argc, argv, &gold);
}
