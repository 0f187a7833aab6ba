/* GET /v1/jobs/7.42 and its log. */
#include <stdio.h>

#include "classad/print.h"
#include "core/meta/meta.h"
#include "core/query.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/loop/ids.h"

struct job {
        uint64_t request;
        uint32_t member;
        struct row row;
        call_fn *there; /* core thread: the job is in the core */
        call_fn *past;  /* reader thread: the job may be in history */
        bool past_found;
};

static void job_not_found(struct call *c)
{
        struct job *x = c->state;

        call_fail(c, 404, "not_found", "there is no job %llu.%u", (unsigned long long)x->request, x->member);
}

static void job_ask_past(struct server *s, struct call *c)
{
        struct job *x = c->state;

        (void)s;
        call_reader(c, x->past);
}

/* Core thread: checks that the job exists and that the caller may see it. */
static void job_find_job(struct server *s, struct call *c)
{
        struct job *x = c->state;
        struct core_request r;
        struct core_job j;

        if (core_request_get(s->core, x->request, &r) != 0) {
                if (x->past && x->request <= core_request_last(s->core))
                        call_io(c, job_ask_past);
                else
                        job_not_found(c);
                return;
        }
        if (!call_may(c, r.owner) || core_job_get(s->core, x->request, x->member, &j) != 0)
                job_not_found(c);
        else if (x->past && (j.state == JOB_COMPLETED || j.state == JOB_REMOVED))
                call_io(c, job_ask_past);
        else
                x->there(s, c);
}

static void start_job_call(struct call *c, call_fn *there, call_fn *past)
{
        struct job *x = call_state(c, sizeof(*x), NULL);

        x->there = there;
        x->past = past;
        if (ids_parse_job(c->param[0], &x->request, &x->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else
                call_core(c, job_find_job);
}

/* ---- the complete ad */

static void write_row(struct server *s, struct call *c)
{
        struct job *x = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        row_write(&j, &x->row);
        call_reply(c);
}

static void job_make_row(struct server *s, struct call *c)
{
        struct job *x = c->state;
        struct row_maker m;
        BUF_CLEANUP struct buf out = {0};
        struct ad *ad = core_job_ad(s->core, x->request, x->member);

        row_maker_init(&m, s, &c->arena);
        row_make(&m, x->request, x->member, &x->row);
        row_maker_deinit(&m);
        ad_print_json(&out, ad, true);
        ad_free(ad);
        x->row.ad = arena_str(&c->arena, buf_view(&out));
        call_io(c, write_row);
}

static void make_unfiled(struct server *s, struct call *c)
{
        struct core_job j;
        struct job *x = c->state;

        if (core_job_get(s->core, x->request, x->member, &j) == 0)
                job_make_row(s, c);
        else
                job_not_found(c);
}

static void read_row(struct server *s, struct call *c)
{
        struct job *x = c->state;

        x->row.request = x->request;
        x->row.member = x->member;
        if (!jobs_fill_past(s, &c->arena, &x->row, true, STR_NONE))
                call_core(c, make_unfiled); /* the job has ended, and its row is not written yet */
        else if (!call_may(c, x->row.owner))
                job_not_found(c);
        else
                call_io(c, write_row);
}

void api_job(struct server *s, struct call *c)
{
        (void)s;
        start_job_call(c, job_make_row, read_row);
}

/* ---- the log */

struct log_writer {
        struct json j;
        uint64_t n;
};

static void write_entry(struct log_writer *w, int64_t at_ms, struct str event, uint32_t fence,
                        struct str agent, struct str queue, int64_t code, struct str text)
{
        struct json *j = &w->j;

        json_open(j, '{');
        json_kint(j, "seq", (int64_t)++w->n);
        json_kint(j, "at_ms", at_ms);
        json_kstr(j, "event", event);
        if (fence)
                json_kint(j, "fence", fence);
        if (agent.n)
                json_kstr(j, "agent", agent);
        if (queue.n)
                json_kstr(j, "queue", queue);
        if (code)
                json_kint(j, "code", code);
        if (text.n)
                json_kstr(j, "text", text);
        json_close(j, '}');
}

static void on_entry(void *arg, const struct core_log_entry *e)
{
        write_entry(arg, e->at_ms, str_of(event_name(e->type)), e->fence, str_of(e->agent), str_of(e->queue),
                    e->code, str_of(e->text));
}

static void write_log(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void make_log(struct server *s, struct call *c)
{
        struct job *x = c->state;
        struct core_job job = {.part = 0};
        struct log_writer w = {.j = {.out = &c->out}};

        core_job_get(s->core, x->request, x->member, &job);
        json_open(&w.j, '{');
        json_kbool(&w.j, "meta", core_part_is_meta(s->core, x->request, job.part));
        json_key(&w.j, "events");
        json_open(&w.j, '[');
        core_job_log(s->core, x->request, x->member, on_entry, &w);
        json_close(&w.j, ']');
        json_close(&w.j, '}');
        call_io(c, write_log);
}

/* Writes one line, such as "1700000000000 matched 3 agent queue 0 text"; the core writes the history row
 * in this form. */
static void write_line(struct log_writer *w, struct str line)
{
        struct str word[6] = {0};
        int64_t at_ms = 0, code = 0;
        uint64_t fence = 0;

        for (size_t i = 0; i < 6; i++)
                if (!str_cut(&line, ' ', &word[i]))
                        return;
        str_to_i64(word[0], &at_ms);
        str_to_u64(word[2], &fence);
        str_to_i64(word[5], &code);
        for (size_t i = 3; i < 5; i++)
                if (str_eqz(word[i], "-"))
                        word[i] = STR_NONE;
        write_entry(w, at_ms, word[1], (uint32_t)fence, word[3], word[4], code, line);
}

static void read_log(struct server *s, struct call *c)
{
        struct job *x = c->state;
        struct log_writer w = {.j = {.out = &c->out}};
        json_t *ad, *lines, *line;
        size_t i;

        x->row.request = x->request;
        x->row.member = x->member;
        if (!jobs_fill_past(s, &c->arena, &x->row, false, STR("DroverLog,Meta,CoAllocate"))) {
                call_core(c, make_log);
                return;
        }
        if (!call_may(c, x->row.owner)) {
                job_not_found(c);
                return;
        }
        ad = json_loadb(x->row.ad.p, x->row.ad.n, 0, NULL);
        lines = json_object_get(ad, "DroverLog");
        json_open(&w.j, '{');
        json_kbool(&w.j, "meta",
                   json_is_true(json_object_get(ad, "Meta")) ||
                           json_is_true(json_object_get(ad, "CoAllocate")));
        json_key(&w.j, "events");
        json_open(&w.j, '[');
        write_entry(&w, x->row.submitted_ms, STR("submitted"), 0, STR_NONE, STR_NONE, 0, STR_NONE);
        json_array_foreach (lines, i, line)
                write_line(&w, str_make(json_string_value(line), json_string_length(line)));
        json_close(&w.j, ']');
        json_close(&w.j, '}');
        json_decref(ad);
        call_io(c, write_log);
}

void api_job_log(struct server *s, struct call *c)
{
        (void)s;
        start_job_call(c, make_log, read_log);
}
