#include "server/agents/agent_sessions.h"

#include <errno.h>
#include <unistd.h>

#include "base/format/name.h"
#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "ev/admission.h"
#include "server/agents/command.h"
#include "server/agents/inflow.h"
#include "server/agents/leases.h"

#define STRANGERS_MAX  512u
#define HELLO_MS       5000  /* from the start of the handshake to the Hello */
#define WAIT_MS        15000 /* for the start of the handshake; an agent itself waits longer */
#define LOOK_MS        10    /* between checks of the waiting connections */
#define WAIT_LOOKS     64    /* waiting connections checked at a time */
#define NAME_MAX_BYTES 128
#define WORDS_MAX      256               /* bytes of an agent's description of itself that are kept */
#define TICKET_MS      (6 * 3600 * 1000) /* between tickets: a quarter of their life */

struct agent_session {
        struct agent_sessions *all;
        uint64_t id;
        struct session *session;
        struct admission_place place;
        struct timer *hello; /* ends the connection if no Hello has come */
        char *name;          /* from the certificate; NULL before Hello */
        bool said_hello;     /* the core was told of the Hello or the Join */
        struct inflow *inflow;
        int64_t ticket_ms; /* boot clock: when the next session ticket is due */
};
/* A connection whose handshake has not begun, because too many other handshakes are under way. It costs
 * only a descriptor; if it were closed, its agent would connect again at once. */
struct waiting {
        struct waiting *next;
        struct admission_place room;  /* place in the limit on waiting connections */
        struct admission_place place; /* place in the limit on sessions, kept for the session */
        int64_t until_ms;             /* boot clock */
        int fd;
};
struct agent_sessions {
        struct server *server;
        struct loop *loop;
        struct tls_context *tls;
        struct admission *admission, *waiting_room;
        struct idmap *by_id;
        uint64_t last_id;
        struct waiting *waiting, **waiting_last;
        struct timer *look; /* active while connections wait */
        struct listener **listeners;
        char **addresses;
        size_t count;
};

static void agent_session_free(struct agent_session *a)
{
        idmap_take(a->all->by_id, a->id);
        session_free(a->session);
        inflow_unref(a->inflow);
        timer_free(a->hello);
        admission_give(&a->place);
        free(a->name);
        free(a);
}

static void tell_core(struct agent_session *a, struct command *c)
{
        if (!command_count(c, a->inflow))
                session_pause(a->session);
        server_to_core(a->all->server, &c->task);
}

static void end_session(struct agent_session *a, unsigned code, const char *text)
{
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        Drover__Error e = DROVER__ERROR__INIT;

        e.code = code;
        e.text = (char *)text;
        m.kind_case = DROVER__TO_AGENT__KIND_ERROR;
        m.error = &e;
        log_info("msg=\"a session is ended\" peer=\"%s\" why=\"%s\"",
                 LOG_TEXT(stream_peer(session_stream(a->session))), LOG_TEXT(str_of(text)));
        session_send(a->session, &m.base);
        session_finish(a->session);
        if (a->name)
                tell_core(a, command_new(COMMAND_GONE, a->id, str_of(a->name)));
        free(a->name);
        a->name = NULL;
        a->said_hello = true;
}

static void on_join(struct agent_session *a, const Drover__Join *j)
{
        struct command *c;

        if (j->version != 1) {
                end_session(a, 1, "this server speaks version 1 of the protocol");
                return;
        }
        c = command_new(COMMAND_JOIN, a->id, STR_NONE);
        c->join = (struct command_join){command_text(c, j->token), command_text(c, j->name),
                                        command_text(c, j->csr_pem)};
        tell_core(a, c);
}

static void on_hello(struct agent_session *a, const Drover__Hello *h)
{
        struct str name = stream_peer_name(session_stream(a->session));
        struct command *c;

        if (h->version != 1) {
                end_session(a, 1, "this server speaks version 1 of the protocol");
                return;
        }
        if (name.n == 0 || name.n > NAME_MAX_BYTES) {
                end_session(a, 2, "an agent needs a certificate of this server: join with a token first");
                return;
        }
        if (!name_is_line(str_of(h->hostname), WORDS_MAX) ||
            !name_is_line(str_of(h->filesystem_domain), WORDS_MAX) ||
            !name_is_line(str_of(h->program), WORDS_MAX) || !name_is_line(str_of(h->instance), WORDS_MAX)) {
                end_session(a, 3,
                            "a host, a filesystem domain, a program or an instance that is no line of text");
                return;
        }
        a->name = str_dupz(name);
        c = command_new(COMMAND_HELLO, a->id, name);
        c->hello = (struct command_hello){
                .cert_serial = arena_str(&c->arena, stream_peer_serial(session_stream(a->session))),
                .hostname = command_text(c, h->hostname),
                .filesystem_domain = command_text(c, h->filesystem_domain),
                .program = command_text(c, h->program),
                .csr_pem = command_text(c, h->csr_pem),
                .instance = command_text(c, h->instance),
        };
        tell_core(a, c);
}

