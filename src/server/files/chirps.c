#include "server/files/chirps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/share.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "server/agents/agents.h"
#include "server/agents/message.h"
#include "server/files/launches.h"
#include "server/loop/allowance.h"

#define ASKED_MAX 2000
/* Time of the core's thread that calls of one owner's jobs take: at once, and in each second. A call takes
 * some 20 µs, but one that asks for an attribute of megabytes takes a thousand times as long. */
#define BURST_NS 200000000
#define PER_S_NS 100000000
/* an agent that has not answered after this time will not answer; the caller has given up earlier */
#define LATE_MS 120000

struct question { /* a call about a file, sent to an agent */
        char *agent, *asker, *owner;
        uint64_t session, serial; /* of the caller */
        int64_t asked_ms;         /* boot clock */
};
struct chirps {
        struct idmap *questions;
        struct share *share; /* limits open questions by owner */
        struct allowances *time;
        uint64_t last;
};

struct chirps *chirps_new(void)
{
        struct chirps *x = mem_new(struct chirps);

        x->questions = idmap_new();
        x->share = share_new(ASKED_MAX);
        x->time = allowances_new(BURST_NS, PER_S_NS);
        return x;
}

static void chirps_question_free(struct chirps *x, struct question *q)
{
        if (!q)
                return;
        share_give(x->share, str_of(q->owner));
        free(q->agent);
        free(q->asker);
        free(q->owner);
        free(q);
}

void chirps_free(struct chirps *x)
{
        size_t at = 0;
        void *v;

        if (!x)
                return;
        while (idmap_next(x->questions, &at, NULL, &v))
                chirps_question_free(x, v);
        idmap_free(x->questions);
        share_free(x->share);
        allowances_free(x->time);
        free(x);
}

/* ---- answers */

static struct message *chirps_reply_new(uint64_t session, uint64_t serial, Drover__ChirpReply **ret)
{
        struct message *m = message_new(session, DROVER__TO_AGENT__KIND_CHIRP_REPLY);
        Drover__ChirpReply *r = m->to_agent.chirp_reply = message_alloc(m, sizeof(*r));

        drover__chirp_reply__init(r);
        r->serial = serial;
        *ret = r;
        return m;
}

static void chirps_refuse(struct server *s, uint64_t session, uint64_t serial, int error, const char *why)
{
        Drover__ChirpReply *r;
        struct message *m;

        if (!serial)
                return;
        m = chirps_reply_new(session, serial, &r);
        r->error = (uint32_t)error;
        r->text = message_text(m, str_of(why));
        message_send(s, m, TURN_NOW);
}

static void accept(struct server *s, uint64_t session, uint64_t serial, struct str data, enum turn_when when)
{
        Drover__ChirpReply *r;
        struct message *m;

        if (!serial)
                return;
        m = chirps_reply_new(session, serial, &r);
        r->data.data = (uint8_t *)arena_dup(&m->arena, data.p, data.n);
        r->data.len = data.n;
        message_send(s, m, when);
}

static int errno_of(int r)
{
        switch (r) {
        case CORE_UNKNOWN: return ESTALE;
        case CORE_FORBIDDEN: return EPERM;
        case CORE_TOO_MANY: return EDQUOT;
        default: return EINVAL;
        }
}

/* ---- files */

/* Finds an agent that sees the folder and runs this owner's jobs; the asking agent if it does. */
static struct agent *find_agent(struct server *s, struct agent *asker, struct str domain, struct str owner)
{
        struct agent *a, *found = NULL;
        size_t at = 0;

        if (domain.n == 0)
                return NULL;
        while (agents_next(s, &at, &a)) {
                if (!a->session || !str_eqz(domain, a->filesystem_domain) ||
                    !core_agent_serves(s->core, a->name, owner))
                        continue;
                if (!found || a == asker)
                        found = a;
        }
        return found;
}

