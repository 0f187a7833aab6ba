/* sim: runs drover-sim, which has the simulator, in place of this program, with the same arguments. They
 * are first read here with the same table, so that errors and --help do not need the other program. */
#include <errno.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/program.h"
#include "cli/command/commands.h"
#include "cli/terminal/cli.h"

int cmd_sim(struct cli *cli, const struct options *o)
{
        struct args argv ARGS_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, word BUF_CLEANUP = {0};
        struct err err;

        (void)cli;
        if (program_find("drover-sim", &path, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        args_add(&argv, STR("drover-sim"));
        for (size_t i = 0; i < o->given_count; i++) {
                buf_reset(&word);
                buf_printf(&word, "--%s", o->given[i].row->name);
                if (o->given[i].text)
                        buf_printf(&word, "=%s", o->given[i].text);
                args_add(&argv, buf_view(&word));
        }
        args_add(&argv, STR("--"));
        for (size_t i = 0; i < o->word_count; i++)
                args_add(&argv, str_of(o->words[i]));
        execv(buf_z(&path), argv.v);
        return cli_error(CLI_FAILED, "%s: %s", buf_z(&path), strerror(errno));
}
