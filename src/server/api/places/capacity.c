/* GET /v1/capacity: what the caller's jobs could use now: the sum over the queues that would run them, and
 * the largest queue. Process queues of one machine count as the largest of them. */
#include "base/system/clock.h"
#include "classad/eval.h"
#include "core/query.h"
#include "server/api/places/pool_kinds.h"
#include "server/api/routes.h"
#include "server/loop/expressions.h"

struct room {
        uint64_t cpus, memory_mib, free_cpus, free_memory_mib;
};
struct count {
        struct server *s;
        struct call *c;
        struct eval eval;
        symbol cpus, memory, free_cpus, free_memory, node_cpus, node_memory, runner;
        const char *agent;
        struct room all, machine; /* machine: of the process queues of the current agent */
        uint64_t queues, largest_cpus, largest_memory_mib, jobs_max;
        struct pool_kinds *kinds; /* NULL: kinds were not requested */
};

static uint64_t capacity_number(struct count *x, const struct ad *ad, symbol name)
{
        double v = 0;

        eval_real(&x->eval, ad, NULL, name, &v);
        return v > 0 && v < 1e15 ? (uint64_t)v : 0;
}

static void most(uint64_t *to, uint64_t n)
{
        if (n > *to)
                *to = n;
}

static void add_room(struct room *to, const struct room *r)
{
        to->cpus += r->cpus;
        to->memory_mib += r->memory_mib;
        to->free_cpus += r->free_cpus;
        to->free_memory_mib += r->free_memory_mib;
}

static void capacity_end_agent(struct count *x)
{
        add_room(&x->all, &x->machine);
        x->machine = (struct room){0};
}

static void capacity_on_queue(void *arg, const struct core_queue_view *q)
{
        struct count *x = arg;
        struct room r;
        struct str runner = STR_NONE;
        uint64_t node;

        if (!x->agent || strcmp(q->agent, x->agent) != 0)
                capacity_end_agent(x);
        x->agent = q->agent;
        if (!q->connected || !q->ad || !core_agent_serves(x->s->core, q->agent, str_of(x->c->who)))
                return;
        r = (struct room){.cpus = capacity_number(x, q->ad, x->cpus),
                          .memory_mib = capacity_number(x, q->ad, x->memory),
                          .free_cpus = q->offers ? capacity_number(x, q->ad, x->free_cpus) : 0,
                          .free_memory_mib = q->offers ? capacity_number(x, q->ad, x->free_memory) : 0};
        node = capacity_number(x, q->ad, x->node_cpus);
        most(&x->largest_cpus, node ? node : r.cpus);
        node = capacity_number(x, q->ad, x->node_memory);
        most(&x->largest_memory_mib, node ? node : r.memory_mib);
        if (x->kinds)
                pool_kinds_add(x->kinds, q);
        x->queues++;
        x->jobs_max += q->offers ? q->jobs_max : 0;
        if (eval_string(&x->eval, q->ad, NULL, x->runner, &runner) && str_eqz(runner, "process")) {
                most(&x->machine.cpus, r.cpus);
                most(&x->machine.memory_mib, r.memory_mib);
                most(&x->machine.free_cpus, r.free_cpus);
                most(&x->machine.free_memory_mib, r.free_memory_mib);
        } else {
                add_room(&x->all, &r);
        }
        eval_reset(&x->eval);
        expressions_read_next(&x->eval);
}

static void read_capacity(struct server *s, struct call *c)
{
        struct symbols *y = core_symbols(s->core);
        struct json j = {.out = &c->out};
        struct count x = {.s = s,
                          .c = c,
                          .cpus = symbols_intern(y, STR("TotalCpus")),
                          .memory = symbols_intern(y, STR("TotalMemory")),
                          .free_cpus = symbols_intern(y, STR("FreeCpus")),
                          .free_memory = symbols_intern(y, STR("FreeMemory")),
                          .node_cpus = symbols_intern(y, STR("NodeCpus")),
                          .node_memory = symbols_intern(y, STR("NodeMemory")),
                          .runner = symbols_intern(y, STR("Runner"))};

        if (str_eqz(call_query(c, "kinds"), "1"))
                x.kinds = pool_kinds_new(s->core, clock_wall_ms() / 1000);
        expressions_read_init(&x.eval, clock_wall_ms() / 1000);
        core_queues(s->core, capacity_on_queue, &x);
        capacity_end_agent(&x);
        eval_deinit(&x.eval);
        json_open(&j, '{');
        json_kint(&j, "at_ms", clock_wall_ms());
        json_kint(&j, "queues", (int64_t)x.queues);
        json_kint(&j, "cpus", (int64_t)x.all.cpus);
        json_kint(&j, "memory_mib", (int64_t)x.all.memory_mib);
        json_kint(&j, "free_cpus", (int64_t)x.all.free_cpus);
        json_kint(&j, "free_memory_mib", (int64_t)x.all.free_memory_mib);
        json_kint(&j, "largest_cpus", (int64_t)x.largest_cpus);
        json_kint(&j, "largest_memory_mib", (int64_t)x.largest_memory_mib);
        json_kint(&j, "jobs_max", (int64_t)x.jobs_max);
        if (x.kinds)
                pool_kinds_write(x.kinds, &j);
        pool_kinds_free(x.kinds);
        json_close(&j, '}');
        call_reply(c);
}

void api_capacity(struct server *s, struct call *c)
{
        (void)s;
        /* with kinds each piece takes as long as a slice: one in a turn */
        call_yield_to_client(c, read_capacity);
}
