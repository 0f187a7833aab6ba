#include "cli/client/session_report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "cli/client/jobs.h"
#include "cli/terminal/human.h"

#define REPORT_MAX (64u << 20)                     /* bytes of a submit's report */
#define STATE_MARK "\n==== the jobs as they were " /* begins what is added to a report */
#define FIELDS     "attributes=LastRemoteHost"

static const char *const states[] = {"idle", "running", "held", "completed", "removed"};

struct job {
        uint64_t member;
        char *text; /* JSON */
};
struct jobs {
        struct job *v;
        size_t count, cap;
};

static void jobs_deinit(struct jobs *j)
{
        for (size_t i = 0; i < j->count; i++)
                free(j->v[i].text);
        free(j->v);
}
#define JOBS_CLEANUP __attribute__((cleanup(jobs_deinit)))

static int add_job(void *arg, struct view v)
{
        struct jobs *j = arg;

        MEM_GROW(j->v, j->cap, j->count + 1);
        j->v[j->count++] = (struct job){.member = (uint64_t)view_integer(view_get(v, "member"), 0),
                                        .text = str_dupz(v.text)};
        return 0;
}

static int by_member(const void *x, const void *y)
{
        const struct job *a = x, *b = y;

        return (a->member > b->member) - (a->member < b->member);
}

/* The jobs in the queue, and those that have left it. One that ended a moment ago may be in both. */
static int session_read_jobs(struct cli *cli, uint64_t request, struct jobs *ret)
{
        static const struct {
                const char *path, *cursor;
        } lists[] = {{"/v1/jobs?all=1&" FIELDS "&id=", "after"}, {"/v1/history?" FIELDS "&id=", "before"}};
        bool json = cli->json;
        int code = 0;

        cli->json = false; /* api_list would print the rows itself */
        for (size_t i = 0; i < 2 && code == 0; i++) {
                struct buf path BUF_CLEANUP = {0};

                buf_printf(&path, "%s%llu", lists[i].path, (unsigned long long)request);
                code = api_list(cli, &(struct api_list){.path = &path,
                                                        .array = "jobs",
                                                        .cursor = lists[i].cursor,
                                                        .limit = SESSION_REPORT_JOBS,
                                                        .each = add_job,
                                                        .arg = ret});
        }
        cli->json = json;
        if (ret->count > 1)
                qsort(ret->v, ret->count, sizeof(*ret->v), by_member);
        for (size_t i = 0, to = 0, n = ret->count; i < n; i++) {
                if (to && ret->v[to - 1].member == ret->v[i].member) {
                        free(ret->v[i].text);
                        ret->count--;
                } else {
                        ret->v[to++] = ret->v[i];
                }
        }
        return code;
}

static int report_fetch(struct cli *cli, uint64_t id, struct api_answer *ret_answer, struct jobs *ret_jobs)
{
        struct buf path BUF_CLEANUP = {0};
        int code;

        buf_printf(&path, "/v1/requests/%llu", (unsigned long long)id);
        code = api_get(cli, buf_z(&path), ret_answer);
        return code ? code : session_read_jobs(cli, id, ret_jobs);
}

/* ---- text */

static void write_place(struct view job, const struct job_row *r, struct buf *out)
{
        struct buf last BUF_CLEANUP = {0};
        struct str rest, queue;

        if (view_there(r->agent)) {
                view_safe(r->agent, out);
                buf_char(out, '/');
                view_safe(r->queue, out);
                return;
        }
        view_text(view_get(view_get(job, "ad"), "LastRemoteHost"), &last);
        rest = buf_view(&last);
        if (rest.n == 0) {
                buf_char(out, '-');
                return;
        }
        str_cut(&rest, '@', &queue); /* QUEUE@AGENT */
        human_safe(out, rest);
        buf_char(out, '/');
        human_safe(out, queue);
}

static void write_result(const struct job_row *r, struct buf *out)
{
        if (view_there(r->hold_reason))
                view_safe(r->hold_reason, out);
        else if (job_has_failed(r))
                buf_addz(out, "failed: ");
        if (!view_there(r->hold_reason))
                job_outcome(r, out);
}

static void session_write_jobs(const struct jobs *jobs, struct buf *out)
{
        static const struct table_column columns[] = {{"JOB", true, false},
                                                      {"STATE", false, false},
                                                      {"QUEUE", false, false},
                                                      {"RESULT", false, true}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < jobs->count && i < SESSION_REPORT_JOBS; i++) {
                struct view job = view_of(str_of(jobs->v[i].text));
                struct buf place BUF_CLEANUP = {0}, result BUF_CLEANUP = {0};
                struct job_row r;

                job_read(job, &r);
                write_place(job, &r, &place);
                write_result(&r, &result);
                table_view(&t, r.id);
                table_view(&t, r.state);
                table_text(&t, buf_view(&place));
                table_text(&t, buf_view(&result));
        }
        table_print(&t, out);
        if (jobs->count > SESSION_REPORT_JOBS)
                buf_printf(out, "and more; %u jobs are listed\n", SESSION_REPORT_JOBS);
}

