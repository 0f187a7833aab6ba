/* POST /v1/agents/NAME/drain and /resume */
#include "core/query.h"
#include "server/api/routes.h"

#define REASON_MAX 1024

struct drain {
        json_t *doc;
        struct str reason;
        bool drains;
        uint64_t running;
};

static void agent_drain_state_free(void *arg)
{
        json_decref(((struct drain *)arg)->doc);
        free(arg);
}

static void reply_drain(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void count_running(void *arg, const struct core_queue_view *q)
{
        struct call *c = arg;

        if (str_eqz(c->param[0], q->agent))
                ((struct drain *)c->state)->running += q->attempts;
}

static void write_answer(struct server *s, struct call *c, const char *name)
{
        struct json j = {.out = &c->out};
        struct drain *x = c->state;
        struct core_node n = {0};

        core_queues(s->core, count_running, c);
        json_open(&j, '{');
        json_kstrz(&j, "name", name);
        core_node_get(s->core, name, &n);
        json_kstrz(&j, "drained", n.refuses);
        json_kint(&j, "jobs", (int64_t)x->running);
        json_close(&j, '}');
}

static void set_drain(struct server *s, struct call *c)
{
        struct drain *x = c->state;
        MEM_CLEANUP char *name = str_dupz(c->param[0]);
        struct core_node_order o = {.agent = name,
                                    .to = x->drains ? NODE_DRAINING : NODE_UP,
                                    .by = str_of(c->who),
                                    .reason = x->reason};
        struct err err = {""};

        if (!core_agent_known(s->core, name)) {
                call_fail(c, 404, "not_found", "there is no agent %s known to this server", name);
                return;
        }
        if (turn_full(s->turn)) { /* the order could not be stored, and a restart would lose it */
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        if (core_node_set(s->core, &o, &err) != 0) {
                call_fail(c, 409, "conflict", "%s", err.text);
                return;
        }
        write_answer(s, c, name);
        c->when = TURN_DURABLE;
        call_io(c, reply_drain);
}

static void begin_drain(struct call *c, json_t *doc, bool drains)
{
        struct drain *x = call_state(c, sizeof(*x), agent_drain_state_free);

        x->doc = doc;
        x->drains = drains;
        x->reason = doc ? str_head(call_json_text(doc, "reason"), REASON_MAX) : STR_NONE;
        if (c->role == ROLE_USER)
                call_fail(c, 403, "forbidden", "only an operator or an admin drains and resumes agents");
        else
                call_core(c, set_drain);
}

void api_agent_drain(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);

        (void)s;
        if (doc)
                begin_drain(c, doc, true);
}

void api_agent_resume(struct server *s, struct call *c)
{
        (void)s;
        begin_drain(c, NULL, false);
}
