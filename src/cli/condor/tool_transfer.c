/* condor_transfer_data: runs `drover get` for each job, into the folder that it was submitted from. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/args.h"
#include "base/program.h"
#include "cli/condor/condor.h"
#include "cli/condor/select.h"

struct transfer {
        struct cli *cli;
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
        struct buf id BUF_CLEANUP = {0}, folder BUF_CLEANUP = {0};
        struct args words ARGS_CLEANUP = {0};

        view_text(view_get(job, "id"), &id);
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
        past.constraint = buf_view(&s.constraint);
        code = select_fetch(cli, &s, &past);
        return code | t.code;
}

static const struct flag_row rows[] = {
        {"all", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "All jobs that you may look at and that have ended."},
        {"constraint", 1, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only jobs for which this expression is true."},
        {0},
};
const struct condor_tool condor_transfer_data = {
        .name = "condor_transfer_data",
        .usage = "[FLAGS] [CLUSTER | CLUSTER.PROC | USER]...",
        .line = "Brings the outputs of jobs that have ended back to the folders that they were submitted "
                "from.",
        .rows = rows,
        .words_max = 100000,
        .run = transfer,
};