/* Acknowledges the renewal on the I/O thread, because an agent whose renewals are not acknowledged in time
 * ends its jobs, and the core thread may be busy. A ticket costs 200 us to make, so an agent gets it with its
 * first renewal, and not while all agents connect again. */
static void on_renew(struct agent_session *a, const Drover__Renew *renew)
{
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        Drover__RenewAck ack = DROVER__RENEW_ACK__INIT;

        if (!leases_renew(a->all->server->leases, a->id, clock_boot_ms()))
                return;
        if (clock_boot_ms() >= a->ticket_ms) {
                stream_send_ticket(session_stream(a->session));
                a->ticket_ms = clock_boot_ms() + TICKET_MS;
        }
        ack.serial = renew->serial;
        m.kind_case = DROVER__TO_AGENT__KIND_RENEW_ACK;
        m.renew_ack = &ack;
        session_send(a->session, &m.base);
}

static void message(void *arg, struct session *session, const ProtobufCMessage *pm)
{
        struct agent_session *a = arg;
        const Drover__ToServer *m = (const Drover__ToServer *)pm;
        struct command *c;
        struct err err = {0};

        (void)session;
        if (m->kind_case == DROVER__TO_SERVER__KIND__NOT_SET)
                /* an unknown message of a newer version, or an empty one, only shows that the agent is
                 * alive */
                return;
        if (!a->said_hello) {
                a->said_hello = true;
                timer_stop(a->hello);
                if (m->kind_case == DROVER__TO_SERVER__KIND_JOIN)
                        on_join(a, m->join);
                else if (m->kind_case == DROVER__TO_SERVER__KIND_HELLO)
                        on_hello(a, m->hello);
                else
                        end_session(a, 3, "send Hello or Join first");
                return;
        }
        if (!a->name)
                return; /* the session is closing or has joined: further messages are ignored */
        if (m->kind_case == DROVER__TO_SERVER__KIND_GOODBYE) {
                session_finish(a->session);
                return;
        }
        if (m->kind_case == DROVER__TO_SERVER__KIND_RENEW)
                on_renew(a, m->renew);
        c = command_from(m, a->id, str_of(a->name), &err);
        if (c)
                tell_core(a, c);
        else
                end_session(a, 3, err.text);
}

static void closed(void *arg, struct session *session, const struct err *why)
{
        struct agent_session *a = arg;

        log_info("msg=\"a session ended\" agent=\"%s\" peer=\"%s\" why=\"%s\"", LOG_TEXT(str_of(a->name)),
                 LOG_TEXT(stream_peer(session_stream(session))), LOG_TEXT(str_of(why ? why->text : "")));
        if (a->name)
                tell_core(a, command_new(COMMAND_GONE, a->id, str_of(a->name)));
        agent_session_free(a);
}

static void not_welcome(void *arg)
{
        struct agent_session *a = arg;
        struct err why;

        err_set(&why, 0, "no Hello or Join came in time");
        stream_abort(session_stream(a->session), &why);
}

static const struct session_ops ops = {.message = message, .closed = closed};

static void begin_session(struct agent_sessions *all, int fd, const struct admission_place *place)
{
        struct agent_session *a = mem_new(struct agent_session);

        a->all = all;
        a->place = *place;
        a->hello = timer_new(all->loop, not_welcome, a);
        timer_start(a->hello, HELLO_MS);
        a->id = ++all->last_id;
        idmap_put(all->by_id, a->id, a);
        a->inflow = inflow_new(all->server, a->id);
        a->session = session_accept(all->loop, fd, all->tls, 0, &ops, a);
}

static void wait_last(struct agent_sessions *all, struct waiting *w)
{
        w->next = NULL;
        *all->waiting_last = w;
        all->waiting_last = &w->next;
}

static struct waiting *wait_take(struct agent_sessions *all)
{
        struct waiting *w = all->waiting;

        all->waiting = w->next;
        if (!all->waiting)
                all->waiting_last = &all->waiting;
        return w;
}

/* Frees the waiting entry. Its place and its descriptor belong to the session now. */
static void wait_over(struct waiting *w)
{
        admission_give(&w->room);
        free(w);
}

