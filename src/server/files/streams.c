#include "server/files/streams.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/share.h"
#include "base/system/clock.h"
#include "server/agents/agents.h"
#include "server/agents/message.h"
#include "server/calls/waits.h"

#define ASKED_MAX 2000

struct question {
        struct streams_question asked;
        char *agent, *who;
        bool answered;
        struct streams_chunk chunk;
};
struct streams {
        struct idmap *questions;
        struct share *share; /* limits open questions by caller */
        uint64_t last;
};

struct streams *streams_new(void)
{
        struct streams *x = mem_new(struct streams);

        x->questions = idmap_new();
        x->share = share_new(ASKED_MAX);
        return x;
}

static void streams_question_free(struct streams *x, struct question *q)
{
        if (!q)
                return;
        share_give(x->share, str_of(q->who));
        free(q->agent);
        free(q->who);
        streams_chunk_deinit(&q->chunk);
        free(q);
}

void streams_chunk_deinit(struct streams_chunk *c)
{
        buf_deinit(&c->bytes[0]);
        buf_deinit(&c->bytes[1]);
        buf_deinit(&c->error);
}

void streams_free(struct streams *x)
{
        size_t at = 0;
        void *v;

        if (!x)
                return;
        while (idmap_next(x->questions, &at, NULL, &v))
                streams_question_free(x, v);
        idmap_free(x->questions);
        share_free(x->share);
        free(x);
}

/* Returns NULL if the agent is not connected or too many questions are open. */
static struct question *question_new(struct server *s, const char *who, const struct streams_question *asked,
                                     uint64_t *ret_session)
{
        struct streams *x = s->streams;
        const struct agent *a = agents_find(s, str_of(asked->agent));
        struct question *q;

        if (!a || !a->session || !share_take(x->share, str_of(who)))
                return NULL;
        q = mem_new(struct question);
        q->asked = *asked;
        q->agent = mem_dupz(asked->agent);
        q->who = mem_dupz(who);
        q->asked.agent = q->agent;
        idmap_put(x->questions, ++x->last, q);
        *ret_session = a->session;
        return q;
}

uint64_t streams_ask(struct server *s, const char *who, const struct streams_question *asked)
{
        uint64_t session;
        struct message *m;
        Drover__StreamsGet *get;

        if (!question_new(s, who, asked, &session))
                return 0;
        m = message_new(session, DROVER__TO_AGENT__KIND_STREAMS_GET);
        get = message_alloc(m, sizeof(*get));
        drover__streams_get__init(get);
        get->serial = s->streams->last;
        get->request = asked->request;
        get->member = asked->member;
        get->fence = asked->fence;
        get->stdout_offset = asked->offset[0];
        get->stderr_offset = asked->offset[1];
        get->stdout_wanted = asked->wanted[0];
        get->stderr_wanted = asked->wanted[1];
        get->last = asked->last;
        get->wait_ms = asked->wait_ms > 0 ? (uint64_t)asked->wait_ms : 0;
        get->most = STREAMS_CHUNK;
        get->exec = asked->exec;
        m->to_agent.streams_get = get;
        message_send(s, m, TURN_READ); /* after the assignment */
        return get->serial;
}

/* Returns a number below 2^53, which all JSON readers represent exactly, and which no earlier run of the
 * server has used. The last bit tells commands that stay from others, also after a restart. */
static uint64_t exec_number(const struct streams *x, bool stays)
{
        return ((uint64_t)clock_wall_ms() << 12 | (x->last << 1 & 0xffe) | stays) & ((1ull << 53) - 1);
}

bool streams_exec_stays(uint64_t exec)
{
        return exec & 1;
}

uint64_t streams_exec(struct server *s, const char *who, const struct streams_question *asked,
                      const struct streams_command *x, uint64_t *ret_exec)
{
        uint64_t session;
        struct message *m;
        Drover__Exec *exec;

        if (!question_new(s, who, asked, &session))
                return 0;
        m = message_new(session, DROVER__TO_AGENT__KIND_EXEC);
        exec = message_alloc(m, sizeof(*exec));
        drover__exec__init(exec);
        exec->serial = s->streams->last;
        exec->request = asked->request;
        exec->member = asked->member;
        exec->fence = asked->fence;
        exec->exec = *ret_exec = exec_number(s->streams, x->stays);
        exec->argv = message_alloc(m, (x->count + 1) * sizeof(*exec->argv));
        for (; exec->n_argv < x->count; exec->n_argv++)
                exec->argv[exec->n_argv] = message_text(m, x->words[exec->n_argv]);
        exec->input = x->input;
        exec->terminal = x->terminal;
        exec->rows = x->rows;
        exec->columns = x->columns;
        exec->term = message_text(m, x->term);
        exec->stays = x->stays;
        m->to_agent.exec = exec;
        message_send(s, m, TURN_READ);
        return exec->serial;
}

