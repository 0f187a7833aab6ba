/* POST /v1/agents/NAME/drain and /resume */
#include "base/log.h"
#include "core/query.h"
#include "server/agents/drained.h"
#include "server/api/routes.h"

#define REASON_MAX 1024

struct drain {
        json_t *doc;
        struct str reason;
        bool drains;
        uint64_t running;
};

static void state_free(void *arg)
{
        json_decref(((struct drain *)arg)->doc);
        free(arg);
}

static void reply(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void count(void *arg, const struct core_queue_view *q)
{
        struct call *c = arg;

        if (str_eqz(c->param[0], q->agent))
                ((struct drain *)c->state)->running += q->attempts;
}

static void write_answer(struct server *s, struct call *c, const char *name)
{
        struct json j = {.out = &c->out};
        struct drain *x = c->state;

        core_queues(s->core, count, c);
        json_open(&j, '{');
        json_kstrz(&j, "name", name);
        json_kstrz(&j, "drained", core_agent_drained(s->core, name));
        json_kint(&j, "jobs", (int64_t)x->running);
        json_close(&j, '}');
}

static void set(struct server *s, struct call *c)
{
        struct drain *x = c->state;
        MEM_CLEANUP char *name = str_dupz(c->param[0]);
        BUF_CLEANUP struct buf why = {0};

        if (!core_agent_known(s->core, name)) {
                call_fail(c, 404, "not_found", "there is no agent %s that this server has heard of", name);
                return;
        }
        if (turn_full(s->turn)) { /* a restart would forget it */
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        if (x->drains)
                buf_printf(&why, "drained by %s%s" STR_FMT, c->who, x->reason.n ? ": " : "",
                           STR_ARG(x->reason));
        drained_set(s, name, x->drains ? buf_z(&why) : NULL);
        log_info("msg=\"an agent %s\" name=\"%s\" by=\"%s\" reason=\"%s\"",
                 x->drains ? "is drained" : "is given jobs again", LOG_TEXT(str_of(name)),
                 LOG_TEXT(str_of(c->who)), LOG_TEXT(x->reason));
        write_answer(s, c, name);
        c->when = TURN_DURABLE;
        call_io(c, reply);
}

static void begin(struct call *c, json_t *doc, bool drains)
{
        struct drain *x = call_state(c, sizeof(*x), state_free);

        x->doc = doc;
        x->drains = drains;
        x->reason = doc ? str_head(call_json_text(doc, "reason"), REASON_MAX) : STR_NONE;
        if (c->role == ROLE_USER)
                call_fail(c, 403, "forbidden", "only an operator or an admin drains and resumes agents");
        else
                call_core(c, set);
}

void api_agent_drain(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);

        (void)s;
        if (doc)
                begin(c, doc, true);
}

void api_agent_resume(struct server *s, struct call *c)
{
        (void)s;
        begin(c, NULL, false);
}
