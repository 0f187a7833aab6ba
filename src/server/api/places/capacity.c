/* GET /v1/capacity: what the caller's jobs could use now: the sum over the queues that would run them, and
 * the largest queue. Process queues of one machine count as the largest of them. */
#include "base/system/clock.h"
#include "server/api/places/pool_kinds.h"
#include "server/api/places/room.h"
#include "server/api/routes.h"

struct count {
        struct server *s;
        struct call *c;
        struct room_reader reader;
        symbol node_cpus, node_memory;
        const char *agent;
        struct room all;
        struct agent_room machine; /* of the current agent */
        uint64_t queues, refusing, largest_cpus, largest_memory_mib, jobs_max;
        struct pool_kinds *kinds; /* NULL: kinds were not requested */
};

static void most(struct count *x, uint64_t *to, const struct ad *ad, symbol name, uint64_t otherwise)
{
        double v = 0;
        uint64_t n;

        eval_real(&x->reader.eval, ad, NULL, name, &v);
        n = v >= 1 && v < 1e15 ? (uint64_t)v : otherwise;
        if (n > *to)
                *to = n;
}

static void capacity_end_agent(struct count *x)
{
        struct room r = room_of(&x->machine);

        room_add(&x->all, &r);
        x->machine = (struct agent_room){0};
}

static void capacity_on_queue(void *arg, const struct core_queue_view *q)
{
        struct count *x = arg;
        struct room r;

        if (!x->agent || strcmp(q->agent, x->agent) != 0)
                capacity_end_agent(x);
        x->agent = q->agent;
        if (!q->connected || !q->ad)
                return;
        if (!core_agent_serves(x->s->core, q->agent, str_of(x->c->who))) {
                x->refusing++;
                return;
        }
        if (x->kinds)
                pool_kinds_add(x->kinds, q);
        r = room_add_queue(&x->reader, &x->machine, q);
        most(x, &x->largest_cpus, q->ad, x->node_cpus, r.cpus);
        most(x, &x->largest_memory_mib, q->ad, x->node_memory, r.memory_mib);
        x->queues++;
        x->jobs_max += q->offers ? q->jobs_max : 0;
}

static void read_capacity(struct server *s, struct call *c)
{
        struct symbols *y = core_symbols(s->core);
        struct json j = {.out = &c->out};
        struct count x = {.s = s,
                          .c = c,
                          .node_cpus = symbols_intern(y, STR("NodeCpus")),
                          .node_memory = symbols_intern(y, STR("NodeMemory"))};

        if (str_eqz(call_query(c, "kinds"), "1"))
                x.kinds = pool_kinds_new(s->core, clock_wall_ms() / 1000);
        room_reader_init(&x.reader, s->core, clock_wall_ms());
        core_queues(s->core, capacity_on_queue, &x);
        capacity_end_agent(&x);
        room_reader_deinit(&x.reader);
        json_open(&j, '{');
        json_kint(&j, "at_ms", clock_wall_ms());
        json_kint(&j, "queues", (int64_t)x.queues);
        json_kint(&j, "refusing", (int64_t)x.refusing);
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
