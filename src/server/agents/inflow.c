/* The I/O thread that takes and the thread that gives may run at the same time near the limit. `full` is
 * set before the sum is checked once more, and cleared with an atomic exchange by the thread that finds
 * room, so exactly one of them has the session read again. */
#include "server/agents/inflow.h"

#include <stdatomic.h>

#include "server/agents/agent_sessions.h"

#define READ_ON (INFLOW_MAX / 2)

struct inflow {
        struct server *server;
        uint64_t session;
        atomic_size_t bytes;
        atomic_uint refs;
        atomic_bool full;
};
struct read_on {
        struct task task;
        uint64_t session;
};

struct inflow *inflow_new(struct server *s, uint64_t session)
{
        struct inflow *f = mem_new(struct inflow);

        f->server = s;
        f->session = session;
        atomic_store(&f->refs, 1);
        return f;
}

void inflow_unref(struct inflow *f)
{
        if (f && atomic_fetch_sub(&f->refs, 1) == 1)
                free(f);
}

/* Returns true if the session was paused, there is room again, and this caller is the one that must resume
 * it. */
static bool has_room_again(struct inflow *f, size_t bytes)
{
        return bytes <= READ_ON && atomic_load(&f->full) && atomic_exchange(&f->full, false);
}

bool inflow_take(struct inflow *f, size_t bytes)
{
        atomic_fetch_add(&f->refs, 1);
        if (atomic_fetch_add(&f->bytes, bytes) + bytes <= INFLOW_MAX)
                return false;
        atomic_store(&f->full, true);
        return !has_room_again(f, atomic_load(&f->bytes));
}

static void read_on(struct server *s, struct task *t)
{
        agent_sessions_read_on(s, ((struct read_on *)t)->session);
        free(t);
}

void inflow_give(struct inflow *f, size_t bytes)
{
        if (has_room_again(f, atomic_fetch_sub(&f->bytes, bytes) - bytes)) {
                struct read_on *r = mem_new(struct read_on);

                r->task.run = read_on;
                r->session = f->session;
                server_to_io(f->server, &r->task);
        }
        inflow_unref(f);
}
