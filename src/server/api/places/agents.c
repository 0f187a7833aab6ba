/* GET /v1/agents. The core thread writes the listing, because it owns the ads; long listings continue in
 * later turns. */
#include <stdio.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "classad/eval.h"
#include "classad/print.h"
#include "core/query.h"
#include "server/access/access.h"
#include "server/agents/agents.h"
#include "server/api/routes.h"
#include "server/loop/expressions.h"

#define SLICE_NS 4000000

struct listing {
        struct json j;
        char *after; /* agents up to this name are written */
        bool begun, full;
        char *agent;        /* the agent that is being written */
        struct map *listed; /* names that were written */
        struct buf queues;  /* the agent's queues, as JSON */
        struct json queues_json;
        uint64_t running, finished;
        bool connected;
        int64_t renewed_ms, end_ns;
        struct server *server;
        struct eval eval;
        symbol cpus, memory, disk, total_cpus, total_memory, total_disk, limits;
};

static void agents_state_free(void *arg)
{
        struct listing *l = arg;

        free(l->after);
        free(l->agent);
        map_free(l->listed);
        buf_deinit(&l->queues);
        free(l);
}

static void write_number(struct listing *l, struct json *j, const char *key, const struct ad *ad, symbol name)
{
        double v = 0;

        if (ad)
                eval_real(&l->eval, ad, NULL, name, &v);
        json_key(j, key);
        json_double(j, v);
}

/* Writes "memory (v1), pids (v1); walltime (shepherd)": each limit's name and mechanism. */
static void write_limits(struct json *j, struct str text)
{
        struct str group, one;

        while (str_cut(&text, ';', &group))
                while (str_cut(&group, ',', &one)) {
                        ptrdiff_t at = str_find(one, '(');
                        struct str how = at < 0 ? STR("yes") : str_skip(one, (size_t)at + 1);

                        one = str_trim(at < 0 ? one : str_head(one, (size_t)at));
                        if (one.n == 0)
                                continue;
                        json_keys(j, one);
                        json_str(j, str_ends(how, STR(")")) ? str_head(how, how.n - 1) : how);
                }
}

static void write_queue(struct listing *l, const struct core_queue_view *q)
{
        struct json *j = &l->queues_json;
        struct str limits;

        json_open(j, '{');
        json_kstrz(j, "name", q->queue);
        json_kbool(j, "offer", q->offers);
        json_key(j, "unreachable");
        if (q->unreachable)
                json_str(j, str_of(q->unreachable));
        else
                json_null(j);
        json_key(j, "closed");
        if (q->closed)
                json_str(j, str_of(q->closed));
        else
                json_null(j);
        json_kint(j, "jobs_max", q->jobs_max);
        json_kint(j, "running", q->running);
        json_key(j, "ad");
        if (q->ad) {
                BUF_CLEANUP struct buf ad = {0};

                ad_print_json(&ad, q->ad, false);
                json_raw(j, buf_view(&ad));
        } else {
                json_null(j);
        }
        json_key(j, "free");
        json_open(j, '{');
        write_number(l, j, "cpus", q->ad, l->cpus);
        write_number(l, j, "memory_mib", q->ad, l->memory);
        write_number(l, j, "disk_kib", q->ad, l->disk);
        json_close(j, '}');
        json_key(j, "total");
        json_open(j, '{');
        write_number(l, j, "cpus", q->ad, l->total_cpus);
        write_number(l, j, "memory_mib", q->ad, l->total_memory);
        write_number(l, j, "disk_kib", q->ad, l->total_disk);
        json_close(j, '}');
        json_key(j, "limits");
        json_open(j, '{');
        if (q->ad && eval_string(&l->eval, q->ad, NULL, l->limits, &limits)) {
                write_limits(j, limits);
        }
        json_close(j, '}');
        json_close(j, '}');
        eval_reset(&l->eval);
        expressions_read_next(&l->eval);
}

/* Returns why the agent gets no jobs, from its node's record; NULL: it gets jobs. */
static const char *drained(struct core *c, const char *agent)
{
        struct core_node n;

        return core_node_get(c, agent, &n) == 0 ? n.refuses : NULL;
}

