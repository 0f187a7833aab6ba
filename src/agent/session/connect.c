/* The session with the server: joining, greeting, renewing, and connecting again.
 *
 *   start --no certificate--> joining --Joined--> dialling --Welcome--> greeted --InventoryReply--> ready
 *                 ^                                  ^  |                  |                          |
 *                 +---- refused certificate ---------|--+---- closed ------+--------------------------+
 *
 * The pause between attempts begins short, doubles, and is randomized, so that a thousand agents do not
 * connect at the same time. Key and certificate are files in the state folder, readable by the agent's user
 * only.
 */
#include "agent/session/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "agent/attempt/checkpoint.h"
#include "agent/attempt/chirp.h"
#include "agent/attempt/decode.h"
#include "agent/attempt/streams.h"
#include "agent/credential/credentials.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/offers.h"
#include "agent/session/assign.h"
#include "agent/session/receive.h"
#include "agent/transfer/spool.h"
#include "agent/transfer/stores.h"
#include "auth/csr.h"
#include "base/job/owners.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"

#define RETRY_FIRST_MS 50
#define RETRY_MAX_MS   30000
#define TAKEOVER_MS    5000 /* the same with several servers, of which another one may lead soon */
#define SLOW_MS        2000
#define RENEW_MIN_MS   10
#define RENEW_MAX_MS   3600000
#define PROTOCOL       1

struct connection {
        struct agent *a;
        struct session *session;
        struct tls_context *tls; /* of the credential, or of the token; keeps the last session's ticket */
        struct timer *retry, *renew, *refresh;
        struct buf key, cert, ca, csr;
        char *server_uuid, *name;
        int64_t dialled_ms, hello_ms, renew_ms, cert_from_ms, cert_until_ms;
        struct backoff wait;
        size_t server;
        uint64_t leadership; /* newest that was heard of */
        bool joining, refused;
};

static void dial(void *arg);

static void forget_context(struct connection *c)
{
        tls_unref(c->tls);
        c->tls = NULL;
}

static bool load_credential(struct connection *c)
{
        struct agent *a = c->a;
        BUF_CLEANUP struct buf before = {0};

        buf_str(&before, buf_view(&c->cert));
        buf_reset(&c->key);
        buf_reset(&c->cert);
        buf_reset(&c->ca);
        struct cert_facts facts;
        struct err err;
        if (fs_read(a->dir, "agent.key", 65536, &c->key, NULL) < 0 ||
            fs_read(a->dir, AGENT_CERTIFICATE, 65536, &c->cert, NULL) < 0 ||
            fs_read(a->dir, "ca.crt", 65536, &c->ca, NULL) < 0)
                return false;
        if (cert_facts(buf_view(&c->cert), &facts, &err) < 0) {
                log_warn("msg=\"the certificate cannot be read\" error=\"%s\"", LOG_TEXT(str_of(err.text)));
                return false;
        }
        if (!str_eq(buf_view(&before), buf_view(&c->cert)))
                forget_context(c);
        c->cert_from_ms = facts.from_ms;
        c->cert_until_ms = facts.until_ms;
        free(c->name);
        c->name = mem_dupz(facts.name);
        return clock_wall_ms() < facts.until_ms;
}

/* Returns whether two thirds of the certificate's validity are over, so that the next Hello requests a new
 * one. */
static bool wants_renewal(const struct connection *c)
{
        return clock_wall_ms() > c->cert_from_ms + (c->cert_until_ms - c->cert_from_ms) / 3 * 2;
}

static void again(struct connection *c)
{
        timer_start(c->retry, backoff_wait(&c->wait));
        c->server = (c->server + 1) % c->a->config.servers.n;
}

static void drop_connection(struct connection *c)
{
        struct agent *a = c->a;

        session_free(c->session);
        c->session = NULL;
        timer_stop(c->renew);
        if (a->greeted) {
                a->greeted = false;
                spool_session_lost(a);
        }
        streams_session_lost(a);
        chirp_session_lost(a);
        outbox_session(a, NULL);
        assign_templates_drop(a); /* the next session sends them again */
}