/* Drops questions that were not answered in time, because they hold places that other callers need. */
static void chirps_drop_late(struct chirps *x)
{
        int64_t now = clock_boot_ms();
        size_t at = 0;
        uint64_t number;
        void *v;

        while (idmap_next(x->questions, &at, &number, &v)) {
                const struct question *q = v;

                if (now - q->asked_ms < LATE_MS)
                        continue;
                chirps_question_free(x, idmap_take(x->questions, number));
                at = 0;
        }
}

static uint64_t question_put(struct chirps *x, const struct agent *a, const struct command *c,
                             struct str owner)
{
        struct question *q;

        if (!share_take(x->share, owner)) {
                chirps_drop_late(x);
                if (!share_take(x->share, owner))
                        return 0;
        }
        q = mem_new(struct question);
        q->agent = mem_dupz(a->name);
        q->asker = str_dupz(c->agent);
        q->owner = str_dupz(owner);
        q->session = c->session;
        q->serial = c->chirp.serial;
        q->asked_ms = clock_boot_ms();
        idmap_put(x->questions, ++x->last, q);
        return x->last;
}

static void send_file_call(struct server *s, const struct agent *a, uint64_t number, struct str owner,
                           struct str folder, const struct command_chirp *c)
{
        struct message *m = message_new(a->session, DROVER__TO_AGENT__KIND_FILE_CALL);
        Drover__FileCall *f = m->to_agent.file_call = message_alloc(m, sizeof(*f));
        Drover__Chirp *call = f->call = message_alloc(m, sizeof(*call));

        drover__file_call__init(f);
        drover__chirp__init(call);
        f->call = call;
        f->serial = number;
        f->owner = message_text(m, owner);
        f->folder = message_text(m, folder);
        call->op = (Drover__ChirpOp)c->op;
        call->name = message_text(m, c->name);
        call->data.data = (uint8_t *)arena_dup(&m->arena, c->data.p, c->data.n);
        call->data.len = c->data.n;
        call->offset = c->offset;
        call->length = c->length;
        call->flags = c->flags;
        call->mode = c->mode;
        message_send(s, m, TURN_READ);
}

static void ask_file(struct server *s, struct command *c, struct agent *a, const struct core_attempt *at)
{
        BUF_CLEANUP struct buf folder = {.max = 4096}, domain = {.max = 1024};
        struct symbols *names = core_symbols(s->core);
        struct core_request r;
        struct agent *has;
        struct err err = {""};
        uint64_t number;
        int rc = core_chirp_check(s->core, a->name, at, &err);

        if (rc || core_request_get(s->core, at->request, &r) != 0) {
                chirps_refuse(s, c->session, c->chirp.serial, errno_of(rc), err.text);
                return;
        }
        core_member_text(s->core, at->request, at->member, symbols_intern(names, STR("Iwd")), &folder);
        if (core_member_text(s->core, at->request, at->member, symbols_intern(names, STR("FileSystemDomain")),
                             &domain) != 0)
                core_member_text(s->core, at->request, at->member,
                                 symbols_intern(names, STR("UserLogDomain")),
                                 &domain); /* of a job whose files are transferred */
        has = folder.n && folder.p[0] == '/' ? find_agent(s, a, buf_view(&domain), r.owner) : NULL;
        number = has ? question_put(s->chirps, has, c, r.owner) : 0;
        if (!has)
                chirps_refuse(s, c->session, c->chirp.serial, EHOSTUNREACH,
                              "no connected agent sees the folder of the submit and runs its owner's jobs");
        else if (!number)
                chirps_refuse(s, c->session, c->chirp.serial, EAGAIN, "too many files are asked for");
        else
                send_file_call(s, has, number, r.owner, buf_view(&folder), &c->chirp);
}

