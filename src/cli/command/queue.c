#include <stdio.h>

#include "classad/expr.h"
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column request_columns[] = {
        {"ID", true, false},   {"OWNER", false, true}, {"SUBMITTED", false, false}, {"JOBS", true, false},
        {"IDLE", true, false}, {"RUN", true, false},   {"HELD", true, false},       {"DONE", true, false},
        {"FAIL", true, false}, {"RM", true, false},    {"END", true, false},        {"COMMAND", false, true}};
static const struct table_column job_columns[] = {
        {"ID", true, false},    {"OWNER", false, true},  {"STATE", false, false}, {"TIME", true, false},
        {"AGENT", false, true}, {"STARTS", true, false}, {"NOTE", false, true},   {"COMMAND", false, true}};

struct listing {
        struct cli *cli;
        struct table table;
        int64_t idle, running, held, other;
};

static void count_cell(struct table *t, int64_t n, enum table_colour colour)
{
        table_format(t, "%lld", (long long)n);
        table_paint(t, n ? colour : TABLE_DIM);
}

/* A request's program may have a batch name instead. */
static void request_name(struct table *t, struct view request)
{
        struct buf text BUF_CLEANUP = {0};
        struct job_row j;

        job_read(request, &j);
        view_text(view_get(request, "batch"), &text);
        if (text.n == 0)
                job_command(&j, &text);
        table_text(t, buf_view(&text));
}

static int add_request(void *arg, struct view r)
{
        struct listing *l = arg;
        struct table *t = &l->table;
        struct buf text BUF_CLEANUP = {0};
        int64_t idle = view_integer(view_get(r, "idle"), 0),
                running = view_integer(view_get(r, "running"), 0),
                held = view_integer(view_get(r, "held"), 0);

        table_view(t, view_get(r, "id"));
        table_view(t, view_get(r, "owner"));
        human_time(&text, view_integer(view_get(r, "submitted_ms"), 0), l->cli->now_ms);
        table_text(t, buf_view(&text));
        table_view(t, view_get(r, "jobs"));
        count_cell(t, idle, TABLE_YELLOW);
        count_cell(t, running, TABLE_GREEN);
        count_cell(t, held, TABLE_RED);
        count_cell(t, view_integer(view_get(r, "completed"), 0), TABLE_PLAIN);
        count_cell(t, view_integer(view_get(r, "failed"), 0), TABLE_RED);
        count_cell(t, view_integer(view_get(r, "removed"), 0), TABLE_PLAIN);
        buf_reset(&text);
        if (view_integer(view_get(r, "eta_end_ms"), 0))
                human_duration(&text, view_integer(view_get(r, "eta_end_ms"), 0) - l->cli->now_ms);
        table_text(t, buf_view(&text));
        request_name(t, r);
        table_end_row(t);
        l->idle += idle;
        l->running += running;
        l->held += held;
        return 0;
}

/* How long it has run, is held, or has been waiting since it was submitted. Times of earlier attempts count
 * for nothing. */
static int64_t job_time_ms(const struct job_row *j, int64_t now_ms)
{
        int64_t started = view_integer(j->started_ms, 0), ended = view_integer(j->ended_ms, 0);

        if (view_is(j->state, "completed") || view_is(j->state, "removed"))
                return started > 0 && ended > started ? ended - started : 0;
        if (view_is(j->state, "held"))
                return now_ms - view_integer(j->entered_ms, now_ms);
        if (started > 0 && job_has_begun(j->state))
                return now_ms - started;
        return now_ms - view_integer(j->submitted_ms, now_ms);
}

static int add_job(void *arg, struct view job)
{
        struct listing *l = arg;
        struct table *t = &l->table;
        struct buf text BUF_CLEANUP = {0};
        struct job_row j;

        job_read(job, &j);
        table_view(t, j.id);
        table_view(t, j.owner);
        table_view(t, j.state);
        table_paint(t, job_colour(j.state));
        human_duration(&text, job_time_ms(&j, l->cli->now_ms));
        table_text(t, buf_view(&text));
        table_view(t, j.agent);
        table_view(t, j.starts);
        buf_reset(&text);
        if (view_is(j.state, "held"))
                view_text(j.hold_reason, &text);
        else
                job_outcome(&j, &text);
        table_text(t, buf_view(&text));
        buf_reset(&text);
        job_command(&j, &text);
        table_text(t, buf_view(&text));
        table_end_row(t);
        if (view_is(j.state, "idle"))
                l->idle++;
        else if (view_is(j.state, "running"))
                l->running++;
        else if (view_is(j.state, "held"))
                l->held++;
        else
                l->other++;
        return 0;
}

static void print_summary(const struct listing *l, const char *one, const char *many, bool jobs)
{
        struct buf out BUF_CLEANUP = {0};

        human_count(&out, (int64_t)table_rows(&l->table), one, many);
        buf_printf(&out, ": %lld idle, %lld running, %lld held", (long long)l->idle, (long long)l->running,
                   (long long)l->held);
        if (jobs && l->other)
                buf_printf(&out, ", %lld other", (long long)l->other);
        buf_char(&out, '\n');
        cli_print(&out);
}

/* Nothing was found among the jobs that have not ended, and those that have ended were not looked at. */
static void say_where_ended(const struct options *o, const struct listing *l)
{
        if (options_text(o, "constraint") && table_rows(&l->table) == 0 && !options_text(o, "state"))
                cli_note("jobs that have ended were not looked at: drover history -c EXPR does that");
}

static int build_path(const struct options *o, bool jobs, struct buf *path)
{
        struct buf ids BUF_CLEANUP = {0}, constraint BUF_CLEANUP = {0};
        int code = jobs_ids(o->words, o->word_count, &ids);

        if (code != 0)
                return code;
        buf_addz(path, jobs ? "/v1/jobs" : "/v1/requests");
        api_query(path, "id", buf_view(&ids));
        api_query(path, "owner", str_of(options_text(o, "owner")));
        api_query(path, "state", str_of(options_text(o, "state")));
        expr_text_from_old(str_of(options_text(o, "constraint")), &constraint);
        api_query(path, "constraint", buf_view(&constraint));
        if (options_flag(o, "all"))
                api_query(path, "all", STR("1"));
        return 0;
}

int cmd_queue(struct cli *cli, const struct options *o)
{
        bool jobs = o->word_count || options_flag(o, "jobs") || options_text(o, "state") ||
                    options_text(o, "constraint");
        struct listing l = {.cli = cli};
        struct buf path BUF_CLEANUP = {0};
        int code = build_path(o, jobs, &path);

        if (code != 0)
                return code;
        if (options_number(o, "limit", 0) < 0)
                return cli_error(CLI_USAGE, "--limit takes a number of rows");
        if (jobs)
                table_init(&l.table, job_columns, sizeof(job_columns) / sizeof(job_columns[0]));
        else
                table_init(&l.table, request_columns, sizeof(request_columns) / sizeof(request_columns[0]));
        code = api_list(cli, &(struct api_list){.path = &path,
                                                .array = jobs ? "jobs" : "requests",
                                                .cursor = "after",
                                                .whole = true,
                                                .limit = options_number(o, "limit", 0),
                                                .each = jobs ? add_job : add_request,
                                                .arg = &l});
        if (code == 0 && !cli->json) {
                if (table_rows(&l.table) > 0)
                        cli_print_table(cli, &l.table);
                if (jobs)
                        print_summary(&l, "job", "jobs", true);
                else
                        print_summary(&l, "request", "requests", false);
                say_where_ended(o, &l);
        }
        table_deinit(&l.table);
        return code;
}