static void send_join(struct connection *c)
{
        struct agent *a = c->a;
        struct err err;

        buf_reset(&c->key);
        buf_reset(&c->csr);
        if (csr_make(str_of(a->config.name), &c->key, &c->csr, &err) < 0) {
                log_error("msg=\"%s\"", LOG_TEXT(str_of(err.text)));
                a->exit_code = 1;
                loop_stop(a->loop);
                return;
        }
        Drover__Join join = DROVER__JOIN__INIT;
        join.version = PROTOCOL;
        join.token = a->config.token;
        join.name = a->config.name;
        join.csr_pem = (char *)buf_z(&c->csr);
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        m.kind_case = DROVER__TO_SERVER__KIND_JOIN;
        m.join = &join;
        session_send(c->session, &m.base);
}

static void send_hello(struct connection *c)
{
        struct agent *a = c->a;
        Drover__Hello hello = DROVER__HELLO__INIT;

        hello.version = PROTOCOL;
        hello.instance = a->instance;
        hello.boot_id = a->boot_id;
        hello.hostname = a->hostname;
        hello.filesystem_domain = a->config.filesystem_domain;
        hello.program = (char *)"drover-agent " DROVER_VERSION;
        buf_reset(&c->csr);
        if (wants_renewal(c) && csr_renew(str_of(c->name), buf_view(&c->key), &c->csr, NULL) == 0)
                hello.csr_pem = (char *)buf_z(&c->csr);
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        m.kind_case = DROVER__TO_SERVER__KIND_HELLO;
        m.hello = &hello;
        c->hello_ms = clock_boot_ms();
        session_send(c->session, &m.base);
}

static void on_ready(void *arg, struct session *s)
{
        struct connection *c = arg;

        (void)s;
        if (c->joining)
                send_join(c);
        else
                send_hello(c);
}

static void on_closed(void *arg, struct session *s, const struct err *why)
{
        struct connection *c = arg;

        (void)s;
        /* a connection that ends at once is retried before it is logged */
        if (c->a->greeted || c->wait.ms > 1000 || clock_boot_ms() - c->dialled_ms > SLOW_MS)
                log_warn("msg=\"no session with the server\" address=%s why=\"%s\"",
                         LOG_TEXT(str_of(c->a->config.servers.v[c->server])), LOG_TEXT(str_of(why->text)));
        drop_connection(c);
        again(c);
}

static int keep_file(struct connection *c, const char *file, const char *text)
{
        struct err err;
        int r = fs_write(c->a->dir, file, str_of(text), 0600, true, &err);

        if (r < 0)
                log_error("msg=\"%s\"", LOG_TEXT(str_of(err.text)));
        return r;
}

static void on_joined(struct connection *c, const Drover__Joined *j)
{
        log_info("msg=joined name=%s server=%s", j->name, j->server_uuid);
        /* the certificate last: with it the credential is whole */
        if (keep_file(c, "agent.key", buf_z(&c->key)) == 0 && keep_file(c, "ca.crt", j->ca_pem) == 0)
                keep_file(c, AGENT_CERTIFICATE, j->cert_pem);
        drop_connection(c);
        backoff_reset(&c->wait);
        timer_start(c->retry, 0);
}

static bool serves_many_as_one(const struct config *c)
{
        MEM_CLEANUP struct str *items = mem_array(NULL, c->owners.n + 1, sizeof(*items));
        struct owners l = {items, c->owners.n};

        for (size_t i = 0; i < c->owners.n; i++) {
                if (strcmp(c->owners.v[i], "any") == 0)
                        return c->users.n == 0;
                items[i] = str_of(c->owners.v[i]);
        }
        return c->users.n == 0 && owners_are_many(&l);
}

/* ---- two servers, each of which may take itself for the leader: the newer one is right. What was heard last
 * outlives the agent, so that one which was restarted does not listen to a server that was asleep. */

#define LEADERSHIP     "leadership"
#define LEADERSHIP_MAX 32

static void load_leadership(struct connection *c)
{
        BUF_CLEANUP struct buf text = {0};

        if (fs_read(c->a->dir, LEADERSHIP, LEADERSHIP_MAX, &text, NULL) == 0 &&
            str_to_u64(str_trim(buf_view(&text)), &c->leadership) != 0)
                c->leadership = 0;
}

/* Returns false if a newer leader is known. */
static bool take_leadership(struct connection *c, uint64_t leadership)
{
        BUF_CLEANUP struct buf text = {0};

        if (leadership == 0 || leadership == c->leadership)
                return true;
        if (leadership < c->leadership)
                return false;
        c->leadership = leadership;
        buf_printf(&text, "%llu\n", (unsigned long long)leadership);
        keep_file(c, LEADERSHIP, buf_z(&text));
        return true;
}

