#include "server/daemon/commands.h"

#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/access/access.h"
#include "server/agents/agents.h"
#include "server/agents/grants.h"
#include "server/agents/message.h"
#include "server/agents/reserved.h"
#include "server/files/chirps.h"
#include "server/files/objects.h"
#include "server/files/registrations.h"
#include "server/files/scripts.h"
#include "server/files/streams.h"
#include "server/files/tails.h"
#include "server/loop/turn.h"
#include "server/metrics/metrics.h"
#include "server/mirror/mirror.h"
#include "server/userlog/userlog.h"

static void send_error(struct server *s, uint64_t session, unsigned code, const char *text)
{
        struct message *m = message_new(session, DROVER__TO_AGENT__KIND_ERROR);
        Drover__Error *e = message_alloc(m, sizeof(*e));

        drover__error__init(e);
        e->code = code;
        e->text = message_text(m, str_of(text));
        m->to_agent.error = e;
        m->finish = true;
        message_send(s, m, TURN_NOW);
}

static void on_join(struct server *s, struct command *c, struct agent *a)
{
        BUF_CLEANUP struct buf cert = {0}, ca = {0}, name = {0};
        struct message *m;
        Drover__Joined *j;
        struct err err = {0};

        (void)a;
        if (turn_full(s->turn)) {
                send_error(s, c->session, 4, "the server's disk is full: try again later");
                return;
        }
        if (access_join(s, c->join.token, c->join.name, c->join.csr_pem, &name, &cert, &ca, &err) != 0) {
                log_warn("msg=\"a join was refused\" name=\"%s\" why=\"%s\"", LOG_TEXT(c->join.name),
                         LOG_TEXT(str_of(err.text)));
                send_error(s, c->session, 2, err.text);
                return;
        }
        log_info("msg=\"agent joined\" name=\"%s\"", LOG_TEXT(buf_view(&name)));
        m = message_new(c->session, DROVER__TO_AGENT__KIND_JOINED);
        j = message_alloc(m, sizeof(*j));
        drover__joined__init(j);
        j->name = message_text(m, buf_view(&name));
        j->cert_pem = message_text(m, buf_view(&cert));
        j->ca_pem = message_text(m, buf_view(&ca));
        j->server_uuid = message_text(m, str_of(s->uuid));
        m->to_agent.joined = j;
        m->finish = true;
        message_send(s, m, TURN_DURABLE);
}

/* Sends the stores of the settings, so that the agent can measure its distance to them and uses their
 * names. */
static void send_stores(struct server *s, uint64_t session, enum turn_when when)
{
        const struct config_stores *c = &s->config.stores;
        struct message *m = message_new(session, DROVER__TO_AGENT__KIND_STORES);
        Drover__Stores *all = message_alloc(m, sizeof(*all));

        drover__stores__init(all);
        all->stores = message_alloc(m, (c->store_count + 1) * sizeof(*all->stores));
        for (size_t i = 0; i < c->store_count; i++) {
                const struct store_urls *urls = &c->stores[i].urls;
                Drover__Store *one = message_alloc(m, sizeof(*one));

                drover__store__init(one);
                one->name = message_text(m, urls->name);
                one->probe = message_text(m, c->probes[i]);
                one->space = c->stores[i].capacity_bytes > 0;
                one->prefixes = message_alloc(m, (urls->prefix_count + 1) * sizeof(*one->prefixes));
                for (size_t k = 0; k < urls->prefix_count; k++)
                        one->prefixes[one->n_prefixes++] = message_text(m, urls->prefixes[k]);
                all->stores[all->n_stores++] = one;
        }
        m->to_agent.stores = all;
        message_send(s, m, when);
}

static void on_hello(struct server *s, struct command *c, struct agent *a)
{
        BUF_CLEANUP struct buf cert = {0};
        struct agent_hello hello = {
                .name = c->agent.p,
                .hostname = c->hello.hostname.p,
                .filesystem_domain = c->hello.filesystem_domain.p,
                .program = c->hello.program.p,
                .instance = c->hello.instance.p,
                .session = c->session,
        };
        struct certificate certificate;
        struct message *m;
        Drover__Welcome *w;
        struct err err = {0};

        (void)a;
        if (access_agent(s, c->agent, c->hello.cert_serial, c->hello.csr_pem, &cert, &certificate, &err) !=
            0) {
                log_warn("msg=\"an agent was refused\" name=\"%s\" why=\"%s\"", LOG_TEXT(c->agent),
                         LOG_TEXT(str_of(err.text)));
                send_error(s, c->session, 2, err.text);
                return;
        }
        if (agents_is_taken(s, &hello, &err)) {
                log_warn("msg=\"an agent was refused\" name=\"%s\" host=\"%s\" why=\"%s\"",
                         LOG_TEXT(c->agent), LOG_TEXT(c->hello.hostname), LOG_TEXT(str_of(err.text)));
                send_error(s, c->session, 5, err.text);
                return;
        }
        hello.certificate = &certificate;
        if (!agents_connected(s, &hello)) {
                send_error(s, c->session, 4, "this server knows too many agents");
                return;
        }
        chirps_agent_gone(s, hello.name);
        streams_agent_gone(s, hello.name); /* of a session that this one replaces */
        m = message_new(c->session, DROVER__TO_AGENT__KIND_WELCOME);
        w = message_alloc(m, sizeof(*w));
        drover__welcome__init(w);
        w->version = 1;
        w->server_uuid = message_text(m, str_of(s->uuid));
        w->name = message_text(m, c->agent);
        w->renew_ms = (uint64_t)s->renew_ms;
        w->leadership = mirror_epoch(s->mirror);
        w->cert_pem = message_text(m, buf_view(&cert));
        w->owners = message_text(m, certificate.ceiling.owners);
        w->tags = message_text(m, certificate.ceiling.tags);
        m->to_agent.welcome = w;
        message_send(s, m, cert.n ? TURN_DURABLE : TURN_NOW);
        send_stores(s, c->session, cert.n ? TURN_DURABLE : TURN_NOW);
        reserved_greet(s, agents_session(s, c->agent, c->session));
}

