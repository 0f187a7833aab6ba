#include "server/api/places/room.h"

#include "server/loop/expressions.h"

void room_reader_init(struct room_reader *r, struct core *c, int64_t now_ms)
{
        struct symbols *y = core_symbols(c);

        *r = (struct room_reader){.cpus = symbols_intern(y, STR("TotalCpus")),
                                  .memory = symbols_intern(y, STR("TotalMemory")),
                                  .free_cpus = symbols_intern(y, STR("FreeCpus")),
                                  .free_memory = symbols_intern(y, STR("FreeMemory")),
                                  .runner = symbols_intern(y, STR("Runner"))};
        expressions_read_init(&r->eval, now_ms / 1000);
}

void room_reader_deinit(struct room_reader *r)
{
        eval_deinit(&r->eval);
}

static uint64_t room_number(struct room_reader *r, const struct ad *ad, symbol name)
{
        double v = 0;

        eval_real(&r->eval, ad, NULL, name, &v);
        return v > 0 && v < 1e15 ? (uint64_t)v : 0;
}

static void take_most(uint64_t *to, uint64_t n)
{
        if (n > *to)
                *to = n;
}

void room_add(struct room *to, const struct room *r)
{
        to->cpus += r->cpus;
        to->memory_mib += r->memory_mib;
        to->free_cpus += r->free_cpus;
        to->free_memory_mib += r->free_memory_mib;
}

struct room room_add_queue(struct room_reader *r, struct agent_room *to, const struct core_queue_view *q)
{
        struct room x = {.cpus = room_number(r, q->ad, r->cpus),
                         .memory_mib = room_number(r, q->ad, r->memory),
                         .free_cpus = q->offers ? room_number(r, q->ad, r->free_cpus) : 0,
                         .free_memory_mib = q->offers ? room_number(r, q->ad, r->free_memory) : 0};
        struct str runner = STR_NONE;

        if (eval_string(&r->eval, q->ad, NULL, r->runner, &runner) && str_eqz(runner, "process")) {
                take_most(&to->shared.cpus, x.cpus);
                take_most(&to->shared.memory_mib, x.memory_mib);
                take_most(&to->shared.free_cpus, x.free_cpus);
                take_most(&to->shared.free_memory_mib, x.free_memory_mib);
        } else {
                room_add(&to->apart, &x);
        }
        eval_reset(&r->eval);
        expressions_read_next(&r->eval);
        return x;
}

struct room room_of(const struct agent_room *a)
{
        struct room all = a->apart;

        room_add(&all, &a->shared);
        return all;
}
