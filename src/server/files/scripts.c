#include "server/files/scripts.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/share.h"
#include "server/agents/agents.h"
#include "server/agents/message.h"
#include "server/calls/waits.h"

#define ASKED_MAX 1000

struct question {
        uint64_t request;
        char *agent, *who;
        bool answered;
        struct buf text, error;
};
struct scripts {
        struct idmap *questions;
        struct share *share; /* limits open questions by caller */
        uint64_t last;
};

struct scripts *scripts_new(void)
{
        struct scripts *x = mem_new(struct scripts);

        x->questions = idmap_new();
        x->share = share_new(ASKED_MAX);
        return x;
}

static void scripts_question_free(struct scripts *x, struct question *q)
{
        if (!q)
                return;
        share_give(x->share, str_of(q->who));
        free(q->agent);
        free(q->who);
        buf_deinit(&q->text);
        buf_deinit(&q->error);
        free(q);
}

void scripts_free(struct scripts *x)
{
        size_t at = 0;
        void *v;

        if (!x)
                return;
        while (idmap_next(x->questions, &at, NULL, &v))
                scripts_question_free(x, v);
        idmap_free(x->questions);
        share_free(x->share);
        free(x);
}

uint64_t scripts_ask(struct server *s, const char *who, const char *agent, uint64_t request, uint32_t member,
                     uint32_t fence)
{
        struct scripts *x = s->scripts;
        const struct agent *a = agents_find(s, str_of(agent));
        Drover__ScriptGet *get;
        struct question *q;
        struct message *m;

        if (!a || !a->session || !share_take(x->share, str_of(who)))
                return 0;
        q = mem_new(struct question);
        q->request = request;
        q->agent = mem_dupz(agent);
        q->who = mem_dupz(who);
        idmap_put(x->questions, ++x->last, q);
        m = message_new(a->session, DROVER__TO_AGENT__KIND_SCRIPT_GET);
        get = message_alloc(m, sizeof(*get));
        drover__script_get__init(get);
        get->serial = x->last;
        get->request = request;
        get->member = member;
        get->fence = fence;
        m->to_agent.script_get = get;
        message_send(s, m, TURN_NOW);
        return x->last;
}

void scripts_answer(struct server *s, struct command *c, struct agent *a)
{
        struct question *q = idmap_get(s->scripts->questions, c->script.serial);

        if (!q || q->answered || strcmp(a->name, q->agent) != 0)
                return;
        q->answered = true;
        buf_str(&q->text, c->script.text);
        buf_str(&q->error, c->script.error);
        waits_changed(s, q->request);
}

bool scripts_take(struct server *s, uint64_t number, struct buf *text, struct buf *error)
{
        struct question *q = idmap_get(s->scripts->questions, number);

        if (!q || !q->answered)
                return false;
        buf_str(text, buf_view(&q->text));
        buf_str(error, buf_view(&q->error));
        scripts_forget(s, number);
        return true;
}

void scripts_forget(struct server *s, uint64_t number)
{
        scripts_question_free(s->scripts, idmap_take(s->scripts->questions, number));
}