#define SHARED_USER                                                                                          \
        "it would run jobs of several owners as one user of its machine: let it map them (users), or "       \
        "make its token with --owners"

static void warn_cut(struct agent *a, const char *queue, const char *why)
{
        if (!a->warned)
                log_warn("msg=\"offers are cut to what the agent may\" agent=\"%s\" queue=\"%s\" why=\"%s\"",
                         LOG_TEXT(str_of(a->name)), LOG_TEXT(str_of(queue)), why);
        a->warned = true;
}

static bool same_owners(const struct owners *a, const struct owners *b)
{
        bool same = a->count == b->count;

        for (size_t i = 0; same && i < a->count; i++)
                same = str_eq(a->items[i], b->items[i]);
        return same;
}

/* Restricts the offer to what the agent's certificate allows. */
static void on_offer(struct server *s, struct command *c, struct agent *a)
{
        const struct command_offer *x = &c->offer;
        struct owners said = {x->owners, x->owner_count}, cut;
        struct core_offer o = {
                .agent = a->name,
                .queue = x->queue.p,
                .serial = x->serial,
                .ad = x->ad,
                .jobs_max = x->jobs_max,
                .filesystem_domain = str_of(a->filesystem_domain),
                .hostname = str_of(a->hostname),
                .tags = str_of(a->tags),
                .most = str_of(a->most),
        };
        struct err err = {0};

        if (x->hands_on)
                agents_hands_on(a);
        owners_cut(&said, &a->owners, &cut);
        if (!same_owners(&said, &cut))
                warn_cut(a, o.queue, "its token names the owners that it may serve");
        if (!x->own_users && !a->owners_said && owners_are_many(&cut)) {
                warn_cut(a, o.queue, SHARED_USER);
                owners_deinit(&cut);
                owners_add(&cut, OWNERS_NOBODY);
                o.closed = SHARED_USER;
        }
        o.owners = cut.items;
        o.owner_count = cut.count;
        memcpy(o.wishes, x->wishes, sizeof(o.wishes));
        if (core_offer(s->core, &o, &err) != 0) {
                log_warn("msg=\"an offer was refused\" agent=\"%s\" why=\"%s\"", LOG_TEXT(c->agent),
                         LOG_TEXT(str_of(err.text)));
                send_error(s, c->session, 3, err.text);
        }
        owners_deinit(&cut);
}

static void keep_tails(struct server *s, const struct agent *a, const struct core_result *r,
                       const struct command_tails *said)
{
        struct core_request request;
        struct tail t = {
                .agent = str_of(a->name),
                .request = r->request,
                .member = r->member,
                .fence = r->fence,
                .size = {said->size[0], said->size[1]},
                .bytes = {said->bytes[0], said->bytes[1]},
                .steps = said->steps,
                .step_count = said->step_count,
        };

        if (said->bytes[0].n + said->bytes[1].n + said->step_count == 0 ||
            core_request_get(s->core, r->request, &request) != 0)
                return;
        t.owner = request.owner;
        tails_put(s, &t);
}

static void on_result(struct server *s, struct command *c, struct agent *a)
{
        bool checkpoint = c->kind == COMMAND_CHECKPOINT;
        struct message *m = message_new(c->session, checkpoint ? DROVER__TO_AGENT__KIND_CHECKPOINT_ACK
                                                               : DROVER__TO_AGENT__KIND_RESULT_ACK);
        Drover__ResultAck *ack = message_alloc(m, sizeof(*ack));
        BUF_CLEANUP struct buf outputs = {0};

        drover__result_ack__init(ack);
        ack->attempts = message_alloc(m, (c->results.count + 1) * sizeof(*ack->attempts));
        for (size_t i = 0; i < c->results.count; i++) {
                struct core_result *r = &c->results.items[i];
                struct set one = {0};

                if (core_has_attempt(s->core, a->name, r->request, r->member, r->fence)) {
                        if (r->outputs.n)
                                objects_take_outputs(s, r, &outputs);
                        if (checkpoint) {
                                core_checkpoint(s->core, a->name, r);
                        } else {
                                keep_tails(s, a, r, &c->results.tails[i]);
                                metrics_result(s->metrics, s->core, r);
                                registrations_take(s, r, &c->results.sent[i]);
                                core_result(s->core, a->name, r);
                        }
                }
                set_add(&one, r->member);
                ack->attempts[ack->n_attempts++] =
                        message_attempts(m, c->results.items[i].request, c->results.items[i].fence, &one);
                set_deinit(&one);
        }
        if (checkpoint)
                m->to_agent.checkpoint_ack = ack;
        else
                m->to_agent.result_ack = ack;
        message_send(s, m, TURN_DURABLE);
}

