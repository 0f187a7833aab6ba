#include "server/files/launches.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/agents/agents.h"
#include "server/agents/message.h"
#include "server/files/streams.h"

#define WAIT_MS   20000  /* for output, at the other agent; an agent waits longer for our answer */
#define LATE_MS   120000 /* who asked has given up before */
#define WORDS_MAX 10000u

struct launch {
        char *agent; /* that asked */
        uint64_t session, serial, command;
        int64_t asked_ms; /* boot clock */
        bool starts;      /* LAUNCH: the answer is the command's number */
};
struct launches {
        struct idmap *questions; /* by the numbers of streams.h */
};

struct launches *launches_new(void)
{
        struct launches *x = mem_new(struct launches);

        x->questions = idmap_new();
        return x;
}

static void launch_free(struct launch *l)
{
        free(l->agent);
        free(l);
}

void launches_free(struct launches *x)
{
        size_t at = 0;
        void *v;

        if (!x)
                return;
        while (idmap_next(x->questions, &at, NULL, &v))
                launch_free(v);
        idmap_free(x->questions);
        free(x);
}

/* ---- answers */

static Drover__ChirpReply *launches_reply_new(uint64_t session, uint64_t serial, struct message **ret)
{
        struct message *m = *ret = message_new(session, DROVER__TO_AGENT__KIND_CHIRP_REPLY);
        Drover__ChirpReply *r = m->to_agent.chirp_reply = message_alloc(m, sizeof(*r));

        drover__chirp_reply__init(r);
        r->serial = serial;
        return r;
}

static void launches_refuse(struct server *s, uint64_t session, uint64_t serial, int error, const char *why)
{
        struct message *m;
        Drover__ChirpReply *r = launches_reply_new(session, serial, &m);

        r->error = (uint32_t)error;
        r->text = message_text(m, str_of(why));
        message_send(s, m, TURN_NOW);
}

static void copy_bytes(struct message *m, ProtobufCBinaryData *to, const struct buf *from)
{
        to->data = (uint8_t *)arena_dup(&m->arena, from->p, from->n);
        to->len = from->n;
}

static void pass_on(struct server *s, const struct launch *l, const struct streams_chunk *said)
{
        struct message *m;
        Drover__ChirpReply *r = launches_reply_new(l->session, l->serial, &m);

        if (l->starts) {
                r->command = l->command;
        } else {
                copy_bytes(m, &r->data, &said->bytes[0]);
                copy_bytes(m, &r->stderr_bytes, &said->bytes[1]);
                r->over = said->over;
                r->signaled = said->signaled;
                r->exit_code = said->exit_code;
        }
        message_send(s, m, TURN_NOW);
}

static void launches_answered(struct server *s, uint64_t number)
{
        struct launch *l = idmap_take(s->launches->questions, number);
        struct streams_chunk said = {0};

        if (!l)
                return;
        streams_take(s, number, &said);
        if (said.unknown && said.away)
                launches_refuse(s, l->session, l->serial, l->starts ? ECONNABORTED : EAGAIN,
                                "the node's agent has gone away");
        else if (said.unknown)
                launches_refuse(s, l->session, l->serial, ESRCH,
                                "the node's agent does not know this program");
        else if (said.error.n)
                launches_refuse(s, l->session, l->serial, ENOEXEC, buf_z(&said.error));
        else
                pass_on(s, l, &said);
        streams_chunk_deinit(&said);
        launch_free(l);
}

/* Questions that an agent does not answer take the place of others. Returns whether there were any. */
static bool launches_drop_late(struct server *s)
{
        int64_t now = clock_boot_ms();
        uint64_t number;
        bool any = false;
        size_t at = 0;
        void *v;

        while (idmap_next(s->launches->questions, &at, &number, &v)) {
                if (now - ((const struct launch *)v)->asked_ms < LATE_MS)
                        continue;
                streams_drop(s, number);
                launch_free(idmap_take(s->launches->questions, number));
                any = true;
                at = 0;
        }
        return any;
}

