#include "core/lifecycle/nodes.h"

#include <stdio.h>

#include "base/mem.h"
#include "classad/print.h"
#include "core/core.h"
#include "core/events/apply.h"
#include "core/index/index.h"
#include "core/lifecycle/attempts.h"
#include "core/model/core_parts.h"
#include "core/model/pending_match.h"

#define LOOK_MS      1000  /* interval while some node drains or may be silent */
#define SLICE        1000u /* attempts stopped in one call */
#define FACTS_MAX    4096u
#define FACT_MAX     256u
#define WITHIN_MAX_S (30 * 86400)
#define NOTIFY_WHEN  "notify_when"
#define SAYS_MS      1000 /* least time between two events from an agent's statements about its machine */

static void emit_state(struct core *c, const struct core_agent *a, enum node_state to, const char *by,
                       struct str reason, int64_t deadline_ms, int32_t code)
{
        struct event e = {.type = EVENT_NODE,
                          .agent = str_of(a->name),
                          .who = str_of(by),
                          .next = to,
                          .reason = reason,
                          .code = code,
                          .value = deadline_ms};

        core_emit(c, &e, NULL);
}

/* Emits the move, which must be in the table of moves. */
static void set_state(struct core *c, struct core_agent *a, enum node_state to, const char *by,
                      struct str reason, int64_t deadline_ms)
{
        emit_state(c, a, to, by, reason, deadline_ms, 0);
        for (struct queue *q = a->queues; q; q = q->next) {
                index_queue_changed(c, q);
                if (!a->refuses && q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
        }
}

static void look_soon(struct core *c)
{
        c->nodes.look_ms = 0;
        c->nodes.draining = true; /* possibly; nodes_tick finds out */
}

/* ---- attempts at a node */

/* Stops attempts, which go back to the queue when the agent has stopped them. Returns whether there are
 * more. */
static bool vacate(struct core *c, struct core_agent *a, const char *why, unsigned *left)
{
        for (struct queue *q = a->queues; q; q = q->next)
                for (struct job *j = q->attempts, *after; j; j = after) {
                        after = j->next;
                        if (j->state == JOB_VACATING)
                                continue;
                        if (*left == 0)
                                return true;
                        --*left;
                        attempt_vacate(c, j, why);
                }
        return false;
}

/* Loses attempts without waiting for their leases, because an administrator says that nothing runs there.
 * Returns whether there are more. */
static bool lose_all(struct core *c, struct core_agent *a, unsigned *left)
{
        for (struct queue *q = a->queues; q; q = q->next)
                while (q->attempts) {
                        if (*left == 0)
                                return true;
                        --*left;
                        attempt_lose(c, q->attempts, STR("its node is down"), LOSS_BY_ORDER);
                }
        return false;
}

/* Marks the node as drained, with the orderer and reason of the drain. */
static void set_drained(struct core *c, struct core_agent *a)
{
        MEM_CLEANUP char *by = mem_dupz(a->node.by), *reason = mem_dupz(a->node.reason);

        set_state(c, a, NODE_DRAINED, by, str_of(reason), 0);
}

/* Carries out what the state requires of attempts. Returns whether there is more to do. */
static bool carry_out(struct core *c, struct core_agent *a, unsigned *left)
{
        const struct node_record *n = &a->node;

        switch (node_state_of(n)) {
        case NODE_DRAINING:
                if (agent_attempts(a) == 0)
                        set_drained(c, a);
                else if (n->deadline_ms && n->deadline_ms <= c->now_ms)
                        return vacate(c, a, "its node is drained, and the time for that is over", left);
                return false;
        case NODE_FAILED: return a->connected && vacate(c, a, "its node has failed", left);
        case NODE_RETIRED:
        case NODE_DOWN:
                return a->connected ? vacate(c, a, "its node is taken out of service", left)
                                    : a->gone && lose_all(c, a, left);
        default: return false;
        }
}

/* ---- orders */

int core_node_set(struct core *c, const struct core_node_order *o, struct err *err)
{
        struct core_agent *a = agent_find(c, o->agent);
        MEM_CLEANUP char *by = str_dupz(o->by);
        enum node_state from = a ? node_state_of(&a->node) : NODE_UP;
        unsigned left = SLICE;
        bool heard;

        if (!a && o->to != NODE_BOOTING)
                return err_set(err, CORE_UNKNOWN, "there is no agent %s known to this server", o->agent);
        heard = a != NULL;
        if (!a)
                a = agent_get(c, str_of(o->agent));
        if (o->to == NODE_UP && from == NODE_UP)
                return 0;
        if (!sm_may(&node_states, from, o->to) || (o->to == NODE_BOOTING && from == NODE_UP && heard))
                return err_set(err, CORE_INVALID, "%s is %s, and cannot become %s: resume it first", o->agent,
                               sm_state(&node_states, from), sm_state(&node_states, o->to));
        set_state(c, a, o->to, by, str_head(o->reason, CORE_NODE_REASON_MAX), o->deadline_ms);
        a->gone = !a->connected;
        carry_out(c, a, &left);
        look_soon(c);
        return 0;
}

static void say_instance(struct core *c, const char *agent, const struct node_instance *i)
{
        BUF_CLEANUP struct buf record = {0};
        struct event e = {.type = EVENT_NODE_INSTANCE, .agent = str_of(agent), .who = STR(NODE_BY_WISH)};

        node_instance_pack(&record, i);
        e.values = buf_view(&record);
        core_emit(c, &e, NULL);
}

int core_node_launch(struct core *c, const char *agent, const struct node_instance *i, struct err *err)
{
        struct core_agent *a = agent_find(c, agent);
        BUF_CLEANUP struct buf reason = {0};

        if (a && (node_state_of(&a->node) != NODE_RETIRED || a->connected || agent_attempts(a) > 0))
                return err_set(err, CORE_INVALID, "there is a node %s already, which is %s", agent,
                               sm_state(&node_states, node_state_of(&a->node)));
        a = agent_get(c, str_of(agent));
        buf_printf(&reason, "a " STR_FMT " of " STR_FMT " is started for it", STR_ARG(i->shape),
                   STR_ARG(i->provisioner));
        say_instance(c, a->name, i);
        set_state(c, a, NODE_BOOTING, NODE_BY_WISH, buf_view(&reason), 0);
        return 0;
}

int core_node_instance(struct core *c, const char *agent, const struct node_instance *i)
{
        struct core_agent *a = agent_find(c, agent);

        if (!a || !a->node.instance)
                return CORE_UNKNOWN;
        say_instance(c, a->name, i);
        return 0;
}

int64_t core_spent_micro(const struct core *c)
{
        return node_spending_of(&c->spending, c->now_ms);
}

void core_node_health(struct core *c, const char *agent, bool well, struct str reason)
{
        struct core_agent *a = agent_find(c, agent);
        bool own = a && a->node.by && strcmp(a->node.by, NODE_BY_NODE) == 0;
        unsigned left = SLICE;

        if (!a)
                return;
        if (well && node_state_of(&a->node) == NODE_FAILED && own)
                set_state(c, a, a->node.back, NODE_BY_NODE, STR("its health check passes again"),
                          a->node.deadline_ms);
        else if (!well && sm_may(&node_states, node_state_of(&a->node), NODE_FAILED) &&
                 (node_state_of(&a->node) != NODE_FAILED ||
                  (own && !str_eqz(str_head(reason, CORE_NODE_REASON_MAX), a->node.reason))))
                set_state(c, a, NODE_FAILED, NODE_BY_NODE, str_head(reason, CORE_NODE_REASON_MAX), 0);
        carry_out(c, a, &left);
        look_soon(c);
}

void core_node_facts(struct core *c, const char *agent, struct str facts)
{
        struct core_agent *a = agent_get(c, str_of(agent));
        struct event e = {
                .type = EVENT_NODE_FACTS, .agent = str_of(a->name), .values = str_head(facts, FACTS_MAX)};

        if (!str_eqz(e.values, a->node.facts ? a->node.facts : ""))
                core_emit(c, &e, NULL);
}

void nodes_connected(struct core *c, struct core_agent *a)
{
        const struct node_record *n = &a->node;

        a->gone = false;
        if (node_state_of(n) == NODE_BOOTING)
                set_state(c, a, NODE_UP, NODE_BY_NODE, STR("it has connected"), 0);
        else if (node_state_of(n) == NODE_FAILED && n->by && strcmp(n->by, NODE_BY_SERVER) == 0)
                set_state(c, a, n->back, NODE_BY_NODE, STR("it was heard of again"), n->deadline_ms);
        look_soon(c);
}

void nodes_event(struct core *c, const struct event *e)
{
        if (c->nodes.draining &&
            (e->type == EVENT_EXITED || e->type == EVENT_LOST || e->type == EVENT_REFUSED))
                c->nodes.look_ms = 0;
}

void nodes_lost(struct core *c, struct core_agent *a)
{
        const struct node_losses *l = &a->losses;
        BUF_CLEANUP struct buf why = {0};

        if (c->config.keep_lossy_nodes || l->unrelated < LOSSES_DRAIN || node_state_of(&a->node) != NODE_UP)
                return;
        buf_printf(&why, "%u unrelated jobs in a row were lost there or could not be started:", l->unrelated);
        for (uint32_t i = 0; i < l->unrelated; i++)
                buf_printf(&why, "%s %llu.%u", i ? "," : "", (unsigned long long)l->jobs[i].request,
                           l->jobs[i].member);
        set_state(c, a, NODE_DRAINING, NODE_BY_SERVER, buf_view(&why), 0);
        look_soon(c);
}

/* ---- statements in ads */

/* Limits events from an agent's statements, so that the log does not grow faster, however often they
 * change. */
static bool may_say(struct core *c, struct core_agent *a)
{
        if (a->said_ms && c->steady_ms - a->said_ms < SAYS_MS)
                return false;
        a->said_ms = c->steady_ms;
        return true;
}

static void look_at_health(struct core *c, struct core_agent *a, const char *unwell)
{
        const struct node_record *n = &a->node;
        bool failed = node_state_of(n) == NODE_FAILED && strcmp(n->by, NODE_BY_NODE) == 0;

        if ((unwell != NULL) != failed && (!failed || may_say(c, a)))
                core_node_health(c, a->name, !unwell, str_of(unwell ? unwell : ""));
}

/* Adds one line, whatever the value contains. */
static void add_fact(struct buf *out, const char *name, struct str value)
{
        size_t n = 0;

        value = str_head(value, FACT_MAX);
        while (n < value.n && value.p[n] != '\n')
                n++;
        buf_printf(out, "%s=" STR_FMT "\n", name, STR_ARG(str_head(value, n)));
}

static char *read_facts(struct core *c, const struct ad *ad)
{
        const struct {
                const char *name;
                symbol attribute;
        } facts[] = {{"boot_id", c->attr.NodeBootId},
                     {"provider_id", c->attr.NodeProviderId},
                     {"image", c->attr.NodeImage},
                     {"size", c->attr.NodeSize},
                     {"price", c->attr.NodePrice}};
        struct buf text = {0};
        struct str value;

        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
                if (eval_string(&c->eval, ad, NULL, facts[i].attribute, &value) && value.n)
                        add_fact(&text, facts[i].name, value);
        return text.n ? buf_take(&text) : NULL;
}

/* Returns the reason if the condition is true: "its drain_when is true: ScratchFree < 10"; NULL: it is
 * not. */
static char *read_trigger(struct core *c, const struct ad *ad, symbol trigger, const char *name)
{
        const struct expr *e = ad_find(ad, trigger);
        struct buf why = {.max = CORE_NODE_REASON_MAX};
        bool yes = false;

        if (!e || !eval_boolean(&c->eval, ad, NULL, trigger, &yes) || !yes)
                return NULL;
        buf_printf(&why, "its %s is true: ", name);
        expr_print(&why, e, c->symbols);
        return buf_take(&why);
}

void node_word_read(struct core *c, const struct ad *ad, struct node_word *ret)
{
        struct str why;
        int64_t within_s;

        *ret = (struct node_word){
                .facts = read_facts(c, ad),
                .drains = read_trigger(c, ad, c->attr.DrainWhen, "drain_when"),
                .closes = read_trigger(c, ad, c->attr.CloseWhen, "close_when"),
                .notifies = read_trigger(c, ad, c->attr.NotifyWhen, NOTIFY_WHEN),
        };
        if (ret->drains && eval_integer(&c->eval, ad, NULL, c->attr.DrainWithin, &within_s) && within_s > 0)
                ret->drain_ms = (within_s < WITHIN_MAX_S ? within_s : WITHIN_MAX_S) * 1000;
        if (eval_string(&c->eval, ad, NULL, c->attr.NodeFailed, &why))
                ret->unwell = str_dupz(str_head(why, CORE_NODE_REASON_MAX));
        if (eval_string(&c->eval, ad, NULL, c->attr.Leaving, &why))
                ret->leaves = str_dupz(str_head(why, CORE_NODE_REASON_MAX));
}

void node_word_deinit(struct node_word *w)
{
        free(w->unwell);
        free(w->drains);
        free(w->closes);
        free(w->notifies);
        free(w->leaves);
        free(w->facts);
}

static bool has_left(const struct core_agent *a)
{
        enum node_state s = node_state_of(&a->node);

        return (s == NODE_DRAINING || s == NODE_DRAINED) && a->node.by &&
               strcmp(a->node.by, NODE_BY_LEAVE) == 0;
}

/* Attempts that still run go back to the queue at once, since the agent has waited for them as long as it
 * could. */
static void look_at_leaving(struct core *c, struct core_agent *a, const char *leaves)
{
        if (leaves && node_state_of(&a->node) == NODE_UP) {
                a->said_ms = c->steady_ms;
                set_state(c, a, NODE_DRAINING, NODE_BY_LEAVE, str_of(leaves), c->now_ms);
                look_soon(c);
        } else if (!leaves && has_left(a) && may_say(c, a)) {
                set_state(c, a, NODE_UP, NODE_BY_NODE, STR("it has come again"), 0);
        }
}

/* The record's reason says that notify_when is true, so that it is reported once, whatever restarts. */
static void look_at_report(struct core *c, struct core_agent *a, const char *notifies)
{
        static const char said[] = "its " NOTIFY_WHEN " is true: ";
        bool before = a->node.reason && strncmp(a->node.reason, said, sizeof(said) - 1) == 0;

        if (node_state_of(&a->node) != NODE_UP || before == (notifies != NULL) || !may_say(c, a))
                return;
        if (notifies)
                emit_state(c, a, NODE_UP, NODE_BY_NODE, str_of(notifies), 0, NODE_REPORT);
        else
                emit_state(c, a, NODE_UP, NODE_BY_NODE, STR("its " NOTIFY_WHEN " is not true any more"), 0,
                           0);
}

void nodes_offered(struct core *c, struct core_agent *a, const struct node_word *w)
{
        look_at_leaving(c, a, w->leaves);
        look_at_health(c, a, w->unwell);
        if (w->facts && !str_eqz(str_of(w->facts), a->node.facts ? a->node.facts : "") && may_say(c, a))
                core_node_facts(c, a->name, str_of(w->facts));
        if (w->drains && node_state_of(&a->node) == NODE_UP && may_say(c, a)) {
                set_state(c, a, NODE_DRAINING, NODE_BY_NODE, str_of(w->drains),
                          w->drain_ms ? c->now_ms + w->drain_ms : 0);
                look_soon(c);
        }
        look_at_report(c, a, w->notifies);
}

/* ---- by time */

/* Returns whether the node may become silent. */
static bool look_for_silence(struct core *c, struct core_agent *a)
{
        enum node_state s = node_state_of(&a->node);
        BUF_CLEANUP struct buf why = {0};

        if (a->connected || (s != NODE_UP && s != NODE_DRAINING && s != NODE_DRAINED) ||
            (s == NODE_DRAINED && has_left(a)))
                return false;
        if (c->steady_ms - a->renewed_steady_ms < c->config.node_silent_ms)
                return true;
        buf_printf(&why, "nothing was heard of it for %lld s", (long long)(c->config.node_silent_ms / 1000));
        set_state(c, a, NODE_FAILED, NODE_BY_SERVER, buf_view(&why), 0);
        return false;
}

int64_t nodes_tick(struct core *c)
{
        bool more = false, later = false, drain = false;
        unsigned left = SLICE;
        void *value;

        if (c->config.shadow)
                return INT64_MAX;
        if (c->nodes.look_ms > c->steady_ms)
                return c->nodes.look_ms - c->steady_ms;
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                struct core_agent *a = value;

                later |= look_for_silence(c, a);
                more |= carry_out(c, a, &left);
                drain |= node_state_of(&a->node) == NODE_DRAINING;
        }
        c->nodes.draining = drain;
        c->nodes.look_ms = more ? c->steady_ms : later || drain ? c->steady_ms + LOOK_MS : INT64_MAX;
        return more ? 0 : later || drain ? LOOK_MS : INT64_MAX;
}