struct stale {
        struct message *m;
        Drover__Attempts **list;
        size_t count, cap;
};

static void on_stale(void *arg, uint64_t request, uint32_t fence, const struct set *members)
{
        struct stale *x = arg;

        MEM_GROW(x->list, x->cap, x->count + 1);
        x->list[x->count++] = message_attempts(x->m, request, fence, members);
}

static void on_inventory(struct server *s, struct command *c, struct agent *a)
{
        struct stale x = {.m = message_new(c->session, DROVER__TO_AGENT__KIND_INVENTORY_REPLY)};
        Drover__InventoryReply *reply = message_alloc(x.m, sizeof(*reply));

        core_inventory(s->core, a->name, c->attempts, c->attempt_count, on_stale, &x);
        drover__inventory_reply__init(reply);
        reply->n_kill = x.count;
        reply->kill = message_alloc(x.m, (x.count + 1) * sizeof(*reply->kill));
        if (x.count)
                memcpy(reply->kill, x.list, x.count * sizeof(*x.list));
        free(x.list);
        x.m->to_agent.inventory_reply = reply;
        message_send(s, x.m, TURN_DURABLE);
}

static void on_gone(struct server *s, struct command *c, struct agent *a)
{
        streams_agent_gone(s, a->name);
        chirps_agent_gone(s, a->name);
        agents_gone(s, str_of(a->name), c->session);
}

static void on_withdraw(struct server *s, struct command *c, struct agent *a)
{
        core_withdraw(s->core, a->name, c->withdraw.p);
}

static void on_accept(struct server *s, struct command *c, struct agent *a)
{
        for (size_t i = 0; i < c->attempt_count; i++)
                core_accepted(s->core, a->name, &c->attempts[i]);
}

static void on_refuse(struct server *s, struct command *c, struct agent *a)
{
        for (size_t i = 0; i < c->attempt_count; i++)
                core_refused(s->core, a->name, &c->attempts[i], c->refuse.reason,
                             c->refuse.hold ? CORE_HOLD_NOT_STARTED : 0);
}

static void on_started(struct server *s, struct command *c, struct agent *a)
{
        for (size_t i = 0; i < c->attempt_count; i++)
                core_started(s->core, a->name, &c->attempts[i], c->started_ms);
}

/* The I/O thread has acknowledged the renewal. */
static void on_renew(struct server *s, struct command *c, struct agent *a)
{
        (void)c;
        core_renew(s->core, a->name);
}

static void on_cache_delta(struct server *s, struct command *c, struct agent *a)
{
        const struct command_cache_delta *d = &c->cache_delta;

        core_cache_delta(s->core, a->name, d->added, d->added_count, d->gone, d->gone_count, d->full);
}

static void on_links(struct server *s, struct command *c, struct agent *a)
{
        core_links(s->core, a->name, c->links.items, c->links.count);
}

static void on_locations(struct server *s, struct command *c, struct agent *a)
{
        for (size_t i = 0; i < c->locations.count; i++)
                attempt_location_take(s, str_of(a->name), &c->locations.items[i]);
}

static void on_user_log_written(struct server *s, struct command *c, struct agent *a)
{
        userlog_written(s, a, &c->log_written);
}

command_fn *const command_handlers[COMMAND_KINDS] = {
        [COMMAND_JOIN] = on_join,
        [COMMAND_HELLO] = on_hello,
        [COMMAND_GONE] = on_gone,
        [COMMAND_OFFER] = on_offer,
        [COMMAND_WITHDRAW] = on_withdraw,
        [COMMAND_ACCEPT] = on_accept,
        [COMMAND_REFUSE] = on_refuse,
        [COMMAND_STARTED] = on_started,
        [COMMAND_RESULT] = on_result,
        [COMMAND_RENEW] = on_renew,
        [COMMAND_INVENTORY] = on_inventory,
        [COMMAND_SPOOL_READ] = objects_read,
        [COMMAND_SPOOL_WRITE] = objects_write,
        [COMMAND_USER_LOG_WRITTEN] = on_user_log_written,
        [COMMAND_CACHE_DELTA] = on_cache_delta,
        [COMMAND_LINKS] = on_links,
        [COMMAND_LOCATIONS] = on_locations,
        [COMMAND_CREDENTIAL_GET] = grants_get,
        [COMMAND_CHECKPOINT] = on_result,
        [COMMAND_SCRIPT_TEXT] = scripts_answer,
        [COMMAND_STREAMS] = streams_answer,
        [COMMAND_CHIRP] = chirps_ask,
        [COMMAND_FILE_REPLY] = chirps_answer,
};
