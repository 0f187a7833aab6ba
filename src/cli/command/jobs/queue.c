#include <stdio.h>

#include "classad/expr.h"
#include "cli/client/api.h"
#include "cli/client/ids.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column request_columns[] = {{"ID", true, false},
                                                      {"OWNER", false, true},
                                                      {"SUBMITTED", false, false},
                                                      {"JOBS", true, false},
                                                      {"IDLE", true, false},
                                                      {"RUN", true, false},
                                                      {"HELD", true, false, .spare = true},
                                                      {"DONE", true, false, .spare = true},
                                                      {"FAIL", true, false, .spare = true},
                                                      {"RM", true, false, .spare = true},
                                                      {"END", true, false, .spare = true},
                                                      {"COMMAND", false, true}};
static const struct table_column job_columns[] = {{"ID", true, false},
                                                  {"OWNER", false, true},
                                                  {"STATE", false, false},
                                                  {"TIME", true, false},
                                                  {"AGENT", false, true, .spare = true},
                                                  {"STARTS", true, false, .spare = true},
                                                  {"NOTE", false, true, false, true},
                                                  {"COMMAND", false, true},
                                                  {"QUEUE", false, true, true},
                                                  {"SUBMITTED", false, false, true},
                                                  {"STARTED", false, false, true},
                                                  {"ENDED", false, false, true},
                                                  {"EXIT", true, false, true},
                                                  {"SIGNAL", true, false, true},
                                                  {"REASON", false, true, true}};

/* Consecutive jobs of one request that differ only in their number. */
struct range {
        uint64_t request;
        uint32_t first, last;
        int64_t time_ms;
        struct buf owner, state, note, command; /* an empty state: the range is empty */
};

struct listing {
        struct cli *cli;
        struct table table;
        struct range range;
        int64_t rows, idle, running, held, ended, other, failed;
};

static void range_deinit(struct range *r)
{
        buf_deinit(&r->owner);
        buf_deinit(&r->state);
        buf_deinit(&r->note);
        buf_deinit(&r->command);
}

static void count_cell(struct table *t, int64_t n, enum table_colour colour)
{
        table_integer(t, n);
        table_paint(t, n ? colour : TABLE_DIM);
}

static int add_request(void *arg, struct view request)
{
        struct buf name BUF_CLEANUP = {0};
        struct listing *l = arg;
        struct table *t = &l->table;
        struct request_row r;
        int64_t idle, running, held, failed;

        request_read(request, &r);
        idle = view_integer(r.idle, 0);
        running = view_integer(r.running, 0);
        held = view_integer(r.held, 0);
        failed = view_integer(r.failed, 0);
        table_view(t, r.id);
        table_view(t, r.owner);
        table_time(t, view_integer(r.submitted_ms, 0), l->cli->now_ms);
        table_view(t, r.jobs);
        count_cell(t, idle, TABLE_YELLOW);
        count_cell(t, running, TABLE_GREEN);
        count_cell(t, held, TABLE_RED);
        count_cell(t, view_integer(r.completed, 0) - failed, TABLE_PLAIN);
        count_cell(t, failed, TABLE_RED);
        count_cell(t, view_integer(r.removed, 0), TABLE_PLAIN);
        if (view_integer(r.eta_end_ms, 0))
                table_range(t, view_integer(r.eta_end_ms, 0) - l->cli->now_ms,
                            view_integer(r.eta_end_most_ms, 0) - l->cli->now_ms);
        else
                table_text(t, STR(""));
        request_name(&r, &name);
        table_text(t, buf_view(&name));
        table_end_row(t);
        l->rows++;
        l->idle += idle;
        l->running += running;
        l->held += held;
        return 0;
}

/* Returns how long the job has run, was held, or has waited since it was submitted. Times of earlier
 * attempts do not count. */
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

static void add_note(const struct job_row *j, struct buf *out)
{
        if (view_is(j->state, "held"))
                view_text(j->hold_reason, out);
        else if (view_is(j->state, "idle") && view_there(j->waits_for))
                view_text(j->waits_for, out);
        else
                job_outcome(j, out);
}

static enum table_colour state_colour(struct str state)
{
        return str_eqz(state, "held") ? TABLE_RED : TABLE_YELLOW;
}

static void set_text(struct buf *to, struct str text)
{
        buf_reset(to);
        buf_str(to, text);
}

/* Adds the row of the current range, if there is one. */
static void add_range(struct listing *l)
{
        struct range *r = &l->range;
        struct table *t = &l->table;

        if (r->state.n == 0)
                return;
        if (r->first == r->last)
                table_format(t, "%llu.%u", (unsigned long long)r->request, r->first);
        else
                table_format(t, "%llu.%u-%u", (unsigned long long)r->request, r->first, r->last);
        table_text(t, buf_view(&r->owner));
        table_text(t, buf_view(&r->state));
        table_paint(t, state_colour(buf_view(&r->state)));
        table_duration(t, r->time_ms);
        table_text(t, STR("-"));
        table_text(t, STR("0"));
        table_text(t, buf_view(&r->note));
        table_text(t, buf_view(&r->command));
        table_end_row(t);
        buf_reset(&r->state);
}

