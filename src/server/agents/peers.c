#include "server/agents/peers.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/name.h"
#include "ev/admission.h"
#include "server/agents/command.h"
#include "server/agents/leases.h"
#include "server/loop/inflow.h"

#define STRANGERS_MAX  1024u
#define HELLO_MS       5000 /* from the connection to its Hello, handshake included */
#define NAME_MAX_BYTES 128
#define WORDS_MAX      256 /* bytes of what an agent says of itself */

struct peer {
        struct peers *peers;
        uint64_t id;
        struct session *session;
        struct admission_place place;
        struct timer *hello; /* until it has said it */
        char *name;          /* of its certificate; NULL before Hello */
        bool said_hello;     /* told to the core, or a Join was */
        struct inflow *inflow;
};
struct peers {
        struct front *front;
        struct admission *admission;
        struct idmap *by_id;
        uint64_t last_id;
        struct listener **listeners;
        char **addresses;
        size_t count;
};

static void peer_free(struct peer *p)
{
        idmap_take(p->peers->by_id, p->id);
        session_free(p->session);
        inflow_unref(p->inflow);
        timer_free(p->hello);
        admission_give(&p->place);
        free(p->name);
        free(p);
}

static void tell_core(struct peer *p, struct command *c)
{
        if (!command_count(c, p->inflow))
                session_pause(p->session);
        server_to_core(p->peers->front->server, &c->task);
}

static void end(struct peer *p, unsigned code, const char *text)
{
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        Drover__Error e = DROVER__ERROR__INIT;

        e.code = code;
        e.text = (char *)text;
        m.kind_case = DROVER__TO_AGENT__KIND_ERROR;
        m.error = &e;
        log_info("msg=\"a session is ended\" peer=\"%s\" why=\"%s\"",
                 LOG_TEXT(stream_peer(session_stream(p->session))), LOG_TEXT(str_of(text)));
        session_send(p->session, &m.base);
        session_finish(p->session);
        if (p->name)
                tell_core(p, command_new(COMMAND_GONE, p->id, str_of(p->name)));
        free(p->name);
        p->name = NULL;
        p->said_hello = true;
}

static void on_join(struct peer *p, const Drover__Join *j)
{
        struct command *c;

        if (j->version != 1) {
                end(p, 1, "this server speaks version 1 of the protocol");
                return;
        }
        c = command_new(COMMAND_JOIN, p->id, STR_NONE);
        c->text[COMMAND_TOKEN] = command_text(c, j->token);
        c->text[COMMAND_NAME] = command_text(c, j->name);
        c->text[COMMAND_CSR] = command_text(c, j->csr_pem);
        tell_core(p, c);
}

static void on_hello(struct peer *p, const Drover__Hello *h)
{
        struct str name = stream_peer_name(session_stream(p->session));
        struct command *c;

        if (h->version != 1) {
                end(p, 1, "this server speaks version 1 of the protocol");
                return;
        }
        if (name.n == 0 || name.n > NAME_MAX_BYTES) {
                end(p, 2, "an agent needs a certificate of this server: join with a token first");
                return;
        }
        if (!name_is_line(str_of(h->hostname), WORDS_MAX) ||
            !name_is_line(str_of(h->filesystem_domain), WORDS_MAX) ||
            !name_is_line(str_of(h->program), WORDS_MAX) || !name_is_line(str_of(h->instance), WORDS_MAX)) {
                end(p, 3, "a host, a filesystem domain, a program or an instance that is no line of text");
                return;
        }
        p->name = str_dupz(name);
        c = command_new(COMMAND_HELLO, p->id, name);
        c->cert_serial = arena_str(&c->arena, stream_peer_serial(session_stream(p->session)));
        c->text[COMMAND_HOSTNAME] = command_text(c, h->hostname);
        c->text[COMMAND_DOMAIN] = command_text(c, h->filesystem_domain);
        c->text[COMMAND_PROGRAM] = command_text(c, h->program);
        c->text[COMMAND_CSR_AGAIN] = command_text(c, h->csr_pem);
        c->text[COMMAND_INSTANCE] = command_text(c, h->instance);
        tell_core(p, c);
}

/* Answered here: an agent whose renewals wait for the core ends its jobs, whatever the core is held by. */
static void on_renew(struct peer *p, const Drover__Renew *renew)
{
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        Drover__RenewAck ack = DROVER__RENEW_ACK__INIT;

        if (!leases_renew(p->peers->front->server->leases, p->id, clock_boot_ms()))
                return;
        ack.serial = renew->serial;
        m.kind_case = DROVER__TO_AGENT__KIND_RENEW_ACK;
        m.renew_ack = &ack;
        session_send(p->session, &m.base);
}

