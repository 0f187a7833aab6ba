/* POST /v1/agents/NAME/wish: which jobs an agent prefers, until the agent ends. The agent repeats the wish
 * in each offer, so the server stores nothing. */
#include "server/agents/agents.h"
#include "server/agents/message.h"
#include "server/api/routes.h"

struct wish {
        json_t *doc;
        struct str queue;
        Drover__Wish wishes[CORE_WISHES_MAX];
        size_t count;
};

static void agent_wish_state_free(void *arg)
{
        json_decref(((struct wish *)arg)->doc);
        free(arg);
}

static void reply_wish(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void send_wish(struct server *s, const struct wish *x, uint64_t session)
{
        struct message *m = message_new(session, DROVER__TO_AGENT__KIND_WISHES);
        Drover__Wishes *w = message_alloc(m, sizeof(*w));

        drover__wishes__init(w);
        w->queue = message_text(m, x->queue);
        w->wishes = message_alloc(m, sizeof(x->wishes));
        memcpy(w->wishes, x->wishes, sizeof(x->wishes));
        w->n_wishes = x->count;
        m->to_agent.wishes = w;
        message_send(s, m, TURN_NOW);
}

static void set_wish(struct server *s, struct call *c)
{
        const struct wish *x = c->state;
        const struct agent *a = agents_find(s, c->param[0]);
        struct json j = {.out = &c->out};

        if (!a || !a->session) {
                call_fail(c, a ? 409 : 404, a ? "conflict" : "not_found",
                          a ? "agent " STR_FMT " is not connected" : "there is no agent " STR_FMT,
                          STR_ARG(c->param[0]));
                return;
        }
        send_wish(s, x, a->session);
        json_open(&j, '{');
        json_kstr(&j, "name", c->param[0]);
        json_kint(&j, "wishes", (int64_t)x->count);
        json_close(&j, '}');
        call_io(c, reply_wish);
}

/* Returns false if a word is not a wish, or there are too many. */
static bool read_wishes(struct wish *x)
{
        static const struct {
                const char *word;
                Drover__Wish wish;
        } words[] = {{"small-input", DROVER__WISH__WISH_SMALL_INPUT},
                     {"short-run", DROVER__WISH__WISH_SHORT_RUN},
                     {"large-memory", DROVER__WISH__WISH_LARGE_MEMORY}};
        const json_t *all = json_object_get(x->doc, "wishes"), *item;
        size_t i;

        json_array_foreach (all, i, item) {
                size_t k = 0, most = sizeof(words) / sizeof(words[0]);

                while (k < most &&
                       !(json_is_string(item) && strcmp(json_string_value(item), words[k].word) == 0))
                        k++;
                if (k == most || x->count == CORE_WISHES_MAX)
                        return false;
                x->wishes[x->count++] = words[k].wish;
        }
        return json_is_array(all);
}

void api_agent_wish(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);
        struct wish *x;

        (void)s;
        if (!doc)
                return;
        x = call_state(c, sizeof(*x), agent_wish_state_free);
        x->doc = doc;
        x->queue = call_json_text(x->doc, "queue");
        if (c->role == ROLE_USER)
                call_fail(c, 403, "forbidden", "only an operator or an admin says what agents wish for");
        else if (!read_wishes(x))
                call_fail(c, 400, "bad_request",
                          "wishes is a list of up to %d of small-input, short-run and large-memory, the "
                          "weightier "
                          "first",
                          CORE_WISHES_MAX);
        else
                call_core(c, set_wish);
}