/* Adds a job that never started to the current range if it is alike. Returns false if it needs a row of
 * its own. */
static bool join_range(struct listing *l, const struct job_row *j)
{
        struct buf id_text BUF_CLEANUP = {0}, owner BUF_CLEANUP = {0}, state BUF_CLEANUP = {0},
                           note BUF_CLEANUP = {0}, command BUF_CLEANUP = {0};
        int64_t time_ms = job_time_ms(j, l->cli->now_ms);
        struct range *r = &l->range;
        struct id id;

        view_text(j->id, &id_text);
        if (!cli_plain(l->cli) || view_integer(j->starts, 0) > 0 ||
            !(job_is_idle(j->state) || view_is(j->state, "held") || view_is(j->state, "removed")) ||
            id_parse(buf_view(&id_text), &id, NULL) != 0)
                return false;
        view_text(j->owner, &owner);
        view_text(j->state, &state);
        add_note(j, &note);
        job_command(j, &command);
        if (r->state.n && r->request == id.request && r->last + 1 == id.first && r->time_ms == time_ms &&
            str_eq(buf_view(&r->owner), buf_view(&owner)) && str_eq(buf_view(&r->state), buf_view(&state)) &&
            str_eq(buf_view(&r->note), buf_view(&note)) &&
            str_eq(buf_view(&r->command), buf_view(&command))) {
                r->last = id.first;
                return true;
        }
        add_range(l);
        r->request = id.request;
        r->first = r->last = id.first;
        r->time_ms = time_ms;
        set_text(&r->owner, buf_view(&owner));
        set_text(&r->state, buf_view(&state));
        set_text(&r->note, buf_view(&note));
        set_text(&r->command, buf_view(&command));
        return true;
}

static void add_job_row(struct listing *l, const struct job_row *j)
{
        struct buf text BUF_CLEANUP = {0};
        struct table *t = &l->table;

        add_range(l);
        table_view(t, j->id);
        table_view(t, j->owner);
        job_add_state(t, j);
        table_duration(t, job_time_ms(j, l->cli->now_ms));
        table_view(t, j->agent);
        table_view(t, j->starts);
        add_note(j, &text);
        table_text(t, buf_view(&text));
        buf_reset(&text);
        job_command(j, &text);
        table_text(t, buf_view(&text));
        table_view(t, j->queue);
        table_time(t, view_integer(j->submitted_ms, 0), l->cli->now_ms);
        table_time(t, view_integer(j->started_ms, 0), l->cli->now_ms);
        table_time(t, view_integer(j->ended_ms, 0), l->cli->now_ms);
        table_view(t, j->exit_code);
        table_view(t, j->exit_signal);
        table_view(t, j->hold_reason);
}

static int queue_add_job(void *arg, struct view job)
{
        struct listing *l = arg;
        struct job_row j;

        job_read(job, &j);
        if (!join_range(l, &j))
                add_job_row(l, &j);
        l->rows++;
        if (job_is_idle(j.state))
                l->idle++;
        else if (view_is(j.state, "running"))
                l->running++;
        else if (view_is(j.state, "held"))
                l->held++;
        else if (view_is(j.state, "completed") || view_is(j.state, "removed"))
                l->ended++, l->failed += job_has_failed(&j);
        else
                l->other++;
        return 0;
}

static void print_summary(const struct listing *l, const char *one, const char *many, bool jobs)
{
        struct buf out BUF_CLEANUP = {0};

        human_count(&out, l->rows, one, many);
        buf_printf(&out, ": %lld idle, %lld running, %lld held", (long long)l->idle, (long long)l->running,
                   (long long)l->held);
        if (jobs && l->other)
                buf_printf(&out, ", %lld other", (long long)l->other);
        if (jobs && l->ended)
                buf_printf(&out, ", %lld ended", (long long)l->ended);
        if (jobs && l->failed)
                buf_printf(&out, ", %lld of them failed", (long long)l->failed);
        buf_char(&out, '\n');
        cli_print(&out);
}

/* Explains that ended jobs were not listed, when nothing was found. */
static void say_where_ended(const struct options *o, const struct listing *l)
{
        if (l->rows > 0 || options_text(o, "state") || options_flag(o, "all"))
                return;
        if (options_text(o, "constraint"))
                cli_note("jobs that have ended were not looked at: drover history -c EXPR does that");
        else if (l->cli->terminal)
                cli_note("what has ended is shown by drover queue --all and drover history");
}

static bool wants_failed(const struct options *o)
{
        return str_eqz(str_of(options_text(o, "state")), "failed");
}

