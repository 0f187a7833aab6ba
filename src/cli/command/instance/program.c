/* server and agent: run the daemon in place of this program, with the same arguments. backup, restore and
 * config check: run droverd with the corresponding option. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/program.h"
#include "cli/command/commands.h"
#include "cli/terminal/cli.h"

#define SAID_MAX 4096

/* Executes the program in place of this one. Returns an exit code when that fails. */
static int program_exec(const struct cli *cli, const char *name, const char *option, const struct options *o)
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
        return program_exec(cli, strcmp(o->command->name, "server") == 0 ? "droverd" : "drover-agent", NULL,
                            o);
}

int cmd_backup(struct cli *cli, const struct options *o)
{
        return program_exec(cli, "droverd", "--backup", o);
}

int program_check_config(struct cli *cli, const char *file)
{
        const char *words[] = {"--config", file};
        const struct options o = {.words = words, .word_count = file ? 2 : 0};

        if (!cli->dir && !getenv("DROVER_DIR"))
                cli->dir = "."; /* only the file matters */
        return program_exec(cli, "droverd", "--check-config", &o);
}

int program_checks_settings(const char *dir, struct err *err)
{
        struct buf path BUF_CLEANUP = {0}, said BUF_CLEANUP = {0};
        struct args argv ARGS_CLEANUP = {0};
        struct str rest, line = STR_NONE;
        char piece[1024];
        int ends[2], status = 0;
        ssize_t n;
        pid_t pid;

        if (program_find("droverd", &path, NULL) != 0 || pipe2(ends, O_CLOEXEC) < 0)
                return 0;
        args_add(&argv, STR("droverd"));
        args_add(&argv, STR("--dir"));
        args_add(&argv, str_of(dir));
        args_add(&argv, STR("--check-config"));
        pid = fork();
        if (pid == 0) {
                dup2(ends[1], STDERR_FILENO);
                dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
                execv(buf_z(&path), argv.v);
                _exit(0);
        }
        close(ends[1]);
        while ((n = read(ends[0], piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
                if (n > 0 && said.n < SAID_MAX)
                        buf_add(&said, piece, (size_t)n);
        close(ends[0]);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        if (status == 0)
                return 0;
        rest = buf_view(&said);
        str_cut(&rest, '\n', &line);
        if (str_starts(line, STR("droverd: ")))
                line = str_skip(line, strlen("droverd: "));
        return err_set(err, -EINVAL, STR_FMT, STR_ARG(line));
}

int cmd_restore(struct cli *cli, const struct options *o)
{
        return program_exec(cli, "droverd", "--restore", o);
}