/* Why the first job that waits does so. */
static void write_why(struct cli *cli, const struct jobs *jobs, struct buf *out)
{
        for (size_t i = 0; i < jobs->count; i++) {
                struct view job = view_of(str_of(jobs->v[i].text)), text, line;
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct buf path BUF_CLEANUP = {0};
                struct job_row r;

                job_read(job, &r);
                if (!job_is_idle(r.state))
                        continue;
                buf_addz(&path, "/v1/jobs/");
                view_text(r.id, &path);
                buf_addz(&path, "/why");
                if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                        return;
                buf_addz(out, "why ");
                view_text(r.id, out);
                buf_addz(out, " waits:\n");
                text = view_get(answer.root, "text");
                for (size_t at = 0; view_next(text, &at, &line);) {
                        buf_addz(out, "  ");
                        view_safe(line, out);
                        buf_char(out, '\n');
                }
                return;
        }
}

static int write_request(struct cli *cli, uint64_t id, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct jobs jobs JOBS_CLEANUP = {0};
        int code = report_fetch(cli, id, &answer, &jobs);

        if (code != 0)
                return code;
        buf_printf(out, "\nrequest %llu now:", (unsigned long long)id);
        for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
                buf_printf(out, "%s %lld %s", k ? "," : "",
                           (long long)view_integer(view_get(answer.root, states[k]), 0), states[k]);
        buf_printf(out, "; %lld of the completed failed\n",
                   (long long)view_integer(view_get(answer.root, "failed"), 0));
        session_write_jobs(&jobs, out);
        write_why(cli, &jobs, out);
        return 0;
}

int session_report_text(struct cli *cli, const struct session_file *s, struct buf *out)
{
        int code = 0;

        for (size_t i = 0; i < s->count && code == 0; i++)
                code = write_request(cli, s->requests[i].id, out);
        return code;
}

/* ---- JSON */

static int write_json(struct cli *cli, uint64_t id, struct json *j)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct jobs jobs JOBS_CLEANUP = {0};
        int code = report_fetch(cli, id, &answer, &jobs);

        if (code != 0)
                return code;
        json_open(j, '{');
        json_key(j, "request");
        json_raw(j, answer.root.text);
        json_key(j, "jobs");
        json_open(j, '[');
        for (size_t i = 0; i < jobs.count && i < SESSION_REPORT_JOBS; i++)
                json_raw(j, str_of(jobs.v[i].text));
        json_close(j, ']');
        json_kbool(j, "more", jobs.count > SESSION_REPORT_JOBS);
        json_close(j, '}');
        return 0;
}

int session_report_json(struct cli *cli, const struct session_file *s, struct buf *out)
{
        struct json j = {.out = out};
        int code = 0;

        for (size_t i = 0; i < s->count && code == 0; i++)
                code = write_json(cli, s->requests[i].id, &j);
        return code;
}

/* ---- the file */

static void report_path(const struct session_file *s, struct buf *out)
{
        if (s->report.p[0] != '/') {
                buf_str(out, s->folder.n ? buf_view(&s->folder) : STR("."));
                buf_char(out, '/');
        }
        buf_str(out, buf_view(&s->report));
}

int session_report_read(const struct session_file *s, struct buf *ret, struct err *err)
{
        struct buf path BUF_CLEANUP = {0};
        ptrdiff_t mark;
        int rc;

        if (s->report.n == 0)
                return err_set(err, -ENODATA, "a submit of this description leaves no report");
        report_path(s, &path);
        rc = fs_read(AT_FDCWD, buf_z(&path), REPORT_MAX, ret, err);
        mark = rc == 0 ? str_search(buf_view(ret), STR(STATE_MARK)) : -1;
        if (mark >= 0)
                buf_truncate(ret, (size_t)mark);
        return rc;
}

/* Returns whether the text begins as the report of a submit with this uuid. */
static bool is_report_of(struct str text, const char *uuid)
{
        struct buf head BUF_CLEANUP = {0};

        buf_addz(&head, "request    ");
        for (const char *z = uuid; *z; z++)
                if (*z != '-')
                        buf_char(&head, *z);
        return str_starts(text, buf_view(&head));
}

void session_report_write(const struct session_file *s, struct str now)
{
        struct buf text BUF_CLEANUP = {0}, path BUF_CLEANUP = {0};
        struct err err = {""};
        time_t at = (time_t)(clock_wall_ms() / 1000);
        struct tm tm = {0};
        char moment[32];

        if (!s->own || session_report_read(s, &text, &err) != 0 ||
            !is_report_of(buf_view(&text), s->requests[0].uuid))
                return;
        gmtime_r(&at, &tm);
        strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S UTC", &tm);
        buf_printf(&text, STATE_MARK "at %s\n", moment);
        buf_str(&text, now);
        report_path(s, &path);
        if (fs_write(AT_FDCWD, buf_z(&path), buf_view(&text), 0666, true, &err) != 0)
                cli_note("the report could not be written: %s", err.text);
}

void session_report_keep(struct cli *cli, const char *session)
{
        struct session_file s SESSION_FILE_CLEANUP = {0};
        struct buf now BUF_CLEANUP = {0};

        if (session_file_read(session, &s) == 0 && s.report.n && session_report_text(cli, &s, &now) == 0)
                session_report_write(&s, buf_view(&now));
}
