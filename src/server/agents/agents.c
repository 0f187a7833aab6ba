#include "server/agents/agents.h"

#include <errno.h>
#include <stdio.h>

#include "auth/certificates.h"
#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "server/agents/assign.h"
#include "server/agents/command.h"
#include "server/agents/grants.h"
#include "server/agents/leases.h"
#include "server/agents/message.h"
#include "server/loop/turn.h"

#define AGENTS_MAX 100000  /* names that are remembered */
#define SHARE_NS   5000000 /* of each turn, for the commands of one agent */

struct agents {
        command_fn *const *handlers;
        struct map *by_name;
        int64_t first_end_ms;   /* boot clock: the earliest end of a session's certificate */
        struct agent **pending; /* agents with assignments in this turn */
        size_t pending_count, pending_cap;
        bool lapsed; /* at least one agent has `lapsed` set */
        /* see agents_hear */
        uint64_t turn;
        struct agent *deferred, **deferred_last; /* agents with deferred commands, each once */
        struct timer *go_on;
};

static void go_on(void *arg);

struct agents *agents_new(struct server *s, command_fn *const handlers[COMMAND_KINDS])
{
        struct agents *a = mem_new(struct agents);

        a->handlers = handlers;
        a->by_name = map_new();
        a->first_end_ms = INT64_MAX;
        a->turn = 1;
        a->deferred_last = &a->deferred;
        a->go_on = timer_new(s->loop, go_on, s);
        return a;
}

static struct command *deferred_take(struct agent *a)
{
        struct task *t = a->deferred;

        if (t && !(a->deferred = (struct task *)t->mail.next))
                a->deferred_last = &a->deferred;
        return (struct command *)t;
}

/* Drops the deferred commands of an agent. The agent stays in the list until its turn comes. */
static void deferred_drop(struct agent *a)
{
        for (struct command *c; (c = deferred_take(a));)
                command_free(c);
}

static void agent_free(struct agent *a)
{
        deferred_drop(a);
        pending_free(a->pending);
        sent_free(a->sent);
        grants_forget(a);
        free(a->hostname);
        free(a->filesystem_domain);
        free(a->program);
        free(a->instance);
        owners_deinit(&a->owners);
        free(a->tags);
        free(a->most);
        free(a->name);
        free(a);
}

void agents_drop_all(struct agents *a)
{
        size_t at = 0;
        void *v;

        if (!a)
                return;
        while (map_next(a->by_name, &at, NULL, &v))
                agent_free(v);
        map_free(a->by_name);
        free(a->pending);
        timer_free(a->go_on);
        free(a);
}

struct agent *agents_find(struct server *s, struct str name)
{
        return map_get(s->agents->by_name, name);
}

bool agents_next(struct server *s, size_t *at, struct agent **ret)
{
        void *v;

        if (!map_next(s->agents->by_name, at, NULL, &v))
                return false;
        *ret = v;
        return true;
}

static void set_text(char **at, const char *value)
{
        free(*at);
        *at = mem_dupz(value ? value : "");
}

/* code: a number of the protocol's table of errors. */
static void close_session(struct server *s, uint64_t session, uint32_t code, const char *why)
{
        struct message *m = message_new(session, DROVER__TO_AGENT__KIND_ERROR);
        Drover__Error *e = message_alloc(m, sizeof(*e));

        drover__error__init(e);
        e->code = code;
        e->text = message_text(m, str_of(why));
        m->to_agent.error = e;
        m->finish = true;
        message_send(s, m, TURN_NOW);
}

void agents_hands_on(struct agent *a)
{
        if (a->hands_on)
                return;
        a->hands_on = true;
        sent_free(a->sent);
        a->sent = idmap_new();
}

static void forget_session(struct server *s, struct agent *a)
{
        core_heard(s->core, a->name, leases_close(s->leases, a->session));
        a->session = 0;
        a->lapsed = false;
        deferred_drop(a);
        grants_forget(a);
        sent_free(a->sent);
        a->sent = idmap_new();
        a->hands_on = false;
        pending_free(a->pending);
        a->pending = NULL;
}

bool agents_is_taken(struct server *s, const struct agent_hello *h, struct err *err)
{
        const struct agent *a = agents_find(s, str_of(h->name));

        if (!a || !a->session || !*a->instance || !h->instance || !*h->instance ||
            strcmp(a->instance, h->instance) == 0)
                return false;
        err_set(err, -EBUSY,
                "another agent is connected as %s, from the host %s: give one of them another name, with a "
                "token of its own",
                a->name, a->hostname);
        return true;
}

/* Converts a wall-clock time to the boot clock, because the wall clock may be set during the session. */
static int64_t end_of(int64_t until_ms)
{
        return until_ms - clock_wall_ms() + clock_boot_ms();
}

