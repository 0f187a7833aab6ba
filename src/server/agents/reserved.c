/* Most events are about reservations for single jobs, which are not sent: a hash of the others tells whether
 * anything has changed. */
#include "server/agents/reserved.h"

#include "core/lifecycle/reservations.h"
#include "server/agents/message.h"

static bool is_sent(const struct advance *a)
{
        return !a->request;
}

void reserved_changed(struct server *s)
{
        s->reserved.changed = true;
}

static uint64_t fingerprint(const struct server *s)
{
        uint64_t h = 1;

        for (const struct advance *a = core_reserved_first(s->core); a; a = a->next)
                if (is_sent(a))
                        h = (h ^ a->id ^ (uint64_t)a->start_ms << 20) * 0x9e3779b97f4a7c15ull;
        return h;
}

static void send_list(struct server *s, struct agent *to, bool even_if_empty)
{
        struct message *m = message_new(to->session, DROVER__TO_AGENT__KIND_RESERVED);
        Drover__Reserved *all = message_alloc(m, sizeof(*all));
        struct core_reserved_place p;
        size_t most = 0;

        drover__reserved__init(all);
        for (const struct advance *a = core_reserved_first(s->core); a; a = a->next)
                for (size_t i = 0; is_sent(a) && i < a->place_count; i++) {
                        core_reserved_where(a, i, &p);
                        most += strcmp(p.agent, to->name) == 0;
                }
        all->reservations = message_alloc(m, (most + 1) * sizeof(*all->reservations));
        for (const struct advance *a = core_reserved_first(s->core); a && most; a = a->next)
                for (size_t i = 0; is_sent(a) && i < a->place_count; i++) {
                        Drover__Reservation *r;

                        core_reserved_where(a, i, &p);
                        if (strcmp(p.agent, to->name) != 0)
                                continue;
                        r = message_alloc(m, sizeof(*r));
                        drover__reservation__init(r);
                        r->id = a->id;
                        r->queue = message_text(m, str_of(p.queue));
                        r->start_ms = a->start_ms;
                        r->end_ms = a->end_ms;
                        r->maintenance = a->maintenance;
                        r->cpus = p.cpus > 0 && !a->maintenance ? (uint64_t)p.cpus : 0;
                        all->reservations[all->n_reservations++] = r;
                }
        m->to_agent.reserved = all;
        if (all->n_reservations == 0 && !even_if_empty) {
                message_free(m);
                return;
        }
        to->reserved_told = all->n_reservations > 0;
        message_send(s, m, TURN_DURABLE);
}

void reserved_flush(struct server *s)
{
        uint64_t now;
        size_t at = 0;
        struct agent *a;

        if (!s->reserved.changed)
                return;
        s->reserved.changed = false;
        now = fingerprint(s);
        if (now == s->reserved.fingerprint)
                return;
        s->reserved.fingerprint = now;
        while (agents_next(s, &at, &a))
                if (a->session)
                        send_list(s, a, a->reserved_told);
}

void reserved_greet(struct server *s, struct agent *a)
{
        if (a)
                send_list(s, a, true);
}
