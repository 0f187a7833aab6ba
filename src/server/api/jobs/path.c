/* GET /v1/jobs/7.42/path, GET /v1/paths: the servers and places that have a job. */
#include "core/query.h"
#include "server/agents/attempt_location.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/loop/ids.h"

#define PATHS_MAX 1000

struct path {
        uint64_t request, after;
        uint32_t member;
        struct row row;
        struct json j;
        struct call *call;
        struct server *server;
        size_t count;
};

static void reply_path(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void path_not_found(struct call *c)
{
        call_fail(c, 404, "not_found", "there is no job " STR_FMT, STR_ARG(c->param[0]));
}

/* Reader thread: a job that has ended is at no other server any more. */
static void path_read_past(struct server *s, struct call *c)
{
        struct path *p = c->state;
        struct json j = {.out = &c->out};

        p->row.request = p->request;
        p->row.member = p->member;
        if (!jobs_fill_past(s, &c->arena, &p->row, false, STR_NONE) || !call_may(c, p->row.owner)) {
                path_not_found(c);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "request", (int64_t)p->request);
        json_kint(&j, "member", p->member);
        json_kstrz(&j, "summary", job_state_name(p->row.state));
        json_key(&j, "hops");
        json_open(&j, '[');
        json_open(&j, '{');
        json_kstrz(&j, "server", s->uuid);
        json_kstrz(&j, "domain", s->config.domain);
        json_kstr(&j, "job", c->param[0]);
        json_kstr(&j, "owner", p->row.owner);
        json_kstrz(&j, "state", job_state_name(p->row.state));
        json_kint(&j, "since_ms", p->row.ended_ms);
        json_close(&j, '}');
        json_close(&j, ']');
        json_close(&j, '}');
        call_io(c, reply_path);
}

static void path_ask_past(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, path_read_past);
}

static void read_path(struct server *s, struct call *c)
{
        struct path *p = c->state;
        struct json j = {.out = &c->out};
        struct core_request r;
        struct core_job job;

        if (core_request_get(s->core, p->request, &r) != 0) {
                if (p->request <= core_request_last(s->core))
                        call_io(c, path_ask_past);
                else
                        path_not_found(c);
                return;
        }
        if (!call_may(c, r.owner) || core_job_get(s->core, p->request, p->member, &job) != 0) {
                path_not_found(c);
                return;
        }
        if (job.state == JOB_COMPLETED || job.state == JOB_REMOVED) {
                call_io(c, path_ask_past);
                return;
        }
        json_open(&j, '{');
        attempt_location_write(s, &j, p->request, p->member);
        json_close(&j, '}');
        call_io(c, reply_path);
}

void api_job_path(struct server *s, struct call *c)
{
        struct path *p = call_state(c, sizeof(*p), NULL);

        (void)s;
        if (ids_parse_job(c->param[0], &p->request, &p->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else
                call_core(c, read_path);
}

/* ---- changed jobs */

static bool path_add_job(void *arg, uint64_t request, uint32_t member)
{
        struct path *p = arg;
        struct core_request r;

        if (p->count == PATHS_MAX)
                return false;
        if (core_request_get(p->server->core, request, &r) != 0 || !call_may(p->call, r.owner))
                return true;
        p->count++;
        json_open(&p->j, '{');
        attempt_location_write(p->server, &p->j, request, member);
        json_close(&p->j, '}');
        return true;
}

static void look_changed(struct server *s, struct call *c)
{
        struct path *p = c->state;
        uint64_t next;

        p->j.out = &c->out;
        p->call = c;
        p->server = s;
        json_open(&p->j, '{');
        json_key(&p->j, "paths");
        json_open(&p->j, '[');
        next = attempt_locations_changed(s, p->after, path_add_job, p);
        json_close(&p->j, ']');
        json_kint(&p->j, "next", (int64_t)next);
        json_close(&p->j, '}');
        call_io(c, reply_path);
}

void api_paths(struct server *s, struct call *c)
{
        struct path *p = call_state(c, sizeof(*p), NULL);

        (void)s;
        if (call_number(c, "after", UINT64_MAX, &p->after))
                call_core(c, look_changed);
}