static void agents_end_agent(struct listing *l)
{
        struct agent *a = l->agent ? agents_find(l->server, str_of(l->agent)) : NULL;
        struct json *j = &l->j;

        if (!l->agent)
                return;
        json_open(j, '{');
        json_kstrz(j, "name", l->agent);
        json_kstrz(j, "hostname", a ? a->hostname : NULL);
        json_kstrz(j, "state", l->connected ? "connected" : "away");
        json_kbool(j, "revoked", !l->connected && access_is_revoked(l->server->access, str_of(l->agent)));
        json_kstrz(j, "drained", drained(l->server->core, l->agent));
        json_kint(j, "since_ms", a ? a->since_ms : 0);
        json_kint(j, "seen_ms", a ? a->seen_ms : l->renewed_ms);
        json_kstrz(j, "filesystem_domain", a ? a->filesystem_domain : NULL);
        json_kstrz(j, "program", a ? a->program : NULL);
        json_key(j, "queues");
        json_open(j, '[');
        json_raw(j, buf_view(&l->queues));
        j->comma = true;
        json_close(j, ']');
        json_kint(j, "running", (int64_t)l->running);
        json_kint(j, "completed", (int64_t)l->finished);
        json_close(j, '}');
        map_put(l->listed, str_of(l->agent), l);
        free(l->after);
        l->after = l->agent;
        l->agent = NULL;
        buf_reset(&l->queues);
        l->full = clock_mono_ns() > l->end_ns;
}

static void agents_on_queue(void *arg, const struct core_queue_view *q)
{
        struct listing *l = arg;

        if (l->full || (l->after && strcmp(q->agent, l->after) <= 0))
                return;
        if (!l->agent || strcmp(l->agent, q->agent) != 0) {
                agents_end_agent(l);
                if (l->full)
                        return;
                l->agent = mem_dupz(q->agent);
                l->running = l->finished = 0;
                l->queues_json = (struct json){.out = &l->queues};
        }
        l->connected = q->connected;
        l->renewed_ms = q->renewed_ms;
        l->running += q->running;
        l->finished += q->finished;
        write_queue(l, q);
}

static void prepare_listing(struct server *s, struct call *c, struct listing *l)
{
        struct symbols *y = core_symbols(s->core);

        l->begun = true;
        l->listed = map_new();
        l->server = s;
        l->j.out = &c->out;
        l->cpus = symbols_intern(y, STR("FreeCpus"));
        l->memory = symbols_intern(y, STR("FreeMemory"));
        l->disk = symbols_intern(y, STR("Disk"));
        l->total_cpus = symbols_intern(y, STR("TotalCpus"));
        l->total_memory = symbols_intern(y, STR("TotalMemory"));
        l->total_disk = symbols_intern(y, STR("TotalDisk"));
        l->limits = symbols_intern(y, STR("EnforcedLimits"));
        json_open(&l->j, '{');
        json_key(&l->j, "agents");
        json_open(&l->j, '[');
}

/* Writes an agent that has never made an offer. */
static void write_bare(struct listing *l, const struct agent *a)
{
        l->agent = mem_dupz(a->name);
        l->running = l->finished = 0;
        l->connected = a->session != 0;
        agents_end_agent(l);
}

static void read_agents(struct server *s, struct call *c)
{
        struct listing *l = c->state;
        struct agent *a;
        size_t at = 0;

        if (!l->begun)
                prepare_listing(s, c, l);
        l->full = false;
        l->end_ns = clock_mono_ns() + SLICE_NS;
        expressions_read_init(&l->eval, clock_wall_ms() / 1000);
        core_queues(s->core, agents_on_queue, l);
        if (!l->full)
                agents_end_agent(l);
        eval_deinit(&l->eval);
        if (l->full) {
                free(l->agent);
                l->agent = NULL;
                call_core(c, read_agents);
                return;
        }
        while (agents_next(s, &at, &a))
                if (!map_get(l->listed, str_of(a->name)))
                        write_bare(l, a);
        json_close(&l->j, ']');
        json_close(&l->j, '}');
        call_reply(c);
}

void api_agents(struct server *s, struct call *c)
{
        (void)s;
        call_state(c, sizeof(struct listing), agents_state_free);
        call_core(c, read_agents);
}
