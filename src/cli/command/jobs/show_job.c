/* The page of a job: what it is, where it is, how it went, why it waits, what it requested and used. */
#include "cli/command/jobs/show_job.h"
#include "cli/terminal/cost.h"

#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/client/output.h"
#include "cli/terminal/human.h"

#define LAST_LINES  10
#define FILES_SHOWN 8

static const struct table_column columns[] = {{"", false, false}, {"", false, true, .wraps = true}};

struct page {
        struct cli *cli;
        struct view job, ad;
        struct job_row row;
        struct table table;
};

/* Adds a line to the page, unless the text is empty. */
static void add_line(struct page *p, const char *label, const struct buf *text)
{
        if (text->n == 0)
                return;
        table_text(&p->table, str_of(label));
        table_paint(&p->table, TABLE_BOLD);
        table_text(&p->table, buf_view(text));
}

static void add_text(struct page *p, const char *label, struct view v)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(v, &text);
        add_line(p, label, &text);
}

static void add_state(struct page *p)
{
        struct buf text BUF_CLEANUP = {0}, outcome BUF_CLEANUP = {0};

        job_outcome(&p->row, &outcome);
        if (!view_is(p->row.state, "completed"))
                view_text(p->row.state, &text);
        else /* without an outcome the job's set had ended, which counts as a success */
                buf_addz(&text, !outcome.n || str_eqz(buf_view(&outcome), "exit 0") ? "succeeded" : "failed");
        if (outcome.n && !str_eqz(buf_view(&text), "succeeded"))
                buf_printf(&text, ": " STR_FMT, STR_ARG(buf_view(&outcome)));
        if (view_there(view_get(p->job, "unreachable")))
                buf_addz(&text, ", at a place that does not answer");
        add_line(p, "state", &text);
        table_paint(&p->table, job_colour(p->row.state));
}

static void add_where(struct page *p)
{
        struct buf text BUF_CLEANUP = {0};
        int64_t starts = view_integer(p->row.starts, 0);

        if (view_there(p->row.agent)) {
                view_text(p->row.agent, &text);
                buf_addz(&text, ", queue ");
                view_text(p->row.queue, &text);
        }
        if (starts > 1)
                buf_printf(&text, "%sstarted %lld times", text.n ? "; " : "", (long long)starts);
        add_line(p, "where", &text);
}

static void add_time(struct page *p, const char *label, struct view at, struct view since)
{
        struct buf text BUF_CLEANUP = {0};
        int64_t at_ms = view_integer(at, 0), since_ms = view_integer(since, 0);

        if (at_ms == 0)
                return;
        human_time(&text, at_ms, p->cli->now_ms);
        if (since_ms && at_ms >= since_ms) {
                buf_addz(&text, ", after ");
                human_duration(&text, at_ms - since_ms);
        }
        add_line(p, label, &text);
}

static void comma(struct buf *out)
{
        if (out->n)
                buf_addz(out, ", ");
}

/* Appends a number of units as bytes; an expression is unchanged. */
static void add_bytes(struct buf *out, struct view v, int64_t unit, const char *of)
{
        if (!view_there(v))
                return;
        comma(out);
        if (view_type(v) == VIEW_NUMBER)
                human_bytes(out, view_integer(v, 0) * unit);
        else
                view_expression(v, out);
        buf_printf(out, " of %s", of);
}

/* A number, or the expression that is asked for. */
static void add_count(struct buf *out, struct view v, const char *one, const char *many)
{
        if (!view_there(v))
                return;
        comma(out);
        if (view_type(v) == VIEW_NUMBER) {
                human_count(out, view_integer(v, 0), one, many);
        } else {
                view_expression(v, out);
                buf_printf(out, " %s", many);
        }
}

static void add_asked(struct page *p)
{
        struct buf text BUF_CLEANUP = {0};
        struct view run = view_get(p->ad, "AllowedExecuteDuration");

        add_count(&text, view_get(p->ad, "RequestCpus"), "processor", "processors");
        add_bytes(&text, view_get(p->ad, "RequestMemory"), 1 << 20, "memory");
        add_bytes(&text, view_get(p->ad, "RequestDisk"), 1 << 10, "disk");
        add_count(&text, view_get(p->ad, "RequestGPUs"), "GPU", "GPUs");
        if (view_type(run) == VIEW_NUMBER) {
                comma(&text);
                human_duration(&text, view_integer(run, 0) * 1000);
                buf_addz(&text, " at most");
        }
        add_line(p, "asked for", &text);
}

static void add_used(struct page *p)
{
        struct buf text BUF_CLEANUP = {0};
        double cpu = view_real(view_get(p->ad, "RemoteUserCpu")) + view_real(view_get(p->ad, "RemoteSysCpu")),
               wall = view_real(view_get(p->ad, "RemoteWallClockTime")),
               joules = view_real(view_get(p->ad, "EnergyJoules"));
        struct view resident = view_get(p->ad, "ResidentSetSize");

        if (view_integer(p->row.starts, 0) == 0 || !view_there(p->row.started_ms))
                return;
        human_duration(&text, (int64_t)(cpu * 1000));
        buf_addz(&text, " of processor time");
        if (wall > 1 && cpu > 0)
                buf_printf(&text, " (%.0f%%)", 100 * cpu / wall);
        add_bytes(&text, resident, 1 << 10, "memory at most");
        if (joules > 0)
                buf_printf(&text, ", %.0f J of energy", joules);
        add_line(p, "used", &text);
}

