/* GET /v1/accounts, GET /v1/jobs/7.42/priority: fair shares, and the priority of a job. */
#include "server/api/explain/order.h"

#include "core/query.h"
#include "server/api/routes.h"
#include "server/loop/ids.h"

static void number(struct json *j, const char *key, double v)
{
        json_key(j, key);
        json_double(j, v);
}

static void on_account(void *arg, const struct core_account *a)
{
        struct json *j = arg;

        json_open(j, '{');
        json_kstrz(j, "name", a->path[0] == '/' ? a->path + 1 : a->path);
        json_kbool(j, "user", a->user);
        number(j, "shares", a->shares);
        number(j, "part", a->part);
        number(j, "usage_s", a->usage_s);
        number(j, "mean_cpus", a->mean_cpus);
        number(j, "cpus", a->cpus);
        json_kint(j, "running", (int64_t)a->running);
        json_kint(j, "waiting", (int64_t)a->waiting);
        json_close(j, '}');
}

static void look_accounts(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_key(&j, "accounts");
        json_open(&j, '[');
        core_accounts(s->core, on_account, &j);
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

void api_accounts(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, look_accounts);
}

static void component(struct json *j, const char *name, double points, const char *of, double value)
{
        json_open(j, '{');
        json_kstrz(j, "name", name);
        number(j, "points", points);
        json_kstrz(j, "of", of);
        number(j, "value", value);
        json_close(j, '}');
}

void priority_write(struct json *j, const struct core_priority *p)
{
        json_kstrz(j, "account", p->account[0] == '/' ? p->account + 1 : p->account);
        json_kstrz(j, "qos", p->qos);
        number(j, "total", p->total);
        json_kint(j, "ahead", (int64_t)p->ahead);
        json_kbool(j, "ahead_more", p->ahead_more);
        json_key(j, "components");
        json_open(j, '[');
        component(j, "fair_share", p->fair_share_points, "processors of its account, lately and now",
                  p->lately_cpus + p->now_cpus);
        component(j, "qos", p->qos_points, p->qos ? p->qos : "none", p->qos_points);
        component(j, "size", p->size_points, "processors asked for", p->cpus);
        component(j, "age", p->age_points, "hours in the queue", p->age_h);
        component(j, "waiting", p->waiting_points, "hours of waiting, fewer if it may run long",
                  p->waiting_h);
        component(j, "user", p->user_points, "JobPrio", (double)p->job_prio);
        component(j, "credential", p->credential_points, "points of its owner, group, account and class",
                  p->credential);
        json_close(j, ']');
        json_key(j, "share");
        json_open(j, '{');
        number(j, "part", p->part);
        number(j, "lately_cpus", p->lately_cpus);
        number(j, "now_cpus", p->now_cpus);
        json_close(j, '}');
}

static void look_priority(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        struct core_request r;
        struct core_priority p;
        uint64_t request;
        uint32_t member;

        if (ids_parse_job(c->param[0], &request, &member) != 0 ||
            core_request_get(s->core, request, &r) != 0 || !call_may(c, r.owner)) {
                call_fail(c, 404, "not_found", "there is no job " STR_FMT " in the queue",
                          STR_ARG(c->param[0]));
                return;
        }
        if (core_job_priority(s->core, request, member, &p) != 0) {
                call_fail(c, 409, "not_idle", STR_FMT " is not idle: it has no place in the order",
                          STR_ARG(c->param[0]));
                return;
        }
        json_open(&j, '{');
        json_kstr(&j, "id", c->param[0]);
        priority_write(&j, &p);
        json_close(&j, '}');
        call_reply(c);
}

void api_job_priority(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, look_priority);
}
