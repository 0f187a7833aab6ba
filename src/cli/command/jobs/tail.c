/* drover tail: the last output of a job and, with --follow, further output as it is printed. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client/jobs.h"
#include "cli/client/output.h"
#include "cli/command/commands.h"

#define LINES      10
#define JOBS       10 /* jobs whose output is shown, if several are named */
#define POLL_MS    30000
#define AWAY_FIRST 100 /* first pause while the server is unreachable */
#define AWAY_MAX   2000

struct tail {
        struct cli *cli;
        struct output o;
        enum output_stream stream;
        int64_t lines; /* lines of the first answer; -1: all */
        bool follow, begun, told_held, printed;
};

/* Prints bytes unchanged, because the output may be binary. */
static int print_new(struct tail *t)
{
        struct str text = buf_view(&t->o.bytes[t->stream]);
        int64_t gap = t->o.gap[t->stream];

        if (t->o.again)
                cli_note("%s has started again", t->o.job);
        if (gap)
                cli_note("%lld bytes are not kept", (long long)gap);
        if (!t->begun && t->lines >= 0)
                text = output_last_lines(text, t->lines);
        t->begun |= t->o.attempt > 0;
        t->printed |= text.n > 0;
        if (fwrite(text.p ? text.p : "", 1, text.n, stdout) != text.n || fflush(stdout) != 0)
                return cli_error(CLI_FAILED, "cannot write to standard output");
        return 0;
}

static void tell_held(struct tail *t)
{
        bool held = strcmp(t->o.state, "held") == 0;

        if (held && !t->told_held)
                cli_note("%s is held, and prints more once it is released: drover why %s", t->o.job,
                         t->o.job);
        t->told_held = held;
}

/* Prints until there is no more, or with --follow until the job has ended. Returns an exit code. */
static int go_on(struct tail *t)
{
        int away_ms = 0, wait_ms = 0, code = CLI_FAILED, rc;
        struct err err = {""};

        for (;; wait_ms = t->follow ? POLL_MS : 0) {
                rc = output_next(t->cli, &t->o, wait_ms, &err, &code);
                if (rc != 0 && (rc == API_REFUSED || rc == API_BROKEN || !t->follow))
                        return cli_error(code, "%s", err.text);
                if (rc != 0) { /* the server may return at another address */
                        if (away_ms == 0)
                                cli_note("the server went away; waiting for it to come back");
                        away_ms = away_ms == 0 ? AWAY_FIRST : away_ms * 2 > AWAY_MAX ? AWAY_MAX : away_ms * 2;
                        api_close(t->cli);
                        poll(NULL, 0, away_ms);
                        continue;
                }
                away_ms = 0;
                code = print_new(t);
                if (code != 0)
                        return code;
                if (t->o.ended && t->o.over)
                        return CLI_OK;
                if (!t->follow && t->o.bytes[t->stream].n < OUTPUT_LAST_MAX)
                        return CLI_OK;
                if (t->follow)
                        tell_held(t);
        }
}

static int tail_job(struct tail *t, const char *job)
{
        int code;

        t->o.job = job;
        t->o.only = t->stream == OUTPUT_STDERR ? "stderr" : "stdout";
        t->o.last = t->lines < 0 ? 0 : OUTPUT_LAST_MAX;
        code = go_on(t);
        if (code == 0 && !t->printed && t->lines != 0)
                cli_note(t->stream == OUTPUT_STDERR
                                 ? "%s has printed nothing on its stderr"
                                 : "%s has printed nothing; what it says of errors: drover "
                                   "tail --stderr %s",
                         job, job);
        output_deinit(&t->o);
        return code;
}

struct several {
        struct buf ids[JOBS];
        size_t count;
};

static int tail_add_job(void *arg, struct view item)
{
        struct several *s = arg;

        if (s->count < JOBS)
                view_text(view_get(item, "id"), &s->ids[s->count++]);
        return 0;
}

/* By request, and by number within it. */
static int compare_ids(const void *a, const void *b)
{
        return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

/* Prints the last lines of each of several jobs below the job's id: jobs that run, or else those that
 * ended last. Returns an exit code. */
static int tail_several(const struct tail *t, const char *ids)
{
        const char *const from[] = {"/v1/jobs?state=running", "/v1/history"};
        const char *shown[JOBS] = {0};
        struct several s = {0};
        int code = 0, one;

        for (size_t i = 0; i < 2 && code == 0 && s.count == 0; i++) {
                struct buf path BUF_CLEANUP = {0};

                buf_addz(&path, from[i]);
                api_query(&path, "id", str_of(ids));
                code = api_list(t->cli, &(struct api_list){.path = &path,
                                                           .array = "jobs",
                                                           .cursor = i == 1 ? "before" : "after",
                                                           .limit = JOBS,
                                                           .each = tail_add_job,
                                                           .arg = &s});
        }
        if (code == 0 && s.count == 0)
                code = cli_error(CLI_FAILED, "no job of %s has begun: drover why %s", ids, ids);
        else if (code == 0 && s.count == JOBS)
                cli_note("at most %d jobs are shown; name one, as in 7.42", JOBS);
        for (size_t i = 0; i < s.count; i++)
                shown[i] = buf_z(&s.ids[i]);
        qsort(shown, s.count, sizeof(*shown), compare_ids);
        for (size_t i = 0; i < s.count; i++) {
                struct tail of_one = *t;

                printf("%s==> %s <==\n", i ? "\n" : "", shown[i]);
                one = tail_job(&of_one, shown[i]);
                code = code == 0 ? one : code;
        }
        for (size_t i = 0; i < s.count; i++)
                buf_deinit(&s.ids[i]);
        return code;
}

int cmd_tail(struct cli *cli, const struct options *o)
{
        struct buf id BUF_CLEANUP = {0};
        struct tail t = {.cli = cli,
                         .stream = options_flag(o, "stderr") ? OUTPUT_STDERR : OUTPUT_STDOUT,
                         .lines = options_flag(o, "all") ? -1 : options_number(o, "lines", LINES),
                         .follow = options_flag(o, "follow")};
        bool several = false;
        int code = jobs_one_or_several(cli, o->words[0], t.follow ? NULL : &several, &id);

        if (code != 0)
                return code;
        return several ? tail_several(&t, buf_z(&id)) : tail_job(&t, buf_z(&id));
}
