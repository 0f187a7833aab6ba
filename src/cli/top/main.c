/* drover-top: what `drover top` becomes. A program of its own, so that `drover` does not link ncurses. */
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/top/top.h"

int main(int argc, char **argv)
{
        struct cli cli = {.now_ms = clock_wall_ms(), .terminal = true};
        struct options o OPTIONS_CLEANUP;
        struct err err;
        int code;

        if (options_read(&o, command_find(STR("top")), argc - 1, argv + 1, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        cli.dir = options_text(&o, "dir");
        code = top_run(&cli);
        api_close(&cli);
        return code;
}
