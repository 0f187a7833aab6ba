/* condor_transfer_data, condor_tail, condor_ssh_to_job and condor_run: what `drover get`, `drover tail`,
 * `drover shell` and `drover run` do. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/program.h"
#include "cli/client/api.h"
#include "cli/condor/condor.h"
#include "cli/condor/select.h"

struct transfer {
        struct cli *cli;
        struct buf you; /* identity of the caller, from the server */
        int code;
};

/* Runs drover with these words. Returns its exit code; 1 when it could not be run. */
static int run_drover(struct args *words)
{
        struct buf path BUF_CLEANUP = {0};
        struct err err = {""};
        int status = 0;
        pid_t pid;

        if (program_find("drover", &path, &err) != 0)
                return cli_error(1, "%s", err.text);
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
                execv(buf_z(&path), words->v);
                _exit(127);
        }
        if (pid < 0)
                return cli_error(1, "drover could not be run: %s", strerror(errno));
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int fetch_job(void *arg, struct view job)
{
        struct transfer *t = arg;
        struct buf id BUF_CLEANUP = {0}, folder BUF_CLEANUP = {0}, owner BUF_CLEANUP = {0};
        struct args words ARGS_CLEANUP = {0};

        view_text(view_get(job, "id"), &id);
        view_text(view_get(job, "owner"), &owner);
        if (!str_eq(buf_view(&owner), buf_view(&t->you))) {
                t->code = cli_error(
                        1,
                        "job %s is not brought, for it is %s's, who has said into which folder: use "
                        "`drover get --output FOLDER %s`",
                        buf_z(&id), buf_z(&owner), buf_z(&id));
                return 0;
        }
        view_text(view_get(view_get(job, "ad"), "Iwd"), &folder);
        args_add(&words, STR("drover"));
        args_add(&words, STR("get"));
        args_add(&words, STR("--output"));
        args_add(&words, folder.n ? buf_view(&folder) : STR("."));
        args_add(&words, buf_view(&id));
        t->code |= run_drover(&words);
        return 0;
}

static int transfer(struct cli *cli, const struct flags *f)
{
        struct select s SELECT_CLEANUP = {0};
        struct api_answer server API_ANSWER_CLEANUP = {0};
        struct transfer t = {.cli = cli};
        struct select_fetch past = {.address = "/v1/history",
                                    .array = "jobs",
                                    .cursor = "before",
                                    .attributes = STR("Iwd"),
                                    .each = fetch_job,
                                    .arg = &t};
        struct err err = {""};
        int code;

        if (select_words(&s, f, "constraint", &err) != 0)
                return cli_error(1, "%s", err.text);
        if (!s.named && s.constraint.n == 0 && !flags_has(f, "all"))
                return cli_error(1, "which jobs? Give cluster, cluster.proc, a user, -constraint or -all");
        code = api_get(cli, "/v1/server", &server);
        if (code != 0)
                return 1;
        view_text(view_get(server.root, "you"), &t.you);
        past.constraint = buf_view(&s.constraint);
        code = select_fetch(cli, &s, &past);
        buf_deinit(&t.you);
        return code | t.code;
}