uint64_t streams_input(struct server *s, const char *who, const struct streams_question *asked,
                       const struct streams_input *x)
{
        uint64_t session;
        struct message *m;
        Drover__ExecInput *input;

        if (!question_new(s, who, asked, &session))
                return 0;
        m = message_new(session, DROVER__TO_AGENT__KIND_EXEC_INPUT);
        input = message_alloc(m, sizeof(*input));
        drover__exec_input__init(input);
        input->serial = s->streams->last;
        input->request = asked->request;
        input->member = asked->member;
        input->fence = asked->fence;
        input->exec = asked->exec;
        input->offset = x->offset;
        input->data.len = x->bytes.n;
        input->data.data = (uint8_t *)message_text(m, x->bytes);
        input->end = x->end;
        input->rows = x->rows;
        input->columns = x->columns;
        m->to_agent.exec_input = input;
        message_send(s, m, TURN_READ);
        return input->serial;
}

static void streams_answered(struct server *s, uint64_t number, struct question *q)
{
        q->answered = true;
        if (q->asked.answered)
                q->asked.answered(s, number);
        else
                waits_changed(s, STREAMS_WATCH(number));
}

#define WORDS_MAX 500 /* bytes of an agent's message */

/* Appends the text as one line without control characters. */
static void add_words(struct buf *out, struct str words)
{
        words = str_head(words, WORDS_MAX);
        for (size_t i = 0; i < words.n; i++) {
                unsigned char c = (unsigned char)words.p[i];

                bool control = c < ' ' || c == 0x7f ||
                               (c == 0xc2 && i + 1 < words.n && (unsigned char)words.p[i + 1] < 0xa0);

                buf_char(out, control ? '?' : words.p[i]);
                i += c == 0xc2 && control; /* an 8-bit control character */
        }
}

void streams_answer(struct server *s, struct command *c, struct agent *a)
{
        const struct command_streams *said = &c->streams;
        struct question *q = idmap_get(s->streams->questions, said->serial);

        if (!q || q->answered || strcmp(a->name, q->agent) != 0)
                return;
        for (int k = 0; k < 2; k++) {
                uint64_t least = q->asked.last ? 0 : q->asked.offset[k];

                q->chunk.offset[k] = said->offset[k] > least ? said->offset[k] : least;
                if (q->asked.wanted[k])
                        buf_str(&q->chunk.bytes[k], said->bytes[k]);
        }
        q->chunk.over = said->over;
        add_words(&q->chunk.error, said->error);
        q->chunk.signaled = said->signaled;
        q->chunk.exit_code = said->exit_code;
        q->chunk.input_next = said->input_next;
        q->chunk.cpu_ms = said->cpu_ms;
        q->chunk.memory_bytes = said->memory_bytes;
        q->chunk.unknown = said->unknown;
        streams_answered(s, said->serial, q);
}

void streams_agent_gone(struct server *s, const char *agent)
{
        size_t at = 0;
        uint64_t number;
        void *v;

        while (idmap_next(s->streams->questions, &at, &number, &v)) {
                struct question *q = v;

                if (q->answered || strcmp(agent, q->agent) != 0)
                        continue;
                q->chunk.unknown = q->chunk.away = true;
                bool taken = q->asked.answered; /* then it takes the question, and others move */
                streams_answered(s, number, q);
                at = taken ? 0 : at;
        }
}

bool streams_take(struct server *s, uint64_t number, struct streams_chunk *ret)
{
        struct question *q = idmap_get(s->streams->questions, number);

        if (!q || !q->answered)
                return false;
        for (int k = 0; k < 2; k++) {
                ret->offset[k] = q->chunk.offset[k];
                buf_str(&ret->bytes[k], buf_view(&q->chunk.bytes[k]));
        }
        ret->over = q->chunk.over;
        buf_str(&ret->error, buf_view(&q->chunk.error));
        ret->signaled = q->chunk.signaled;
        ret->exit_code = q->chunk.exit_code;
        ret->input_next = q->chunk.input_next;
        ret->cpu_ms = q->chunk.cpu_ms;
        ret->memory_bytes = q->chunk.memory_bytes;
        ret->unknown = q->chunk.unknown;
        ret->away = q->chunk.away;
        streams_drop(s, number);
        return true;
}

void streams_drop(struct server *s, uint64_t number)
{
        streams_question_free(s->streams, idmap_take(s->streams->questions, number));
}
