/* drover-sim: the program that `drover sim` runs. */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command/commands.h"
#include "cli/sim/study.h"

int main(int argc, char **argv)
{
        struct cli cli = {.terminal = isatty(STDOUT_FILENO) == 1};
        struct options o OPTIONS_CLEANUP;
        struct err err;
        struct winsize w;
        int code;

        if (options_read(&o, command_find(STR("sim")), argc - 1, argv + 1, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        cli.json = options_flag(&o, "json");
        if (cli.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0)
                cli.width = w.ws_col;
        code = cmd_sim_run(&cli, &o);
        if (fflush(stdout) != 0 || ferror(stdout))
                return cli_error(CLI_FAILED, "the output could not be written: %s", strerror(errno));
        return code;
}