static const struct flag_row transfer_rows[] = {
        {"all", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "All jobs of yours that have ended."},
        {"constraint", 1, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only jobs for which this expression is true."},
        {0},
};
const struct condor_tool condor_transfer_data = {
        .name = "condor_transfer_data",
        .usage = "[FLAGS] [CLUSTER | CLUSTER.PROC | USER]...",
        .line = "Brings the outputs of jobs that have ended back to the folders that they were submitted "
                "from.",
        .rows = transfer_rows,
        .words_max = 100000,
        .run = transfer,
};

/* ---- condor_tail */

static int tail(struct cli *cli, const struct flags *f)
{
        struct args words ARGS_CLEANUP = {0};

        (void)cli;
        args_add(&words, STR("drover"));
        args_add(&words, STR("tail"));
        args_add(&words, STR("--all"));
        if (flags_has(f, "follow"))
                args_add(&words, STR("--follow"));
        if (flags_has(f, "stderr"))
                args_add(&words, STR("--stderr"));
        args_add(&words, STR("--"));
        args_add(&words, str_of(f->words[0]));
        return run_drover(&words);
}

static const struct flag_row tail_rows[] = {
        {"follow", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Go on until the job has ended."},
        {"stderr", 4, FLAG_PLAIN, FLAG_ACTS, NULL, "Its standard error, in place of its standard output."},
        {"stdout", 4, FLAG_PLAIN, FLAG_SO, NULL, "Its standard output."},
        {"no-stdout", 4, FLAG_PLAIN, FLAG_REFUSED, NULL, "use -stderr."},
        {"maxbytes", 1, FLAG_VALUE, FLAG_WARNED, "N",
         "What is kept is shown, 64 KiB of a job that has ended."},
        {0},
};
const struct condor_tool condor_tail = {
        .name = "condor_tail",
        .usage = "[FLAGS] CLUSTER | CLUSTER.PROC",
        .line = "Shows what a job has written to its standard output.",
        .rows = tail_rows,
        .words_min = 1,
        .words_max = 1,
        .run = tail,
};

/* ---- condor_ssh_to_job */

static int open_shell(struct cli *cli, const struct flags *f)
{
        struct args words ARGS_CLEANUP = {0};
        struct buf command BUF_CLEANUP = {0};

        (void)cli;
        args_add(&words, STR("drover"));
        args_add(&words, f->word_count > 1 ? STR("exec") : STR("shell"));
        if (f->word_count > 1)
                args_add(&words, STR("-i"));
        args_add(&words, str_of(f->words[0]));
        for (size_t i = 1; i < f->word_count; i++) /* as ssh does */
                buf_printf(&command, "%s%s", i > 1 ? " " : "", f->words[i]);
        if (command.n) {
                args_add(&words, STR("--"));
                args_add(&words, STR("sh"));
                args_add(&words, STR("-c"));
                args_add(&words, buf_view(&command));
        }
        return run_drover(&words);
}

static const struct flag_row shell_rows[] = {
        {"auto-retry", 4, FLAG_PLAIN, FLAG_REFUSED, NULL, "wait until the job runs."},
        {"ssh", 3, FLAG_VALUE, FLAG_REFUSED, "COMMAND", "no ssh takes part."},
        {"keygen-options", 3, FLAG_VALUE, FLAG_REFUSED, "TEXT", "no ssh takes part."},
        {"shells", 3, FLAG_VALUE, FLAG_WARNED, "LIST", "The shell is bash, or sh."},
        {0},
};
const struct condor_tool condor_ssh_to_job = {
        .name = "condor_ssh_to_job",
        .usage = "CLUSTER | CLUSTER.PROC [COMMAND...]",
        .line = "Opens a shell beside a job's program, or runs a command there; without ssh.",
        .rows = shell_rows,
        .words_min = 1,
        .words_max = 100000,
        .run = open_shell,
        .passes_code = true,
};

/* ---- condor_run */

static int run_command(struct cli *cli, const struct flags *f)
{
        struct args words ARGS_CLEANUP = {0};

        (void)cli;
        args_add(&words, STR("drover"));
        args_add(&words, STR("run"));
        args_add(&words, STR("--"));
        args_add(&words, STR("/bin/sh"));
        args_add(&words, STR("-c"));
        args_add(&words, str_of(f->words[0]));
        return run_drover(&words);
}

static const struct flag_row run_rows[] = {
        {"u", 0, FLAG_VALUE, FLAG_WARNED, "UNIVERSE", "Commands run in the vanilla universe."},
        {"a", 0, FLAG_VALUE, FLAG_REFUSED, "LINE", "use drover run, which has options for that."},
        {0},
};
const struct condor_tool condor_run = {
        .name = "condor_run",
        .usage = "[FLAGS] 'COMMAND'",
        .line = "Runs a command of the shell as a job, waits for it, and prints what it prints.",
        .rows = run_rows,
        .words_min = 1,
        .words_max = 1,
        .run = run_command,
};
