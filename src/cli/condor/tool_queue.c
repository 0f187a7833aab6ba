/* condor_q. What programs read of its tables: the line that begins " ID ", then lines whose first word is the
 * job and whose sixth its status, up to an empty line (Nextflow with -nobatch); the status is a letter by
 * JobStatus, so never one that they don't know. */
#include <stdio.h>
#include <unistd.h>

#include "cli/client/jobs.h"
#include "cli/condor/clock_text.h"
#include "cli/condor/condor.h"
#include "cli/condor/output.h"
#include "cli/condor/queue_batch.h"
#include "cli/condor/select.h"
#include "cli/terminal/human.h"

#define STATES_LEFT    "idle,running,held,left" /* "running" is all states of an attempt */
#define ROW_ATTRIBUTES "MemoryUsage,RemoteWallClockTime,RemoteHost,DAGNodeName"

enum queue_table { TABLE_BATCH, TABLE_JOBS, TABLE_RUN, TABLE_HOLD, TABLE_NONE };

struct listing {
        struct cli *cli;
        struct output output;
        enum queue_table table;
        struct queue_batches batches;
        struct totals totals;
        struct buf text;
        bool dag; /* nodes of graphs have their names in the place of their owners' */
};

static const char status_letters[] = "?IRXCH>S"; /* by JobStatus */

static void add_id(struct buf *out, struct view job)
{
        long long request = view_integer(view_get(job, "request"), 0);

        buf_printf(out, "%4lld.%-3lld", request, (long long)view_integer(view_get(job, "member"), 0));
}

/* Seconds of the run under way, else of those before. */
static int64_t run_seconds(const struct listing *l, struct view job, int64_t status)
{
        int64_t started = view_integer(view_get(job, "started_ms"), 0);

        if (status == 2 && started > 0)
                return (l->cli->now_ms - started) / 1000;
        return view_integer(view_get(view_get(job, "ad"), "RemoteWallClockTime"), 0);
}

static void add_text(struct buf *out, struct view v, int width)
{
        struct buf text BUF_CLEANUP = {0}, safe BUF_CLEANUP = {0};

        view_text(v, &text);
        human_safe(&safe, buf_view(&text));
        if (width)
                buf_printf(out, "%-*.*s", width, width, buf_z(&safe));
        else
                buf_str(out, buf_view(&safe));
}

/* The name without its domain. */
static void add_owner(struct buf *out, struct view v)
{
        struct buf text BUF_CLEANUP = {0};
        ptrdiff_t at;

        view_text(v, &text);
        at = str_rfind(buf_view(&text), '@');
        if (at > 0)
                buf_truncate(&text, (size_t)at);
        buf_printf(out, " %-14.14s ", buf_z(&text));
}

/* "|-NODE"; names have no blanks. False: it is no node of a graph. */
static bool add_node(struct buf *out, struct view job)
{
        struct buf text BUF_CLEANUP = {0}, safe BUF_CLEANUP = {0};

        view_text(view_get(view_get(job, "ad"), "DAGNodeName"), &text);
        if (text.n == 0)
                return false;
        human_safe(&safe, buf_view(&text));
        buf_printf(out, "  |-%-11s ", buf_z(&safe));
        return true;
}

static void queue_add_row(struct listing *l, struct view job, int64_t status)
{
        struct buf *out = &l->text, run BUF_CLEANUP = {0};
        struct job_row row;

        job_read(job, &row);
        add_id(out, job);
        if (!l->dag || !add_node(out, job))
                add_owner(out, row.owner);
        if (l->table == TABLE_HOLD) {
                clock_text_date(out, view_integer(view_get(job, "entered_ms"), 0) / 1000);
                buf_char(out, ' ');
                add_text(out, row.hold_reason, 0);
                buf_char(out, '\n');
                return;
        }
        clock_text_date(out, view_integer(row.submitted_ms, 0) / 1000);
        clock_text_run(&run, run_seconds(l, job, status));
        buf_printf(out, " %12s ", buf_z(&run));
        if (l->table == TABLE_RUN) {
                add_text(out, view_get(view_get(job, "ad"), "RemoteHost"), 0);
                buf_char(out, '\n');
                return;
        }
        buf_printf(out, "%c  %-3lld %4lld.0 ", status_letters[status],
                   (long long)view_integer(view_get(job, "priority"), 0),
                   (long long)view_integer(view_get(view_get(job, "ad"), "MemoryUsage"), 0));
        buf_reset(&run);
        job_command(&row, &run);
        human_safe(out, buf_view(&run));
        buf_char(out, '\n');
}