static void message(void *arg, struct session *session, const ProtobufCMessage *pm)
{
        struct peer *p = arg;
        const Drover__ToServer *m = (const Drover__ToServer *)pm;
        struct command *c;
        struct err err = {0};

        (void)session;
        if (m->kind_case == DROVER__TO_SERVER__KIND__NOT_SET)
                return; /* of a newer version, or nothing: it breaks silence */
        if (!p->said_hello) {
                p->said_hello = true;
                timer_stop(p->hello);
                if (m->kind_case == DROVER__TO_SERVER__KIND_JOIN)
                        on_join(p, m->join);
                else if (m->kind_case == DROVER__TO_SERVER__KIND_HELLO)
                        on_hello(p, m->hello);
                else
                        end(p, 3, "say Hello or Join first");
                return;
        }
        if (!p->name)
                return; /* being closed, or joined: nothing more is expected */
        if (m->kind_case == DROVER__TO_SERVER__KIND_GOODBYE) {
                session_finish(p->session);
                return;
        }
        if (m->kind_case == DROVER__TO_SERVER__KIND_RENEW)
                on_renew(p, m->renew);
        c = command_from(m, p->id, str_of(p->name), &err);
        if (c)
                tell_core(p, c);
        else
                end(p, 3, err.text);
}

static void closed(void *arg, struct session *session, const struct err *why)
{
        struct peer *p = arg;

        log_info("msg=\"a session ended\" agent=\"%s\" peer=\"%s\" why=\"%s\"", LOG_TEXT(str_of(p->name)),
                 LOG_TEXT(stream_peer(session_stream(session))), LOG_TEXT(str_of(why ? why->text : "")));
        if (p->name)
                tell_core(p, command_new(COMMAND_GONE, p->id, str_of(p->name)));
        peer_free(p);
}

static void not_welcome(void *arg)
{
        struct peer *p = arg;
        struct err why;

        err_set(&why, 0, "it did not say who it is in time");
        stream_abort(session_stream(p->session), &why);
}

static const struct session_ops ops = {.message = message, .closed = closed};

static void on_accept(void *arg, int fd)
{
        struct peers *ps = arg;
        struct front *f = ps->front;
        struct admission_place place;
        struct peer *p;

        if (!admission_take(ps->admission, fd, true, &place)) {
                close(fd);
                return;
        }
        p = mem_new(struct peer);
        p->peers = ps;
        p->place = place;
        p->hello = timer_new(f->loop, not_welcome, p);
        timer_start(p->hello, HELLO_MS);
        p->id = ++ps->last_id;
        idmap_put(ps->by_id, p->id, p);
        p->inflow = inflow_new(f->server, p->id);
        p->session = session_accept(f->loop, fd, f->tls, 0, &ops, p);
}

void peers_send(struct server *s, uint64_t session, const Drover__ToAgent *m, bool finish)
{
        struct peer *p = idmap_get(s->front->peers->by_id, session);

        if (!p)
                return;
        if (m->kind_case == DROVER__TO_AGENT__KIND_WELCOME) {
                session_frame_max(p->session, SESSION_FRAME_MAX);
                stream_silence(session_stream(p->session), s->renew_ms * 3);
                admission_known(&p->place);
        }
        session_send(p->session, &m->base);
        if (finish)
                session_finish(p->session);
}

void peers_read_on(struct server *s, uint64_t session)
{
        struct peer *p = idmap_get(s->front->peers->by_id, session);

        if (p)
                session_read_on(p->session);
}

static int listen_on(struct peers *ps, const char *address, struct err *err)
{
        struct listener *l;
        int r = listener_new(ps->front->loop, address, 0666, on_accept, ps, &l, err);

        if (r != 0)
                return r;
        ps->listeners = mem_array(ps->listeners, ps->count + 1, sizeof(*ps->listeners));
        ps->addresses = mem_array(ps->addresses, ps->count + 1, sizeof(*ps->addresses));
        ps->listeners[ps->count] = l;
        ps->addresses[ps->count++] =
                mem_dupz(str_starts(str_of(address), STR("unix:")) ? address : listener_address(l));
        return 0;
}

int peers_new(struct front *f, struct peers **ret, struct err *err)
{
        struct peers *ps = mem_new(struct peers);
        const struct config *config = &f->server->config;
        int r;

        ps->front = f;
        ps->by_id = idmap_new();
        ps->admission = admission_new(f->agents_max, STRANGERS_MAX);
        r = listen_on(ps, f->server->paths.agents, err);
        for (size_t i = 0; r == 0 && i < config->listen.count; i++)
                r = listen_on(ps, config->listen.items[i], err);
        if (r != 0)
                peers_free(ps);
        else
                *ret = ps;
        return r;
}

void peers_free(struct peers *ps)
{
        size_t at = 0;
        void *v;

        if (!ps)
                return;
        for (size_t i = 0; i < ps->count; i++) {
                listener_free(ps->listeners[i]);
                free(ps->addresses[i]);
        }
        while (at = 0, idmap_next(ps->by_id, &at, NULL, &v))
                peer_free(v);
        idmap_free(ps->by_id);
        admission_free(ps->admission);
        free(ps->listeners);
        free(ps->addresses);
        free(ps);
}

size_t peers_count_addresses(const struct peers *ps)
{
        return ps->count;
}

const char *peers_address(const struct peers *ps, size_t n)
{
        return ps->addresses[n];
}
