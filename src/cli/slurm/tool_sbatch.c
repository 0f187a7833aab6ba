/* sbatch. What programs read of its output: the number in "Submitted batch job 7" (Nextflow, Snakemake,
 * Cromwell, dask), or alone with --parsable. Options of the call win over those of the environment, which win
 * over those of the script. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client/submit.h"
#include "cli/slurm/batch.h"
#include "cli/slurm/children.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/script.h"
#include "cli/slurm/slurm.h"

/* State of one call of sbatch, after its options were read. */
struct call {
        struct cli *cli;
        struct words all; /* options of the script, the environment and the call, in this order */
        struct buf path, text, description;
        bool quiet;
};

static int read_script(struct call *c, const struct words *given, struct batch *b, struct err *err)
{
        const char *wrap = words_text(given, "wrap"), *name = given->word_count ? given->words[0] : NULL;
        const char *slash;
        int rc;

        if (wrap) {
                if (name)
                        return err_set(err, -EINVAL, "Script arguments not permitted with --wrap option");
                buf_printf(&c->text, "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n", wrap);
                b->name = "wrap";
                b->command = "(null)";
                rc = script_check(buf_view(&c->text), err);
        } else {
                rc = script_read(name, &c->path, &c->text, err);
                slash = name ? strrchr(name, '/') : NULL;
                b->name = slash ? slash + 1 : name ? name : "sbatch";
                b->command = name ? buf_z(&c->path) : "(null)";
        }
        if (rc == 0)
                rc = script_options(buf_view(&c->text), &c->all, err);
        b->script = buf_view(&c->text);
        if (given->word_count > 1) {
                b->arguments = given->words + 1;
                b->argument_count = given->word_count - 1;
        }
        return rc;
}

/* The call's own words a second time, behind those of the script. */
static int take_call(struct call *c, const struct words *given, struct err *err)
{
        int rc = words_environment(&c->all, err);

        for (size_t i = 0; rc == 0 && i < given->given_count; i++) {
                const struct words_given *g = &given->given[i];
                BUF_CLEANUP struct buf word = {0};

                if (g->origin != WORDS_CALL)
                        continue;
                if (g->row->name)
                        buf_printf(&word, "--%s%s%s", g->row->name, g->value ? "=" : "",
                                   g->value ? g->value : "");
                else
                        buf_printf(&word, "-%c%s", g->row->letter, g->value ? g->value : "");
                rc = words_read(&c->all, WORDS_CALL, 1, (const char *[]){buf_z(&word)}, err);
        }
        return rc;
}

static void warn(const struct call *c)
{
        BUF_CLEANUP struct buf out = {0};
        struct str rest, line;

        words_warnings(&c->all, &out);
        rest = buf_view(&out);
        while (!c->quiet && str_cut(&rest, '\n', &line))
                if (line.n)
                        cli_note("warning: " STR_FMT, STR_ARG(line));
}

static void print_number(const struct words *w, long long id)
{
        if (words_has(w, "parsable"))
                printf("%lld\n", id);
        else if (!words_has(w, "quiet"))
                printf("Submitted batch job %lld\n", id);
        fflush(stdout);
}

/* The exit code is the highest of its tasks, as sbatch --wait's is. */
static int wait_for(struct call *c, long long id)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf number = {0}, path = {0};
        struct view job;
        int64_t code = 0;
        size_t at = 0;

        buf_printf(&number, "%lld", id);
        api_close(c->cli);
        children_drover((const char *const[]){"wait", "--ignore-held", buf_z(&number), NULL}, true);
        buf_printf(&path, "/v1/jobs?id=%lld", id);
        if (api_get(c->cli, buf_z(&path), &answer) != 0)
                return 1;
        while (view_next(view_get(answer.root, "jobs"), &at, &job)) {
                int64_t exit = view_integer(view_get(job, "exit_code"), -1),
                        signal = view_integer(view_get(job, "exit_signal"), 0), one;

                one = signal > 0 ? 128 + signal : exit < 0 ? 1 : exit;
                code = one > code ? one : code;
        }
        return (int)code;
}

static int send_script(struct call *c, const char *file)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct submit s;
        long long id = 0;
        int code;

        submit_init(&s, c->cli, file);
        s.text = buf_view(&c->description);
        s.quiet = c->quiet;
        code = submit_read(&s);
        if (code == 0)
                code = submit_send(&s, &answer);
        if (code == 0) {
                id = view_integer(view_get(answer.root, "id"), 0);
                print_number(&c->all, id);
        } else {
                slurm_error(1, "Batch job submission failed");
        }
        submit_deinit(&s);
        if (code == 0 && words_has(&c->all, "wait"))
                return wait_for(c, id);
        return code == 0 ? 0 : 1;
}

static int sbatch(struct cli *cli, const struct words *given)
{
        struct call c = {.cli = cli, .quiet = words_has(given, "quiet")};
        struct batch b = {.cli = cli, .words = &c.all, .environment = true, .streams = true};
        struct err err = {""};
        int rc, code = 1;

        words_init(&c.all, given->tool);
        rc = read_script(&c, given, &b, &err);
        if (rc == 0)
                rc = take_call(&c, given, &err);
        c.quiet |= rc == 0 && words_has(&c.all, "quiet");
        if (rc == 0)
                warn(&c);
        if (rc == 0)
                rc = partitions_check(cli, words_text(&c.all, "partition"), &err);
        if (rc == 0)
                rc = batch_write(&b, &c.description, &err);
        if (rc != 0)
                slurm_error(1, "%s", err.text);
        else if (words_has(&c.all, "print"))
                code = (cli_print(&c.description), 0);
        else if (words_has(&c.all, "test-only"))
                code = (cli_note("the job could be submitted"), 0);
        else
                code = send_script(&c, "sbatch");
        words_deinit(&c.all);
        buf_deinit(&c.path);
        buf_deinit(&c.text);
        buf_deinit(&c.description);
        return code;
}

static const struct words_row rows[] = {
        BATCH_ROWS,
        {"parsable", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print the job's number only."},
        {"print", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Print the submit file that is made of it (drover-submit-file(5)), and submit nothing. Drover's "
         "own."},
        {"quiet", 'Q', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print errors only."},
        {"test-only", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Check everything and submit nothing. `drover quote` tells when a job would start."},
        {"wait", 'W', WORDS_PLAIN, WORDS_ACTS, NULL, "SBATCH_WAIT",
         "Stay until all is over; the exit code is the highest of the job's tasks."},
        {"wrap", 0, WORDS_VALUE, WORDS_ACTS, "COMMAND", NULL, "A command for /bin/sh, in place of a script."},
        {"export-file", 0, WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "use --export."},
        {0},
};
const struct words_tool slurm_sbatch = {
        .name = "sbatch",
        .usage = "[OPTIONS] [SCRIPT [ARGUMENTS...]]",
        .line = "Submits a script as a job, or as an array of jobs; without SCRIPT it is read from standard "
                "input.",
        .rows = rows,
        .stops = true,
        .run = sbatch,
};
