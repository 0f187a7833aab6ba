/* Who takes and who gives may pass each other at the limit: `full` is set before the sum is looked at once
 * more, and exchanged by whoever finds that there is room, so exactly one of them sees to it that the session
 * is read again. */
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

/* True: it was full, there is room again, and the caller is the one that has found it. */
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