void chirps_answer(struct server *s, struct command *c, struct agent *a)
{
        const struct command_chirp_reply *said = &c->chirp_reply;
        struct question *q = idmap_get(s->chirps->questions, said->serial);
        Drover__ChirpReply *r;
        struct message *m;

        if (!q || strcmp(a->name, q->agent) != 0)
                return;
        if (q->serial) {
                m = chirps_reply_new(q->session, q->serial, &r);
                r->data.data = (uint8_t *)arena_dup(&m->arena, said->data.p, said->data.n);
                r->data.len = said->data.n;
                r->size = said->size;
                r->mode = said->mode;
                r->changed = said->changed;
                r->error = said->error;
                r->text = message_text(m, said->text);
                message_send(s, m, TURN_NOW);
        }
        chirps_question_free(s->chirps, idmap_take(s->chirps->questions, said->serial));
}

void chirps_agent_gone(struct server *s, const char *agent)
{
        size_t at = 0;
        uint64_t number;
        void *v;

        launches_agent_gone(s, agent);
        while (idmap_next(s->chirps->questions, &at, &number, &v)) {
                const struct question *q = v;

                if (strcmp(agent, q->agent) != 0 && strcmp(agent, q->asker) != 0)
                        continue;
                if (strcmp(agent, q->asker) != 0)
                        chirps_refuse(s, q->session, q->serial, EAGAIN,
                                      "the agent that sees the file has gone away");
                chirps_question_free(s->chirps, idmap_take(s->chirps->questions, number));
                at = 0;
        }
}

/* ---- calls */

static void chirp_do(struct server *s, struct command *c, struct agent *a)
{
        const struct command_chirp *x = &c->chirp;
        const struct core_attempt at = {x->request, x->member, x->fence};
        BUF_CLEANUP struct buf text = {0};
        struct err err = {""};
        bool kept = x->op == DROVER__CHIRP_OP__CHIRP_SET_ATTRIBUTE || x->op == DROVER__CHIRP_OP__CHIRP_LOG;
        int r;

        if (x->op >= DROVER__CHIRP_OP__CHIRP_READ) {
                ask_file(s, c, a, &at);
                return;
        }
        if (x->op >= DROVER__CHIRP_OP__CHIRP_LAUNCH) {
                launches_ask(s, c, a);
                return;
        }
        if (kept && turn_full(s->turn)) {
                chirps_refuse(s, c->session, x->serial, EAGAIN, "the server's disk is full");
                return;
        }
        switch (x->op) {
        case DROVER__CHIRP_OP__CHIRP_GET_ATTRIBUTE:
                r = core_chirp_get(s->core, a->name, &at, x->name, &text, &err);
                break;
        case DROVER__CHIRP_OP__CHIRP_SET_ATTRIBUTE:
                r = core_chirp_set(s->core, a->name, &at, x->name, x->data, &err);
                break;
        case DROVER__CHIRP_OP__CHIRP_LOG: r = core_chirp_remark(s->core, a->name, &at, x->data, &err); break;
        default: r = err_set(&err, CORE_INVALID, "there is no such operation"); break;
        }
        if (r)
                chirps_refuse(s, c->session, x->serial, errno_of(r), err.text);
        else
                accept(s, c->session, x->serial, buf_view(&text), kept ? TURN_DURABLE : TURN_READ);
}

void chirps_ask(struct server *s, struct command *c, struct agent *a)
{
        struct allowances *time = s->chirps->time;
        int64_t began_ns = clock_thread_ns();
        struct core_request r;

        if (core_request_get(s->core, c->chirp.request, &r) != 0) {
                chirp_do(s, c, a);
                return;
        }
        BUF_CLEANUP struct buf owner = {0};
        buf_str(&owner, r.owner);
        if (!allowance_left(time, buf_view(&owner), clock_boot_ms())) {
                chirps_refuse(s, c->session, c->chirp.serial, EAGAIN,
                              "the calls of your jobs take more of the server's time than they may");
                return;
        }
        chirp_do(s, c, a);
        allowance_spend(time, buf_view(&owner), clock_thread_ns() - began_ns);
}
