/* server and agent: run the daemon in place of this program, with the same arguments. backup, restore and
 * config check: run droverd with the corresponding option. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/program.h"
#include "cli/command/commands.h"
#include "cli/terminal/cli.h"

/* Executes the program in place of this one. Returns an exit code when that fails. */
static int become_program(const struct cli *cli, const char *name, const char *option,
                          const struct options *o)
{
        struct args argv ARGS_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct err err;

        if (program_find(name, &path, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        args_add(&argv, str_of(name));
        if (cli->dir) {
                args_add(&argv, STR("--dir"));
                args_add(&argv, str_of(cli->dir));
        }
        if (cli->json)
                args_add(&argv, STR("--json"));
        if (option)
                args_add(&argv, str_of(option));
        for (size_t i = 0; i < o->word_count; i++)
                args_add(&argv, str_of(o->words[i]));
        execv(buf_z(&path), argv.v);
        return cli_error(CLI_FAILED, "%s: %s", buf_z(&path), strerror(errno));
}

int cmd_program(struct cli *cli, const struct options *o)
{
        return become_program(cli, strcmp(o->command->name, "server") == 0 ? "droverd" : "drover-agent", NULL,
                              o);
}

int cmd_backup(struct cli *cli, const struct options *o)
{
        return become_program(cli, "droverd", "--backup", o);
}

int program_check_config(struct cli *cli, const char *file)
{
        const char *words[] = {"--config", file};
        const struct options o = {.words = words, .word_count = file ? 2 : 0};

        if (!cli->dir && !getenv("DROVER_DIR"))
                cli->dir = "."; /* only the file matters */
        return become_program(cli, "droverd", "--check-config", &o);
}

int cmd_restore(struct cli *cli, const struct options *o)
{
        return become_program(cli, "droverd", "--restore", o);
}
