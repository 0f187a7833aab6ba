/* GET /v1/nodes and /v1/nodes/NAME: the records of agents' machines, and the orders given to them; POST
 * /v1/nodes/NAME gives an order. */
#include "base/map.h"
#include "base/system/clock.h"
#include "server/access/access.h"
#include "server/agents/agents.h"
#include "server/api/places/room.h"
#include "server/api/routes.h"

struct listing {
        struct json j;
        struct server *server;
        struct call *call;
        struct map *rooms; /* of the nodes' agents: struct agent_room by name */
};

struct rooms {
        struct map *by_agent;
        struct room_reader reader;
        const char *only; /* NULL: all agents */
};

static void rooms_on_queue(void *arg, const struct core_queue_view *q)
{
        struct rooms *x = arg;
        struct agent_room *a;

        if (!q->connected || !q->ad || (x->only && strcmp(x->only, q->agent) != 0))
                return;
        a = map_get(x->by_agent, str_of(q->agent));
        if (!a) {
                a = mem_new(struct agent_room);
                map_put(x->by_agent, str_of(q->agent), a);
        }
        room_add_queue(&x->reader, a, q);
}

/* Returns what the agents have, for rooms_free. */
static struct map *rooms_new(struct server *s, const char *only)
{
        struct rooms x = {.by_agent = map_new(), .only = only};

        room_reader_init(&x.reader, s->core, clock_wall_ms());
        core_queues(s->core, rooms_on_queue, &x);
        room_reader_deinit(&x.reader);
        return x.by_agent;
}

static void rooms_free(struct map *rooms)
{
        void *value;

        for (size_t at = 0; map_next(rooms, &at, NULL, &value);)
                free(value);
        map_free(rooms);
}

static void nodes_state_free(void *arg)
{
        json_decref(arg);
}

static void write_facts(struct json *j, const char *facts)
{
        struct str rest = str_of(facts), line;

        json_key(j, "machine");
        json_open(j, '{');
        while (rest.n && str_cut(&rest, '\n', &line)) {
                ptrdiff_t equals = str_find(line, '=');

                if (equals <= 0)
                        continue;
                json_keys(j, str_head(line, (size_t)equals));
                json_str(j, str_skip(line, (size_t)equals + 1));
        }
        json_close(j, '}');
}

/* Writes members into an open object. */
static void write_node(struct json *j, struct server *s, struct map *rooms, const struct core_node *n)
{
        const struct agent *a = agents_find(s, str_of(n->name));
        const struct agent_room *queues = map_get(rooms, str_of(n->name));
        struct room room = queues ? room_of(queues) : (struct room){0};

        json_kstrz(j, "name", n->name);
        json_kstrz(j, "state", n->state_name);
        json_kbool(j, "connected", n->connected);
        json_kint(j, "since_ms", n->since_ms);
        json_kstrz(j, "by", n->by);
        json_kstrz(j, "reason", n->reason && *n->reason ? n->reason : NULL);
        if (n->deadline_ms)
                json_kint(j, "deadline_ms", n->deadline_ms);
        json_kint(j, "seen_ms", a ? a->seen_ms : n->renewed_ms);
        json_kstrz(j, "hostname", a ? a->hostname : NULL);
        json_kint(j, "jobs", n->attempts);
        json_kint(j, "losses", n->losses);
        json_kint(j, "cpus", (int64_t)room.cpus);
        json_kint(j, "memory_mib", (int64_t)room.memory_mib);
        json_kint(j, "free_cpus", (int64_t)room.free_cpus);
        json_kint(j, "free_memory_mib", (int64_t)room.free_memory_mib);
        write_facts(j, n->facts);
        json_key(j, "instance");
        if (!n->provisioned) {
                json_null(j);
                return;
        }
        json_open(j, '{');
        json_kstr(j, "provisioner", n->instance.provisioner);
        json_kstr(j, "shape", n->instance.shape);
        json_kstr(j, "id", n->instance.id);
        json_kstr(j, "launch", n->instance.launch);
        json_kstr(j, "account", n->instance.account);
        json_key(j, "price");
        json_double(j, (double)n->instance.price_micro / 1e6);
        json_kint(j, "paid_until_ms", n->instance.paid_until_ms);
        json_close(j, '}');
}

static void on_node(void *arg, const struct core_node *n)
{
        struct listing *l = arg;

        json_open(&l->j, '{');
        write_node(&l->j, l->server, l->rooms, n);
        json_close(&l->j, '}');
}