static void set_ceiling(struct server *s, struct agent *a, const struct certificate *c)
{
        a->until_boot_ms = end_of(c->until_ms);
        if (a->until_boot_ms < s->agents->first_end_ms)
                s->agents->first_end_ms = a->until_boot_ms;
        owners_deinit(&a->owners);
        if (!owners_parse(c->ceiling.owners, &a->owners)) {
                owners_deinit(&a->owners);
                owners_add(&a->owners, OWNERS_NOBODY);
        }
        a->owners_said = c->ceiling.owners.n > 0;
        free(a->tags);
        a->tags = str_dupz(c->ceiling.tags);
        free(a->most);
        a->most = str_dupz(c->ceiling.most);
        a->warned = false;
        core_agent_labels(s->core, a->name, c->ceiling.labels);
}

struct agent *agents_connected(struct server *s, const struct agent_hello *h)
{
        struct agent *a = agents_find(s, str_of(h->name));

        if (!a) {
                if (map_count(s->agents->by_name) >= AGENTS_MAX)
                        return NULL;
                a = mem_new(struct agent);
                a->name = mem_dupz(h->name);
                a->sent = idmap_new();
                a->deferred_last = &a->deferred;
                map_put(s->agents->by_name, str_of(a->name), a);
        }
        if (a->session) {
                close_session(s, a->session, 5, "another session of this agent has taken over");
                core_agent_away(s->core, a->name);
        }
        forget_session(s, a);
        a->session = h->session;
        a->since_ms = a->seen_ms = clock_wall_ms();
        set_text(&a->hostname, h->hostname);
        set_text(&a->filesystem_domain, h->filesystem_domain);
        set_text(&a->program, h->program);
        set_text(&a->instance, h->instance);
        set_ceiling(s, a, h->certificate);
        core_agent_connected(s->core, a->name);
        leases_open(s->leases, a->session, clock_boot_ms());
        log_info("msg=\"agent connected\" name=\"%s\" host=\"%s\"", LOG_TEXT(str_of(a->name)),
                 LOG_TEXT(str_of(a->hostname)));
        return a;
}

struct agent *agents_session(struct server *s, struct str name, uint64_t session)
{
        struct agent *a = agents_find(s, name);

        if (!a || a->session != session)
                return NULL;
        a->seen_ms = clock_wall_ms();
        return a;
}

bool agents_expel(struct server *s, struct str name, const char *why)
{
        struct agent *a = agents_find(s, name);

        if (!a || !a->session)
                return false;
        close_session(s, a->session, 2, why);
        forget_session(s, a);
        core_agent_away(s->core, a->name);
        log_info("msg=\"agent expelled\" name=\"%s\" why=\"%s\"", LOG_TEXT(name), why);
        return true;
}

void agents_reconnect(struct server *s)
{
        struct agent *a;

        for (size_t at = 0; agents_next(s, &at, &a);)
                if (a->session) {
                        close_session(s, a->session, 4,
                                      "the server's machine has been asleep: connect again");
                        forget_session(s, a);
                        core_agent_away(s->core, a->name);
                }
}

int64_t agents_heard(struct server *s, const char *name, int64_t known_ms)
{
        struct agent *a = agents_find(s, str_of(name));
        int64_t heard_ms;

        if (!a || !a->session)
                return known_ms;
        heard_ms = leases_take(s->leases, a->session, known_ms);
        if (heard_ms <= known_ms)
                a->lapsed = s->agents->lapsed = true;
        return heard_ms;
}

/* Closes the sessions of agents whose leases have ended; when they connect again, they learn from the
 * answer to their inventory which attempts are no longer theirs. */
static void close_lapsed(struct server *s)
{
        struct agent *a;

        s->agents->lapsed = false;
        for (size_t at = 0; agents_next(s, &at, &a);)
                if (a->lapsed) {
                        close_session(s, a->session, 4,
                                      "leases have ended because no renewal came: connect again");
                        forget_session(s, a);
                        core_agent_away(s->core, a->name);
                }
}

void agents_tick(struct server *s)
{
        int64_t now = clock_boot_ms();
        struct agent *a;

        if (now < s->agents->first_end_ms)
                return;
        s->agents->first_end_ms = INT64_MAX;
        for (size_t at = 0; agents_next(s, &at, &a);) {
                if (!a->session)
                        continue;
                if (a->until_boot_ms > now) {
                        if (a->until_boot_ms < s->agents->first_end_ms)
                                s->agents->first_end_ms = a->until_boot_ms;
                        continue;
                }
                log_info("msg=\"an agent's certificate has expired, which ends its session\" name=\"%s\"",
                         LOG_TEXT(str_of(a->name)));
                close_session(s, a->session, 4,
                              "the certificate of this session has expired: connect with the new one");
                forget_session(s, a);
                core_agent_away(s->core, a->name);
        }
}

void agents_gone(struct server *s, struct str name, uint64_t session)
{
        struct agent *a = agents_session(s, name, session);

        if (!a)
                return;
        forget_session(s, a);
        core_agent_away(s->core, a->name);
        log_info("msg=\"agent away\" name=\"%s\"", LOG_TEXT(name));
}

