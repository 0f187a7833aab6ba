/* The server lists finished jobs, the latest first; -constraint and -since are judged here. */
#include "base/mem.h"
#include "classad/eval.h"
#include "classad/expr.h"
#include "cli/client/jobs.h"
#include "cli/condor/ads.h"
#include "cli/condor/clock_text.h"
#include "cli/condor/condor.h"
#include "cli/condor/output.h"
#include "cli/condor/select.h"
#include "cli/terminal/human.h"

struct past {
        struct cli *cli;
        struct output output;
        struct expr *constraint, *since; /* NULL: none */
        const char *since_id;
        int64_t limit, scan, shown, scanned; /* limits: 0 none */
        bool forwards;
        char **kept; /* with forwards: rows or ads as text, to be turned round */
        size_t kept_count, kept_cap;
        struct buf text;
};

static void past_deinit(struct past *p)
{
        expr_free(p->constraint);
        expr_free(p->since);
        for (size_t i = 0; i < p->kept_count; i++)
                free(p->kept[i]);
        free(p->kept);
        buf_deinit(&p->text);
        output_deinit(&p->output);
}

static bool holds(struct past *p, const struct expr *e, const struct ad *ad)
{
        struct eval *ev = &p->output.columns.eval;
        struct value v;
        bool is;

        eval_expr(ev, e, ad, NULL, &v);
        is = value_is_true(&v);
        eval_reset(ev);
        return is;
}

static void history_add_row(struct past *p, struct view job)
{
        struct buf *out = &p->text, text BUF_CLEANUP = {0};
        struct job_row row;

        job_read(job, &row);
        view_text(row.owner, &text);
        if (str_rfind(buf_view(&text), '@') > 0)
                buf_truncate(&text, (size_t)str_rfind(buf_view(&text), '@'));
        buf_printf(out, "%4lld.%-3lld %-14.14s ", (long long)view_integer(view_get(job, "request"), 0),
                   (long long)view_integer(view_get(job, "member"), 0), buf_z(&text));
        clock_text_date(out, view_integer(row.submitted_ms, 0) / 1000);
        buf_reset(&text);
        clock_text_run(&text, view_integer(view_get(view_get(job, "ad"), "RemoteWallClockTime"), 0));
        buf_printf(out, " %12s %c  ", buf_z(&text),
                   view_integer(view_get(job, "status"), 0) == 3 ? 'X' : 'C');
        clock_text_date(out, view_integer(row.ended_ms, 0) / 1000);
        buf_char(out, ' ');
        buf_reset(&text);
        job_command(&row, &text);
        human_safe(out, buf_view(&text));
        buf_char(out, '\n');
}

static void show_job(struct past *p, struct view job, const struct ad *ad)
{
        if (p->output.form == OUTPUT_TABLE)
                history_add_row(p, job);
        else
                output_ad(&p->output, view_get(job, "ad"), ad);
        if (p->text.n > 65536)
                cli_print(&p->text);
}

/* Not 0: that is enough. */
static int history_add_job(void *arg, struct view job)
{
        struct past *p = arg;
        struct ad *ad = ads_read(p->output.symbols, view_get(job, "ad"));
        bool end = (p->since_id && view_is(view_get(job, "id"), p->since_id)) ||
                   (p->since && holds(p, p->since, ad)) || (p->scan && ++p->scanned > p->scan);

        if (!end && (!p->constraint || holds(p, p->constraint, ad))) {
                if (p->forwards) {
                        MEM_GROW(p->kept, p->kept_cap, p->kept_count + 1);
                        p->kept[p->kept_count++] = mem_dup(job.text.p, job.text.n);
                } else {
                        show_job(p, job, ad);
                }
                end = p->limit && ++p->shown == p->limit;
        }
        ad_free(ad);
        return end;
}

static int constraint_parse(struct past *p, struct str text, struct expr **ret, struct err *err)
{
        return expr_parse(p->output.symbols, text, ret, err) == 0 ? 0
                                                                  : err_prefix(err, -22, "the expression");
}