/* Failed jobs are in the history. */
static void build_failed(const struct options *o, struct str ids, struct str owner, struct buf *path)
{
        struct buf constraint BUF_CLEANUP = {0};

        buf_addz(path, "/v1/history");
        api_query(path, "id", ids);
        api_query(path, "owner", owner);
        buf_addz(&constraint, "JobStatus =?= 4 && (ExitSignal isnt undefined || (ExitCode ?: 0) != 0)");
        if (options_text(o, "constraint")) {
                buf_addz(&constraint, " && (");
                expr_text_from_old(str_of(options_text(o, "constraint")), &constraint);
                buf_addz(&constraint, ")");
        }
        api_query(path, "constraint", buf_view(&constraint));
}

/* Gives the owner to list; empty: everybody. */
static int read_owner(struct cli *cli, const struct options *o, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code;

        if (!options_flag(o, "mine")) {
                if (options_text(o, "owner"))
                        buf_addz(out, options_text(o, "owner"));
                return 0;
        }
        if (options_text(o, "owner"))
                return cli_error(CLI_USAGE, "--mine and --owner exclude each other");
        code = api_get(cli, "/v1/server", &answer);
        if (code == 0)
                view_text(view_get(answer.root, "you"), out);
        return code;
}

static int build_path(struct cli *cli, const struct options *o, bool jobs, struct buf *path)
{
        struct buf ids BUF_CLEANUP = {0}, constraint BUF_CLEANUP = {0}, owner BUF_CLEANUP = {0};
        int code = jobs_ids(o->words, o->word_count, &ids);

        if (code == 0)
                code = read_owner(cli, o, &owner);
        if (code != 0)
                return code;
        if (wants_failed(o)) {
                build_failed(o, buf_view(&ids), buf_view(&owner), path);
                return 0;
        }
        buf_addz(path, jobs ? "/v1/jobs" : "/v1/requests");
        api_query(path, "id", buf_view(&ids));
        api_query(path, "owner", buf_view(&owner));
        api_query(path, "state", str_of(options_text(o, "state")));
        expr_text_from_old(str_of(options_text(o, "constraint")), &constraint);
        api_query(path, "constraint", buf_view(&constraint));
        if (options_flag(o, "all"))
                api_query(path, "all", STR("1"));
        return 0;
}

static bool has_column(const struct table_column *columns, size_t count, struct str name)
{
        for (size_t i = 0; i < count; i++)
                if (str_ieqz(name, columns[i].title))
                        return true;
        return false;
}

/* Returns whether a requested column exists for jobs but not for requests. */
static bool names_job_column(const struct cli *cli)
{
        struct str rest = str_of(cli->form.columns), name;

        while (str_cut(&rest, ',', &name)) {
                name = str_trim(name);
                if (has_column(job_columns, sizeof(job_columns) / sizeof(job_columns[0]), name) &&
                    !has_column(request_columns, sizeof(request_columns) / sizeof(request_columns[0]), name))
                        return true;
        }
        return false;
}

int cmd_queue(struct cli *cli, const struct options *o)
{
        bool jobs = names_job_column(cli) || o->word_count || options_flag(o, "jobs") ||
                    options_text(o, "state") || options_text(o, "constraint");
        struct listing l = {.cli = cli};
        struct buf path BUF_CLEANUP = {0};
        int code = build_path(cli, o, jobs, &path);

        if (code != 0)
                return code;
        if (options_number(o, "limit", 0) < 0)
                return cli_error(CLI_USAGE, "--limit takes a number of rows");
        if (!jobs && options_number(o, "limit", 0) > 0)
                api_query(&path, "latest", STR("1"));
        if (jobs)
                code = cli_table(cli, &l.table, job_columns, sizeof(job_columns) / sizeof(job_columns[0]));
        else
                code = cli_table(cli, &l.table, request_columns,
                                 sizeof(request_columns) / sizeof(request_columns[0]));
        if (code != 0)
                return code;
        code = api_list(cli, &(struct api_list){.path = &path,
                                                .array = jobs ? "jobs" : "requests",
                                                .cursor = wants_failed(o) ? "before" : "after",
                                                .whole = !wants_failed(o),
                                                .limit = options_number(o, "limit", 0),
                                                .each = jobs ? queue_add_job : add_request,
                                                .arg = &l});
        if (code == 0 && !cli->json) {
                add_range(&l);
                if (table_rows(&l.table) > 0 || !cli_plain(cli))
                        cli_print_table(cli, &l.table);
                if (cli_plain(cli) && jobs)
                        print_summary(&l, "job", "jobs", true);
                else if (cli_plain(cli))
                        print_summary(&l, "request", "requests", false);
                say_where_ended(o, &l);
        }
        range_deinit(&l.range);
        table_deinit(&l.table);
        return code;
}