void agents_assign(struct server *s, const struct core_assignment *as)
{
        struct agent *a = agents_find(s, str_of(as->agent));

        if (!a || !a->session)
                /* the agent disconnected in this turn: its next inventory shows that it does not have this
                 * attempt */
                return;
        if (!a->pending) {
                struct agents *all = s->agents;

                MEM_GROW(all->pending, all->pending_cap, all->pending_count + 1);
                all->pending[all->pending_count++] = a;
                a->pending = pending_new();
        }
        pending_add(s, a, as);
}

void agents_control(struct server *s, const char *agent, enum core_control what, uint64_t request,
                    uint32_t fence, const struct set *members)
{
        struct agent *a = agents_find(s, str_of(agent));
        struct message *m;
        Drover__Control *c;

        if (!a || !a->session)
                return; /* the answer to the agent's inventory will tell it what to end */
        m = message_new(a->session, DROVER__TO_AGENT__KIND_CONTROL);
        c = message_alloc(m, sizeof(*c));
        drover__control__init(c);
        if (what > CORE_SIGNAL) {
                c->command = DROVER__COMMAND__SIGNAL;
                c->signal = (uint32_t)(what - CORE_SIGNAL);
        } else {
                c->command = (Drover__Command)what;
        }
        c->n_attempts = 1;
        c->attempts = message_alloc(m, sizeof(*c->attempts));
        c->attempts[0] = message_attempts(m, request, fence, members);
        m->to_agent.control = c;
        message_send(s, m, TURN_DURABLE);
}

void agents_go(struct server *s, const char *agent, uint64_t request, uint32_t fence,
               const struct set *members)
{
        struct agent *a = agents_find(s, str_of(agent));
        struct message *m;
        Drover__Go *go;

        if (!a || !a->session)
                return; /* it is sent again after the agent's inventory */
        m = message_new(a->session, DROVER__TO_AGENT__KIND_GO);
        go = message_alloc(m, sizeof(*go));
        drover__go__init(go);
        go->n_attempts = 1;
        go->attempts = message_alloc(m, sizeof(*go->attempts));
        go->attempts[0] = message_attempts(m, request, fence, members);
        m->to_agent.go = go;
        message_send(s, m, TURN_DURABLE);
}

void agents_forget(struct server *s, uint64_t request)
{
        size_t at = 0;
        struct agent *a;

        while (agents_next(s, &at, &a))
                sent_forget(a->sent, request);
}

/* ---- commands of agents */

static void do_now(struct server *s, struct agent *a, struct command *c)
{
        int64_t began_ns = clock_mono_ns();

        if (a->turn != s->agents->turn) {
                a->turn = s->agents->turn;
                a->spent_ns = 0;
        }
        if (a->session == c->session)
                s->agents->handlers[c->kind](s, c, a);
        command_free(c);
        a->spent_ns += clock_mono_ns() - began_ns;
}

static bool may_go_on(const struct agents *all, const struct agent *a)
{
        return a->turn != all->turn || a->spent_ns < SHARE_NS;
}

static void wait_for_turn(struct agents *all, struct agent *a)
{
        a->deferred_next = NULL;
        *all->deferred_last = a;
        all->deferred_last = &a->deferred_next;
}

static void do_in_turn(struct server *s, struct agent *a, struct command *c)
{
        struct agents *all = s->agents;

        if (!a->waits && may_go_on(all, a)) {
                do_now(s, a, c);
                return;
        }
        c->task.mail.next = NULL;
        *a->deferred_last = &c->task;
        a->deferred_last = (struct task **)&c->task.mail.next;
        if (!a->waits)
                wait_for_turn(all, a);
        a->waits = true;
        if (!timer_running(all->go_on))
                timer_start(all->go_on, 0);
}

void agents_hear(struct server *s, struct task *t)
{
        struct command *c = (struct command *)t;
        struct agent *a;

        if (c->kind == COMMAND_JOIN || c->kind == COMMAND_HELLO) {
                s->agents->handlers[c->kind](s, c, NULL);
                command_free(c);
        } else if ((a = agents_session(s, c->agent, c->session))) {
                do_in_turn(s, a, c);
        } else {
                command_free(c);
        }
}

/* Runs deferred commands: each agent has its share of time and goes to the end of the list with the rest. */
static void go_on(void *arg)
{
        struct server *s = arg;
        struct agents *all = s->agents;
        struct agent *a = all->deferred, *next;
        struct command *c;

        turn_begin(s->turn);
        all->deferred = NULL;
        all->deferred_last = &all->deferred;
        for (; a; a = next) {
                next = a->deferred_next;
                while (may_go_on(all, a) && (c = deferred_take(a)))
                        do_now(s, a, c);
                a->waits = a->deferred != NULL;
                if (a->waits)
                        wait_for_turn(all, a);
        }
        if (all->deferred)
                timer_start(all->go_on, 0);
        turn_end(s->turn);
}

void agents_flush(struct server *s)
{
        struct agents *all = s->agents;

        all->turn++;
        if (all->lapsed)
                close_lapsed(s);
        for (size_t i = 0; i < all->pending_count; i++) {
                struct agent *a = all->pending[i];

                if (a->pending && a->session)
                        pending_flush(s, a);
                pending_free(a->pending);
                a->pending = NULL;
        }
        all->pending_count = 0;
}