static void list_nodes(struct server *s, struct call *c)
{
        struct listing l = {{.out = &c->out}, s, c, rooms_new(s, NULL)};

        json_open(&l.j, '{');
        json_key(&l.j, "nodes");
        json_open(&l.j, '[');
        core_nodes(s->core, on_node, &l);
        json_close(&l.j, ']');
        json_close(&l.j, '}');
        rooms_free(l.rooms);
        call_reply(c);
}

void api_nodes(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, list_nodes);
}

/* ---- one node */

static void on_job(void *arg, uint64_t request, uint32_t member, enum job_state state)
{
        struct listing *l = arg;
        struct core_request r;

        if (core_request_get(l->server->core, request, &r) != 0 || !call_may(l->call, r.owner))
                return;
        json_open(&l->j, '{');
        json_kint(&l->j, "request", (int64_t)request);
        json_kint(&l->j, "job", member);
        json_kstrz(&l->j, "state", job_state_name(state));
        json_close(&l->j, '}');
}

static void show_node(struct server *s, struct call *c)
{
        MEM_CLEANUP char *name = str_dupz(c->param[0]);
        struct listing l = {{.out = &c->out}, s, c, NULL};
        struct core_node n;

        if (core_node_get(s->core, name, &n) != 0) {
                call_fail(c, 404, "not_found", "there is no agent %s known to this server", name);
                return;
        }
        l.rooms = rooms_new(s, name);
        json_open(&l.j, '{');
        write_node(&l.j, s, l.rooms, &n);
        rooms_free(l.rooms);
        json_key(&l.j, "running");
        json_open(&l.j, '[');
        core_node_jobs(s->core, name, on_job, &l);
        json_close(&l.j, ']');
        json_close(&l.j, '}');
        call_reply(c);
}

void api_node(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, show_node);
}

/* ---- orders */

/* Reads a state that people may order, by the name that is shown; "up" is shown under two names. */
static bool state_parse(struct str text, enum node_state *ret)
{
        static const enum node_state states[] = {NODE_UP, NODE_DRAINING, NODE_FAILED, NODE_DOWN,
                                                 NODE_RETIRED};

        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
                if (str_eqz(text, sm_state(&node_states, states[i]))) {
                        *ret = states[i];
                        return true;
                }
        return false;
}

static void nodes_answer(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* Revokes the node's certificates: it must join with a new token to connect again. */
static void forget_certificate(struct server *s, struct str name)
{
        access_revoke(s, name);
        agents_expel(s, name, "its node was retired: it must join again");
}

static void set_node(struct server *s, struct call *c)
{
        const json_t *doc = c->state;
        MEM_CLEANUP char *name = str_dupz(c->param[0]);
        struct json j = {.out = &c->out};
        struct core_node_order o = {
                .agent = name, .by = str_of(c->who), .reason = call_json_text(doc, "reason")};
        struct err err = {""};
        struct core_node n;
        struct map *rooms;
        int r;

        if (turn_full(s->turn)) { /* the order could not be stored, and a restart would lose it */
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        state_parse(call_json_text(doc, "state"), &o.to);
        o.deadline_ms = json_integer_value(json_object_get(doc, "deadline_ms"));
        r = core_node_set(s->core, &o, &err);
        if (r != 0) {
                call_fail(c, r == CORE_UNKNOWN ? 404 : 409, r == CORE_UNKNOWN ? "not_found" : "conflict",
                          "%s", err.text);
                return;
        }
        if (o.to == NODE_RETIRED)
                forget_certificate(s, c->param[0]);
        core_node_get(s->core, name, &n);
        rooms = rooms_new(s, name);
        json_open(&j, '{');
        write_node(&j, s, rooms, &n);
        json_close(&j, '}');
        rooms_free(rooms);
        c->when = TURN_DURABLE;
        call_io(c, nodes_answer);
}

void api_node_set(struct server *s, struct call *c)
{
        json_t *doc = call_json(c), *deadline;
        enum node_state to;

        (void)s;
        if (!doc)
                return;
        c->state = doc;
        c->state_free = nodes_state_free;
        deadline = json_object_get(doc, "deadline_ms");
        if (!state_parse(call_json_text(doc, "state"), &to))
                call_fail(c, 400, "bad_request", "state must be up, draining, failed, down or retired");
        else if (deadline &&
                 (!json_is_integer(deadline) || json_integer_value(deadline) <= 0 || to != NODE_DRAINING))
                call_fail(
                        c, 400, "bad_request",
                        "deadline_ms must be a time in milliseconds since 1970, and goes with draining only");
        else if (c->role == ROLE_USER)
                call_fail(c, 403, "forbidden", "only an operator or an admin gives orders to nodes");
        else if (to == NODE_RETIRED && c->role != ROLE_ADMIN)
                call_fail(c, 403, "forbidden", "only an admin retires nodes");
        else
                call_core(c, set_node);
}