/* Adds the folder and the output files. */
static void add_paths(struct page *p)
{
        struct buf in BUF_CLEANUP = {0}, out BUF_CLEANUP = {0}, error BUF_CLEANUP = {0};

        add_text(p, "folder", view_get(p->ad, "Iwd"));
        view_text(view_get(p->ad, "In"), &in);
        view_text(view_get(p->ad, "Out"), &out);
        view_text(view_get(p->ad, "Err"), &error);
        add_line(p, "input", &in);
        if (strstr(buf_z(&out), "/.drover-run-")) /* drover run has printed and removed it */
                ;
        else if (out.n && str_eq(buf_view(&out), buf_view(&error)))
                add_line(p, "output", &out);
        else {
                add_line(p, "stdout", &out);
                add_line(p, "stderr", &error);
        }
        add_text(p, "image", view_get(p->ad, "ContainerImage"));
}

/* Adds outputs that the server keeps. */
static void add_files(struct page *p, const char *id)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct view file;
        size_t at = 0, n = 0;

        buf_printf(&path, "/v1/jobs/%s/files", id);
        if (api_call(p->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return;
        while (view_next(view_get(answer.root, "files"), &at, &file)) {
                if (++n > FILES_SHOWN)
                        continue;
                comma(&text);
                view_text(view_get(file, "name"), &text);
                buf_addz(&text, " (");
                human_bytes(&text, view_integer(view_get(file, "size"), 0));
                buf_char(&text, ')');
        }
        if (n > FILES_SHOWN)
                buf_printf(&text, " and %zu more", n - FILES_SHOWN);
        if (n)
                buf_printf(&text, ": drover get %s", id);
        add_line(p, "files", &text);
}

/* Asks why the job waits and when it is expected to end; of a job that is held or over there is no answer. */
static void ask_why(struct page *p, const char *id, struct api_answer *ret)
{
        struct buf path BUF_CLEANUP = {0};

        if (view_is(p->row.state, "held") || view_is(p->row.state, "completed") ||
            view_is(p->row.state, "removed"))
                return;
        buf_printf(&path, "/v1/jobs/%s/why", id);
        api_call(p->cli, &(struct api_request){.path = buf_z(&path)}, ret, NULL);
}

/* Adds when the job is expected to start and to end. */
static void add_expected(struct page *p, struct view why)
{
        struct buf start BUF_CLEANUP = {0}, end BUF_CLEANUP = {0};
        int64_t start_ms = view_integer(view_get(why, "eta_start_ms"), 0),
                end_ms = view_integer(view_get(why, "eta_end_ms"), 0);

        if (start_ms && !job_has_begun(p->row.state))
                cost_time(&start, start_ms, p->cli->now_ms);
        if (end_ms)
                cost_end(&end, end_ms, view_integer(view_get(why, "eta_end_most_ms"), 0), p->cli->now_ms);
        add_line(p, "expected start", &start);
        add_line(p, "expected end", &end);
}

/* Adds the server's sentences on why the job waits. */
static void add_why(struct page *p, struct view why)
{
        struct view text;
        size_t at = 0;
        bool first = true;

        if (!job_is_idle(p->row.state))
                return;
        for (; view_next(view_get(why, "text"), &at, &text); first = false)
                add_text(p, first ? "why" : "", text);
}

/* Comes last, because these attributes interest only the person who set them. */
static void add_set(struct page *p)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(view_get(p->ad, "DroverGang"), &text);
        if (text.n) {
                buf_addz(&text, ", as number ");
                view_text(view_get(p->ad, "DroverNode"), &text);
        }
        add_line(p, "starts with", &text);
        add_text(p, "dependency", view_get(p->job, "waits_for"));
}

void show_job(struct cli *cli, struct view job, struct buf *out)
{
        struct page p = {.cli = cli, .job = job, .ad = view_get(job, "ad")};
        struct api_answer why API_ANSWER_CLEANUP = {0};
        struct buf id BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        size_t before;

        table_init(&p.table, columns, 2);
        p.table.bare = true;
        job_read(job, &p.row);
        view_text(p.row.id, &id);
        add_line(&p, "job", &id);
        add_state(&p);
        add_text(&p, "held because", p.row.hold_reason);
        add_text(&p, "removed", view_get(p.ad, "RemoveReason"));
        view_text(p.row.cmd, &text);
        if (view_there(p.row.args)) {
                buf_char(&text, ' ');
                view_text(p.row.args, &text);
        }
        add_line(&p, "command", &text);
        add_text(&p, "owner", p.row.owner);
        if (view_integer(view_get(p.ad, "JobPrio"), 0) != 0)
                add_text(&p, "priority", view_get(p.ad, "JobPrio"));
        add_text(&p, "request name", view_get(p.ad, "JobBatchName"));
        add_where(&p);
        add_time(&p, "submitted", p.row.submitted_ms, (struct view){STR_NONE});
        ask_why(&p, buf_z(&id), &why);
        add_time(&p, "started", p.row.started_ms, p.row.submitted_ms);
        add_expected(&p, why.root);
        add_time(&p, "ended", p.row.ended_ms, p.row.started_ms);
        add_asked(&p);
        add_used(&p);
        add_set(&p);
        add_paths(&p);
        add_files(&p, buf_z(&id));
        add_why(&p, why.root);
        p.table.colour = cli->colour;
        p.table.width = cli->width;
        table_print(&p.table, out);
        table_deinit(&p.table);
        buf_char(out, '\n');
        before = out->n;
        if (!output_show_last(cli, buf_z(&id), NULL, LAST_LINES, "  ", out))
                buf_truncate(out, before - 1);
}