/* Returns whether the server may be listened to. */
static bool on_welcome(struct connection *c, const Drover__Welcome *w)
{
        struct agent *a = c->a;

        if (!take_leadership(c, w->leadership)) {
                struct err why;

                err_set(&why, 0, "another server leads since then");
                stream_abort(session_stream(c->session), &why);
                return false;
        }
        backoff_reset(&c->wait);
        c->renew_ms = !w->renew_ms                 ? 60000
                      : w->renew_ms > RENEW_MAX_MS ? RENEW_MAX_MS
                      : w->renew_ms < RENEW_MIN_MS ? RENEW_MIN_MS
                                                   : (int64_t)w->renew_ms;
        if (*w->cert_pem && !cert_fits_key(str_of(w->cert_pem), buf_view(&c->key)))
                log_warn("msg=\"the server's new certificate is not for our key, and is not kept\"");
        else if (*w->cert_pem && keep_file(c, AGENT_CERTIFICATE, w->cert_pem) == 0)
                load_credential(c);
        int64_t life = c->cert_until_ms - clock_wall_ms();
        timer_start(c->refresh, life > 90000 ? life - life / 4 : 60000);
        stream_silence(session_stream(c->session), c->renew_ms * 2 + 10000);
        lease_clock_greeted(&a->lease, c->hello_ms);
        log_info("msg=connected name=%s server=%s address=%s renew_ms=%lld resumed=%s", w->name,
                 w->server_uuid, LOG_TEXT(str_of(a->config.servers.v[c->server])), (long long)c->renew_ms,
                 stream_resumed(session_stream(c->session)) ? "yes" : "no");
        if (*w->owners || *w->tags)
                log_info("msg=\"the token that this agent joined with bounds what it offers\" owners=\"%s\" "
                         "tags=\"%s\"",
                         LOG_TEXT(str_of(w->owners)), LOG_TEXT(str_of(w->tags)));
        else if (serves_many_as_one(&a->config))
                log_warn("msg=\"the server gives no jobs to an agent that runs those of several owners as "
                         "one user: give "
                         "a map of users, or make the token with --owners\"");
        outbox_inventory(a);
        timer_start(c->renew, c->renew_ms);
        return true;
}

/* Tells the shepherd until when jobs may run, even if the agent dies. */
static void tell_lease(struct agent *a)
{
        int64_t end = lease_clock_end(&a->lease);

        for (size_t i = 0; i < a->backend_count; i++)
                a->backends[i]->runner->kind->lease(a->backends[i]->runner,
                                                    end == LEASE_CLOCK_NEVER ? 0 : end);
        if (end != LEASE_CLOCK_NEVER)
                timer_start(a->lease_timer, end > clock_boot_ms() ? end - clock_boot_ms() : 0);
        agent_turn_later(a);
}

void connect_lease_changed(struct agent *a)
{
        tell_lease(a);
}

static void on_message(void *arg, struct session *s, const ProtobufCMessage *base)
{
        struct connection *c = arg;
        struct agent *a = c->a;
        const Drover__ToAgent *m = (const void *)base;

        (void)s;
        switch (m->kind_case) {
        case DROVER__TO_AGENT__KIND_JOINED:
                if (c->joining)
                        on_joined(c, m->joined);
                return;
        case DROVER__TO_AGENT__KIND_WELCOME:
                if (!on_welcome(c, m->welcome))
                        return;
                tell_lease(a);
                break;
        case DROVER__TO_AGENT__KIND_ERROR:
                log_error("msg=\"the server refuses this agent\" code=%u text=\"%s\"", m->error->code,
                          LOG_TEXT(str_of(m->error->text)));
                if (m->error->code == 2 && c->joining) {
                        a->exit_code = 1;
                        loop_stop(a->loop);
                } else if (m->error->code == 2) {
                        c->refused = true;
                } else if (m->error->code == 5) { /* another agent has the name; no retry */
                        c->wait.ms = RETRY_MAX_MS;
                }
                return;
        case DROVER__TO_AGENT__KIND_INVENTORY_REPLY:
                assign_inventory(a, m->inventory_reply);
                a->greeted = true;
                credentials_greeted(a);
                checkpoint_greeted(a);
                spool_session_ready(a);
                stores_greeted(a);
                offers_update(a, true);
                tell_lease(a);
                break;
        case DROVER__TO_AGENT__KIND_RENEW_ACK:
                if (lease_clock_renewed(&a->lease, m->renew_ack->serial))
                        tell_lease(a);
                break;
        default: receive_message(a, m); return;
        }
        agent_turn_later(a);
}