static int queue_add_job(void *arg, struct view job)
{
        struct listing *l = arg;
        int64_t status = view_integer(view_get(job, "status"), 0);

        if (l->output.form != OUTPUT_TABLE) {
                output_ad(&l->output, view_get(job, "ad"), NULL);
                return 0;
        }
        if (status < 0 || status >= (int64_t)sizeof(status_letters) - 1)
                status = 0;
        totals_add(&l->totals, status, 1);
        if (l->table == TABLE_BATCH)
                queue_batches_job(&l->batches, job, status);
        else if (l->table != TABLE_NONE)
                queue_add_row(l, job, status);
        if (l->text.n > 65536)
                cli_print(&l->text);
        return 0;
}

static int add_request(void *arg, struct view request)
{
        struct listing *l = arg;

        queue_batches_request(&l->batches, request, &l->totals);
        return 0;
}

static void print_header(struct listing *l)
{
        static const char *const titles[] = {
                [TABLE_JOBS] = " ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD\n",
                [TABLE_RUN] = " ID      OWNER            SUBMITTED     RUN_TIME HOST(S)\n",
                [TABLE_HOLD] = " ID      OWNER          HELD_SINCE  HOLD_REASON\n",
        };
        static const char *const dag_titles[] = {
                [TABLE_JOBS] = " ID      OWNER/NODENAME   SUBMITTED     RUN_TIME ST PRI SIZE CMD\n",
                [TABLE_RUN] = " ID      OWNER/NODENAME   SUBMITTED     RUN_TIME HOST(S)\n",
                [TABLE_HOLD] = " ID      OWNER/NODENAME HELD_SINCE  HOLD_REASON\n",
        };
        char host[256] = "";

        gethostname(host, sizeof(host) - 1);
        buf_printf(&l->text, "\n\n-- Schedd: %s : <drover> @ ", host);
        clock_text_full(&l->text, l->cli->now_ms / 1000);
        buf_char(&l->text, '\n');
        if (l->table != TABLE_BATCH && l->table != TABLE_NONE)
                buf_addz(&l->text, l->dag ? dag_titles[l->table] : titles[l->table]);
}

static void all_totals(struct listing *l)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct totals t = {{0}};
        struct view jobs;

        if (api_call(l->cli, &(struct api_request){.path = "/v1/server"}, &answer, NULL) != 0)
                return;
        jobs = view_get(answer.root, "jobs");
        totals_add(&t, 1, view_integer(view_get(jobs, "idle"), 0));
        totals_add(&t, 2, view_integer(view_get(jobs, "running"), 0));
        totals_add(&t, 5, view_integer(view_get(jobs, "held"), 0));
        totals_add(&t, 4, view_integer(view_get(jobs, "left"), 0));
        totals_print(&t, "all users", &l->text);
}

static void print_end(struct listing *l)
{
        if (l->table == TABLE_BATCH)
                queue_batches_print(&l->batches, &l->text);
        if (l->table != TABLE_RUN) {
                buf_char(&l->text, '\n');
                totals_print(&l->totals, "query", &l->text);
                all_totals(l);
                buf_char(&l->text, '\n');
        }
        cli_print(&l->text);
}

static int list_jobs(struct listing *l, const struct flags *f, const struct select *s, int64_t limit)
{
        struct buf names BUF_CLEANUP = {0};
        bool table = l->output.form == OUTPUT_TABLE;
        const char *states = flags_has(f, "hold")   ? "held"
                             : flags_has(f, "run")  ? "running"
                             : flags_has(f, "idle") ? "idle"
                                                    : STATES_LEFT;

        if (!table)
                output_names(&l->output, &names);
        else if (l->table != TABLE_NONE && l->table != TABLE_BATCH)
                buf_addz(&names, ROW_ATTRIBUTES);
        else if (l->table == TABLE_BATCH)
                buf_addz(&names, "JobBatchName");
        if (table && l->table == TABLE_BATCH && !s->jobs && s->constraint.n == 0 && limit == 0)
                return select_fetch(l->cli, &(struct select){0},
                                    &(struct select_fetch){.address = "/v1/requests",
                                                           .array = "requests",
                                                           .cursor = "after",
                                                           .each = add_request,
                                                           .arg = l});
        return select_fetch(l->cli, s,
                            &(struct select_fetch){.address = "/v1/jobs",
                                                   .array = "jobs",
                                                   .cursor = "after",
                                                   .constraint = buf_view(&s->constraint),
                                                   .states = str_of(states),
                                                   .attributes = buf_view(&names),
                                                   .limit = limit,
                                                   .each = queue_add_job,
                                                   .arg = l});
}

