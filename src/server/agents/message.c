#include "server/agents/message.h"

#include "server/agents/agent_sessions.h"

static void drop_message(struct task *t)
{
        message_free((struct message *)t);
}

static void run_message(struct server *s, struct task *t)
{
        struct message *m = (struct message *)t;

        agent_sessions_send(s, m->session, &m->to_agent, m->finish);
        message_free(m);
}

struct message *message_new(uint64_t session, Drover__ToAgent__KindCase kind)
{
        struct message *m = mem_new(struct message);

        m->task.run = run_message;
        m->task.drop = drop_message;
        m->session = session;
        drover__to_agent__init(&m->to_agent);
        m->to_agent.kind_case = kind;
        return m;
}

void message_free(struct message *m)
{
        arena_deinit(&m->arena);
        free(m);
}

void *message_alloc(struct message *m, size_t n)
{
        return memset(arena_alloc(&m->arena, n ? n : 1), 0, n);
}

char *message_text(struct message *m, struct str s)
{
        return arena_dup(&m->arena, s.p ? s.p : "", s.n);
}

Drover__Range **message_ranges(struct message *m, const struct set *members, size_t *ret_count)
{
        Drover__Range **list;
        uint64_t first, end;
        size_t n = 0;

        for (uint64_t at = 0; set_run(members, at, &first, &end); at = end)
                n++;
        list = message_alloc(m, n * sizeof(*list));
        *ret_count = n;
        n = 0;
        for (uint64_t at = 0; set_run(members, at, &first, &end); at = end) {
                Drover__Range *r = message_alloc(m, sizeof(*r));

                drover__range__init(r);
                r->first = (uint32_t)first;
                r->count = (uint32_t)(end - first);
                list[n++] = r;
        }
        return list;
}

Drover__Attempts *message_attempts(struct message *m, uint64_t request, uint32_t fence,
                                   const struct set *members)
{
        Drover__Attempts *a = message_alloc(m, sizeof(*a));

        drover__attempts__init(a);
        a->request = request;
        a->fence = fence;
        a->members = message_ranges(m, members, &a->n_members);
        return a;
}

void message_send(struct server *s, struct message *m, enum turn_when when)
{
        turn_send(s->turn, &m->task, when);
}
