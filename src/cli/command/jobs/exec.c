/* drover exec and drover shell: run a command, or a shell, beside a job's program. */
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client/attach.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"

/* Warns if standard input is a pipe, because exec does not read it without -i. */
static void say_unread(void)
{
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        struct stat st;

        if (fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode) && poll(&p, 1, 0) == 1 &&
            (p.revents & POLLIN))
                cli_note("standard input is a pipe, and is passed on with -i only");
}

static int run_attached(struct cli *cli, const char *word, struct attach *a)
{
        struct buf id BUF_CLEANUP = {0};
        int code;

        if (a->terminal && !attach_has_terminal())
                return CLI_USAGE;
        code = jobs_one(cli, word, &id);
        a->job = buf_z(&id);
        return code == 0 ? attach_run(cli, a, NULL) : code;
}

int cmd_exec(struct cli *cli, const struct options *o)
{
        struct attach a = {.words = o->words + 1,
                           .count = o->word_count - 1,
                           .input = options_flag(o, "stdin"),
                           .terminal = options_flag(o, "terminal")};
        int code = run_attached(cli, o->words[0], &a);

        if (!a.input && !a.terminal)
                say_unread();
        return code;
}

int cmd_shell(struct cli *cli, const struct options *o)
{
        static const char *const shell[] = {
                "sh", "-c", "if command -v bash >/dev/null; then exec bash; else exec sh; fi"};
        struct attach a = {.words = shell, .count = 3, .input = true, .terminal = true};

        return run_attached(cli, o->words[0], &a);
}