static void on_renew(void *arg)
{
        struct connection *c = arg;
        struct agent *a = c->a;
        Drover__Renew renew = DROVER__RENEW__INIT;

        renew.serial = lease_clock_renewing(&a->lease, clock_boot_ms());
        renew.running = (uint32_t)queues_count(a, ATTEMPT_RUNNING);
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        m.kind_case = DROVER__TO_SERVER__KIND_RENEW;
        m.renew = &renew;
        outbox_send(a, &m);
        timer_start(c->renew, c->renew_ms);
}

void connect_anew(struct agent *a)
{
        struct connection *c = a->connection;

        /* also a session that has sent the inventory and waits for the answer */
        if (c->session && !c->joining) {
                drop_connection(c);
                timer_start(c->retry, 0);
        }
}

/* The certificate nears its end: a new session brings a new one. */
static void on_refresh(void *arg)
{
        struct connection *c = arg;

        if (c->a->greeted)
                connect_anew(c->a);
}

static void dial(void *arg)
{
        static const struct session_ops ops = {on_ready, on_message, on_closed};
        struct connection *c = arg;
        struct agent *a = c->a;
        struct err err = {""};
        struct tls_config t = {0};
        bool joined = c->joining;

        c->joining = !load_credential(c) || (c->refused && a->config.token);
        if (c->joining != joined)
                forget_context(c);
        c->refused = false;
        if (c->joining) {
                struct str rest = str_of(a->config.token), kind, version, fingerprint;

                if (!a->config.token) {
                        log_error("msg=\"no certificate yet, and no token to get one with: give --token-file "
                                  "(drover token agent --name %s)\"",
                                  a->config.name);
                        a->exit_code = 1;
                        loop_stop(a->loop);
                        return;
                }
                if (!str_cut(&rest, '.', &kind) || !str_cut(&rest, '.', &version) ||
                    !str_cut(&rest, '.', &fingerprint) || !str_eqz(kind, "drover-agent-token") ||
                    fingerprint.n != 64 || !rest.p) {
                        log_error(
                                "msg=\"this is no token for an agent, or not all of it: one begins with "
                                "drover-agent-token.v1. and ends after two long words with a dot between\"");
                        a->exit_code = 1;
                        loop_stop(a->loop);
                        return;
                }
                t.ca_fingerprint = fingerprint;
        } else {
                t.ca_pem = buf_view(&c->ca);
                t.cert_pem = buf_view(&c->cert);
                t.key_pem = buf_view(&c->key);
        }
        if (!c->tls && tls_client_new(&t, &c->tls, &err) < 0) {
                log_error("msg=\"cannot use the credential\" error=\"%s\"", LOG_TEXT(str_of(err.text)));
                again(c);
                return;
        }
        c->dialled_ms = clock_boot_ms();
        c->session = session_connect(a->loop, a->config.servers.v[c->server], c->tls, 30000, &ops, c);
        outbox_session(a, c->session);
}

void connect_open(struct agent *a)
{
        struct connection *c = a->connection = mem_new(struct connection);

        c->a = a;
        c->wait = BACKOFF(RETRY_FIRST_MS, a->config.servers.n > 1 ? TAKEOVER_MS : RETRY_MAX_MS);
        load_leadership(c);
        c->retry = timer_new(a->loop, dial, c);
        c->renew = timer_new(a->loop, on_renew, c);
        c->refresh = timer_new(a->loop, on_refresh, c);
        timer_start(c->retry, 0);
}

void connect_close(struct agent *a)
{
        struct connection *c = a->connection;

        if (!c)
                return;
        if (c->session && a->greeted) {
                Drover__Goodbye bye = DROVER__GOODBYE__INIT;

                bye.reason = (char *)"stopped";
                Drover__ToServer m = DROVER__TO_SERVER__INIT;
                m.kind_case = DROVER__TO_SERVER__KIND_GOODBYE;
                m.goodbye = &bye;
                session_send(c->session, &m.base);
        }
        outbox_session(a, NULL);
        session_free(c->session);
        tls_unref(c->tls);
        timer_free(c->retry);
        timer_free(c->renew);
        timer_free(c->refresh);
        buf_deinit(&c->key);
        buf_deinit(&c->cert);
        buf_deinit(&c->ca);
        buf_deinit(&c->csr);
        free(c->name);
        free(c->server_uuid);
        free(c);
        a->connection = NULL;
        a->greeted = false;
}