static int history_read_flags(struct past *p, const struct flags *f, struct select *s, struct err *err)
{
        const char *since = flags_text(f, "since"), *completed = flags_text(f, "completedsince");
        struct buf text BUF_CLEANUP = {0};
        int64_t match = 0;
        int rc = output_init(&p->output, f, p->cli->now_ms / 1000, err);

        if (rc == 0)
                rc = select_words(s, f, "constraint", err);
        if (rc == 0)
                rc = flags_number(f, "limit", 0, &p->limit, err);
        if (rc == 0)
                rc = flags_number(f, "match", 0, &match, err);
        if (rc == 0)
                rc = flags_number(f, "scanlimit", 0, &p->scan, err);
        if (match > 0)
                p->limit = match;
        if (p->limit < 0)
                p->limit = 0;
        p->forwards = flags_has(f, "forwards");
        if (rc == 0 && s->constraint.n)
                rc = constraint_parse(p, buf_view(&s->constraint), &p->constraint, err);
        if (since && str_find(str_of(since), '.') > 0 && select_is_id(since)) {
                p->since_id = since;
        } else if (completed) {
                buf_printf(&text, "CompletionDate <= (%s)", completed);
        } else if (since && select_is_id(since)) {
                buf_printf(&text, "ClusterId == %s", since);
        } else if (since) {
                expr_text_from_old(str_of(since), &text);
        }
        if (rc == 0 && text.n)
                rc = constraint_parse(p, buf_view(&text), &p->since, err);
        return rc;
}

static int list_history(struct past *p, const struct select *s)
{
        struct buf names BUF_CLEANUP = {0};
        int code;

        if (p->constraint || p->since)
                buf_char(&names, '*');
        else if (p->output.form == OUTPUT_TABLE)
                buf_addz(&names, "RemoteWallClockTime");
        else
                output_names(&p->output, &names);
        code = select_fetch(p->cli, s,
                            &(struct select_fetch){.address = "/v1/history",
                                                   .array = "jobs",
                                                   .cursor = "before",
                                                   .attributes = buf_view(&names),
                                                   .each = history_add_job,
                                                   .arg = p});
        for (size_t i = p->kept_count; code == 0 && i-- > 0;)
                show_job(p, view_open(str_of(p->kept[i])), NULL);
        return code;
}

static int history(struct cli *cli, const struct flags *f)
{
        struct past p = {.cli = cli};
        struct select s SELECT_CLEANUP = {0};
        struct err err = {""};
        int code = history_read_flags(&p, f, &s, &err) == 0 ? 0 : cli_error(1, "%s", err.text);

        if (code == 0 && p.output.form == OUTPUT_TABLE)
                buf_addz(&p.text, " ID     OWNER          SUBMITTED       RUN_TIME ST COMPLETED   CMD\n");
        if (code == 0)
                code = list_history(&p, &s);
        if (code == 0 && p.output.form == OUTPUT_TABLE)
                cli_print(&p.text);
        else if (code == 0)
                output_end(&p.output);
        past_deinit(&p);
        return code;
}

static const struct flag_row rows[] = {
        {"constraint", 1, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only jobs for which this expression is true."},
        {"limit", 2, FLAG_VALUE, FLAG_ACTS, "N", "At most so many jobs."},
        {"match", 1, FLAG_VALUE, FLAG_ACTS, "N", "The same."},
        {"scanlimit", 2, FLAG_VALUE, FLAG_ACTS, "N", "Look at so many jobs at most."},
        {"since", 2, FLAG_VALUE, FLAG_ACTS, "ID|EXPR",
         "Stop before the first job that this names, or for which it is true."},
        {"completedsince", 3, FLAG_VALUE, FLAG_ACTS, "TIME", "Only jobs that ended after this Unix time."},
        {"forwards", 3, FLAG_PLAIN, FLAG_ACTS, NULL, "The latest last."},
        {"backwards", 1, FLAG_PLAIN, FLAG_SO, NULL, "The latest first; this is so anyway."},
        OUTPUT_ROWS,
        {"wide", 1, FLAG_PLAIN, FLAG_SO, NULL, "Lines are never cut."},
        {"schedd", 3, FLAG_PLAIN, FLAG_SO, NULL, "The history is the server's."},
        {"local", 3, FLAG_PLAIN, FLAG_SO, NULL, "The history is the server's."},
        {"no-librarian", 4, FLAG_PLAIN, FLAG_SO, NULL, "There is none."},
        {"file", 2, FLAG_VALUE, FLAG_REFUSED, "FILE", "the server keeps the history."},
        {"search", 3, FLAG_VALUE, FLAG_REFUSED, "PATH", "the server keeps the history."},
        {"extract", 3, FLAG_VALUE, FLAG_REFUSED, "FILE", "the server keeps the history."},
        {"userlog", 1, FLAG_VALUE, FLAG_REFUSED, "FILE", "use condor_wait or drover log."},
        {"startd", 4, FLAG_PLAIN, FLAG_REFUSED, NULL, "agents keep no history."},
        {"epochs", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover log."},
        {"transfer-history", 5, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover log."},
        {"daemon", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "the server keeps no ads of its own."},
        {0},
};
const struct condor_tool condor_history = {
        .name = "condor_history",
        .usage = "[FLAGS] [CLUSTER | CLUSTER.PROC | USER]...",
        .line = "Lists finished jobs, the latest first.",
        .rows = rows,
        .words_max = 100000,
        .run = history,
};
