/* top: runs drover-top, which has ncurses, in place of this program. */
#include <errno.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/program.h"
#include "cli/command/commands.h"

int cmd_top(struct cli *cli, const struct options *o)
{
        struct args argv ARGS_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct err err;

        (void)o;
        if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
                return cli_error(CLI_USAGE, "top is for a terminal: use `drover queue` and `drover agents`");
        if (program_find("drover-top", &path, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        args_add(&argv, STR("drover-top"));
        if (cli->dir) {
                args_add(&argv, STR("--dir"));
                args_add(&argv, str_of(cli->dir));
        }
        execv(buf_z(&path), argv.v);
        return cli_error(CLI_FAILED, "%s: %s", buf_z(&path), strerror(errno));
}