static int queue_read_flags(struct listing *l, const struct flags *f, struct select *s, int64_t *ret_limit,
                            struct err *err)
{
        struct buf owner BUF_CLEANUP = {0};
        const char *submitter = flags_text(f, "submitter");
        int rc = output_init(&l->output, f, l->cli->now_ms / 1000, err);

        if (rc == 0)
                rc = select_words(s, f, "constraint", err);
        if (rc == 0)
                rc = flags_number(f, "limit", 0, ret_limit, err);
        if (rc == 0 && submitter) {
                select_owner(&owner, str_of(submitter));
                select_and(&s->constraint, buf_view(&owner));
        }
        l->dag = flags_has(f, "dag");
        l->batches.ids = s->ids;
        l->batches.id_count = s->id_count;
        l->table = flags_has(f, "totals")                                      ? TABLE_NONE
                   : flags_has(f, "hold")                                      ? TABLE_HOLD
                   : flags_has(f, "run")                                       ? TABLE_RUN
                   : flags_has(f, "nobatch") || flags_has(f, "idle") || l->dag ? TABLE_JOBS
                                                                               : TABLE_BATCH;
        return rc;
}

static int queue(struct cli *cli, const struct flags *f)
{
        struct listing l = {.cli = cli};
        struct select s SELECT_CLEANUP = {0};
        struct err err = {""};
        int64_t limit = 0;
        int code = queue_read_flags(&l, f, &s, &limit, &err) == 0 ? 0 : cli_error(1, "%s", err.text);

        if (code == 0 && l.output.form == OUTPUT_TABLE && l.table != TABLE_NONE)
                print_header(&l);
        if (code == 0)
                code = list_jobs(&l, f, &s, limit);
        if (code == 0 && l.output.form == OUTPUT_TABLE)
                print_end(&l);
        else if (code == 0)
                output_end(&l.output);
        output_deinit(&l.output);
        queue_batches_deinit(&l.batches);
        buf_deinit(&l.text);
        return code;
}

static const struct flag_row rows[] = {
        {"constraint", 1, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only jobs for which this expression is true."},
        {"nobatch", 3, FLAG_PLAIN, FLAG_ACTS, NULL, "A line for each job."},
        {"batch", 2, FLAG_PLAIN, FLAG_SO, NULL, "A line for each request; this is so anyway."},
        {"totals", 3, FLAG_PLAIN, FLAG_ACTS, NULL, "Only the totals."},
        {"hold", 4, FLAG_PLAIN, FLAG_ACTS, NULL, "Held jobs, since when and why."},
        {"run", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Running jobs, and where."},
        {"idle", 2, FLAG_PLAIN, FLAG_ACTS, NULL, "Idle jobs, a line for each."},
        {"allusers", 2, FLAG_PLAIN, FLAG_SO, NULL, "All jobs that you may see are listed anyway."},
        {"submitter", 2, FLAG_VALUE, FLAG_ACTS, "USER", "Only the jobs of this user."},
        {"limit", 3, FLAG_VALUE, FLAG_ACTS, "N", "At most so many jobs."},
        OUTPUT_ROWS,
        {"wide", 1, FLAG_PLAIN, FLAG_SO, NULL, "Lines are never cut."},
        {"global", 1, FLAG_PLAIN, FLAG_SO, NULL, "There is one server."},
        {"stream-results", 2, FLAG_PLAIN, FLAG_SO, NULL, "Jobs are printed as they come."},
        {"expert", 1, FLAG_PLAIN, FLAG_SO, NULL, "Errors are short."},
        {"currentrun", 3, FLAG_PLAIN, FLAG_SO, NULL, "RUN_TIME is of the run under way."},
        {"analyze", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover why."},
        {"better-analyze", 3, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover why."},
        {"dag", 1, FLAG_PLAIN, FLAG_ACTS, NULL,
         "A line for each job; those of graphs by the names of their nodes."},
        {"io", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "use -af BytesRecvd BytesSent."},
        {"grid", 4, FLAG_PLAIN, FLAG_REFUSED, NULL, "there is no grid universe."},
        {"cputime", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "use -af RemoteUserCpu."},
        {"cumulative-time", 3, FLAG_PLAIN, FLAG_REFUSED, NULL, "use -af RemoteWallClockTime."},
        {"userlog", 1, FLAG_VALUE, FLAG_REFUSED, "FILE", "use condor_wait or drover log."},
        {"jobads", 4, FLAG_VALUE, FLAG_REFUSED, "FILE", "use drover classad."},
        {0},
};
const struct condor_tool condor_q = {
        .name = "condor_q",
        .usage = "[FLAGS] [CLUSTER | CLUSTER.PROC | USER]...",
        .line = "Lists jobs that are not finished.",
        .rows = rows,
        .words_max = 100000,
        .run = queue,
};