static void wait_close(struct waiting *w)
{
        close(w->fd);
        admission_give(&w->place);
        wait_over(w);
}

/* Starts waiting handshakes, longest wait first. A connection whose address has used its share goes behind
 * the others. */
static void begin_waiting(struct agent_sessions *all)
{
        int64_t now = clock_boot_ms();

        for (int looks = WAIT_LOOKS; all->waiting && looks > 0; looks--) {
                struct waiting *w = wait_take(all);

                if (now > w->until_ms) {
                        wait_close(w);
                } else if (admission_meet(&w->place)) {
                        begin_session(all, w->fd, &w->place);
                        wait_over(w);
                } else {
                        wait_last(all, w);
                }
        }
        if (all->waiting && !timer_running(all->look))
                timer_start(all->look, LOOK_MS);
}

static void on_look(void *arg)
{
        begin_waiting(arg);
}

static void on_accept(void *arg, int fd)
{
        struct agent_sessions *all = arg;
        struct waiting *w = mem_new(struct waiting);

        *w = (struct waiting){.fd = fd, .until_ms = clock_boot_ms() + WAIT_MS};
        if (!admission_take(all->waiting_room, fd, false, &w->room) ||
            !admission_take(all->admission, fd, false, &w->place)) {
                wait_close(w);
                return;
        }
        wait_last(all, w);
        begin_waiting(all);
}

void agent_sessions_send(struct server *s, uint64_t session, const Drover__ToAgent *m, bool finish)
{
        struct agent_session *a = idmap_get(s->agent_sessions->by_id, session);

        if (!a)
                return;
        if (m->kind_case == DROVER__TO_AGENT__KIND_WELCOME) {
                session_frame_max(a->session, SESSION_FRAME_MAX);
                stream_silence(session_stream(a->session), s->renew_ms * 3);
                admission_known(&a->place);
                begin_waiting(s->agent_sessions);
                if (stream_resumed(session_stream(a->session)))
                        a->ticket_ms = clock_boot_ms() + TICKET_MS;
        }
        session_send(a->session, &m->base);
        if (finish)
                session_finish(a->session);
}

void agent_sessions_read_on(struct server *s, uint64_t session)
{
        struct agent_session *a = idmap_get(s->agent_sessions->by_id, session);

        if (a)
                session_read_on(a->session);
}

static int listen_on(struct agent_sessions *all, const char *address, struct err *err)
{
        struct listener *l;
        int r = listener_new(all->loop, address, 0666, on_accept, all, &l, err);

        if (r != 0)
                return r;
        all->listeners = mem_array(all->listeners, all->count + 1, sizeof(*all->listeners));
        all->addresses = mem_array(all->addresses, all->count + 1, sizeof(*all->addresses));
        all->listeners[all->count] = l;
        all->addresses[all->count++] =
                mem_dupz(str_starts(str_of(address), STR("unix:")) ? address : listener_address(l));
        return 0;
}

int agent_sessions_new(struct server *s, struct loop *loop, struct tls_context *tls, size_t most,
                       struct agent_sessions **ret, struct err *err)
{
        struct agent_sessions *all = mem_new(struct agent_sessions);
        int r;

        all->server = s;
        all->loop = loop;
        all->tls = tls;
        all->by_id = idmap_new();
        all->admission = admission_new(most, STRANGERS_MAX);
        all->waiting_room = admission_new(most / 2, 0);
        all->waiting_last = &all->waiting;
        all->look = timer_new(loop, on_look, all);
        r = listen_on(all, s->paths.agents, err);
        for (size_t i = 0; r == 0 && i < s->config.listen.count; i++)
                r = listen_on(all, s->config.listen.items[i], err);
        if (r != 0)
                agent_sessions_free(all);
        else
                *ret = all;
        return r;
}

void agent_sessions_free(struct agent_sessions *all)
{
        size_t at = 0;
        void *v;

        if (!all)
                return;
        for (size_t i = 0; i < all->count; i++) {
                listener_free(all->listeners[i]);
                free(all->addresses[i]);
        }
        while (at = 0, idmap_next(all->by_id, &at, NULL, &v))
                agent_session_free(v);
        idmap_free(all->by_id);
        while (all->waiting)
                wait_close(wait_take(all));
        timer_free(all->look);
        admission_free(all->waiting_room);
        admission_free(all->admission);
        free(all->listeners);
        free(all->addresses);
        free(all);
}

size_t agent_sessions_count_addresses(const struct agent_sessions *all)
{
        return all->count;
}

const char *agent_sessions_address(const struct agent_sessions *all, size_t n)
{
        return all->addresses[n];
}