void launches_agent_gone(struct server *s, const char *agent)
{
        size_t at = 0;
        uint64_t number;
        void *v;

        while (idmap_next(s->launches->questions, &at, &number, &v)) {
                if (strcmp(agent, ((const struct launch *)v)->agent) != 0)
                        continue;
                streams_drop(s, number);
                launch_free(idmap_take(s->launches->questions, number));
                at = 0;
        }
}

/* ---- calls */

/* Splits text in which each word is ended by NUL. *ret is the caller's. Returns the number of words; 0: it is
 * no such text. */
static size_t read_words(struct str text, struct str **ret)
{
        size_t n = 0, most = 0;
        struct str word;

        for (size_t i = 0; i < text.n; i++)
                most += !text.p[i];
        if (most == 0 || most > WORDS_MAX || text.p[text.n - 1])
                return 0;
        *ret = mem_array(NULL, most, sizeof(**ret));
        while (n < most && str_cut(&text, '\0', &word))
                (*ret)[n++] = word;
        return n;
}

static uint64_t ask_agent(struct server *s, const struct command_chirp *x, struct streams_question *q,
                          const char *who, struct launch *l)
{
        struct streams_command run = {.stays = true};
        MEM_CLEANUP struct str *words = NULL;

        q->answered = launches_answered;
        if (!l->starts) {
                q->exec = x->command;
                q->offset[0] = x->offset;
                q->offset[1] = x->stderr_offset;
                q->wanted[0] = q->wanted[1] = true;
                q->wait_ms = WAIT_MS;
                return streams_ask(s, who, q);
        }
        run.count = read_words(x->data, &words);
        run.words = words;
        return streams_exec(s, who, q, &run, &l->command);
}

static void ask(struct server *s, const struct command *c, const struct agent *a, struct streams_question *q)
{
        struct launch *l = mem_new(struct launch);
        struct core_request r;
        uint64_t number = 0;

        l->agent = mem_dupz(a->name);
        l->session = c->session;
        l->serial = c->chirp.serial;
        l->asked_ms = clock_boot_ms();
        l->starts = c->chirp.op == DROVER__CHIRP_OP__CHIRP_LAUNCH;
        if (core_request_get(s->core, q->request, &r) == 0) {
                MEM_CLEANUP char *who = str_dupz(r.owner);

                number = ask_agent(s, &c->chirp, q, who, l);
                if (!number && launches_drop_late(s))
                        number = ask_agent(s, &c->chirp, q, who, l);
        }
        if (number) {
                idmap_put(s->launches->questions, number, l);
                return;
        }
        launches_refuse(s, l->session, l->serial, EAGAIN,
                        "the node's agent is not connected, or too much is asked of agents");
        launch_free(l);
}

void launches_ask(struct server *s, const struct command *c, const struct agent *a)
{
        const struct command_chirp *x = &c->chirp;
        const struct core_attempt at = {x->request, x->member, x->fence};
        struct streams_question q = {0};
        struct core_attempt node;
        struct err err = {""};
        int r = core_launch_node(s->core, a->name, &at, x->node, &node, &q.agent, &err);

        if (!x->serial)
                return;
        if (r == 0 && x->op == DROVER__CHIRP_OP__CHIRP_LAUNCH && (x->data.n == 0 || x->data.p[x->data.n - 1]))
                r = err_set(&err, CORE_INVALID, "there is no command: each of its words is ended by NUL");
        if (r == 0 && x->op == DROVER__CHIRP_OP__CHIRP_LAUNCHED && !streams_exec_stays(x->command))
                r = err_set(&err, CORE_INVALID, "that is no number of a program that a node has started");
        if (r) {
                launches_refuse(s, c->session, x->serial,
                                r == CORE_UNKNOWN     ? EBUSY
                                : r == CORE_FORBIDDEN ? EPERM
                                                      : EINVAL,
                                err.text);
                return;
        }
        if (x->op == DROVER__CHIRP_OP__CHIRP_LAUNCH)
                log_info("msg=\"a node of a job starts a program on another\" job=%llu.%u node=%u "
                         "agent=\"%s\"",
                         (unsigned long long)x->request, x->member, x->node, q.agent);
        q.request = node.request;
        q.member = node.member;
        q.fence = node.fence;
        ask(s, c, a, &q);
}
