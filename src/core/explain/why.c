/* Why an idle job is not running: every queue is asked as the match would ask it, first as it is now, then as
 * if it had nothing else to do. */
#include "base/mem.h"
#include "classad/match.h"
#include "classad/print.h"
#include "core/estimate/busy.h"
#include "core/gang/reserve.h"
#include "core/match/give.h"
#include "core/model/state.h"

/* The queue's ad with all that it has free. */
struct ad *queue_whole_ad(struct core *c, const struct queue *q)
{
        const struct str total = STR("Total");
        struct ad *ad = ad_dup(q->ad);
        const struct expr *e;
        uint32_t at = 0;
        symbol name;

        while (ad_next(q->ad, &at, &name, &e)) {
                struct str text = symbols_name(c->symbols, name);
                symbol free_name =
                        str_istarts(text, total) ? symbols_find(c->symbols, str_skip(text, total.n)) : 0;
                struct value v, is;

                if (free_name && ad_literal(q->ad, name, &v) && v.type == VALUE_INTEGER &&
                    ad_literal(q->ad, free_name, &is) && is.type == VALUE_INTEGER)
                        ad_set_integer(ad, free_name, v.integer);
        }
        return ad;
}

static bool short_of(struct core *c, const struct ad *job, const struct ad *place, symbol request,
                     symbol have, int64_t missing, struct buf *clause, struct buf *value)
{
        int64_t want = missing, has = 0;

        eval_integer(&c->eval, job, place, request, &want);
        eval_integer(&c->eval, place, job, have, &has);
        if (want <= has)
                return false;
        buf_printf(clause, "TARGET." STR_FMT " >= " STR_FMT, STR_ARG(symbols_name(c->symbols, have)),
                   STR_ARG(symbols_name(c->symbols, request)));
        buf_printf(value, "%lld >= %lld", (long long)has, (long long)want);
        return true;
}

/* The first clause of `my` that is not true against `other`; false when there is none. */
static bool refusal(struct core *c, const struct ad *my, const struct ad *other, struct buf *clause,
                    struct buf *value)
{
        unsigned clauses = 0;
        struct value v;
        int n = match_first_refusal(&c->eval, my, other, &clauses, &v);

        if (n < 0)
                return false;
        if (clauses == 0) {
                buf_addz(clause, "Requirements");
                buf_addz(value, "missing");
                return true;
        }
        expr_print_clause(clause, ad_find(my, c->attr.Requirements), (unsigned)n, c->symbols);
        value_print(value, &v);
        return true;
}

/* Does this pair of ads agree? If not, clause and value say what stands against it. */
static enum core_verdict ask(struct core *c, const struct ad *job, const struct ad *place, struct buf *clause,
                             struct buf *value)
{
        const struct attributes *a = &c->attr;
        struct amounts more;

        int64_t at;

        if (eval_integer(&c->eval, job, NULL, a->DeferralTime, &at) && at > c->now_ms / 1000) {
                buf_addz(clause, "time() >= DeferralTime");
                buf_printf(value, "%lld >= %lld", (long long)(c->now_ms / 1000), (long long)at);
                return CORE_JOB_REFUSES;
        }
        if (refusal(c, job, place, clause, value))
                return CORE_JOB_REFUSES;
        if (short_of(c, job, place, a->RequestCpus, a->Cpus, 1, clause, value) ||
            short_of(c, job, place, a->RequestMemory, a->Memory, 0, clause, value) ||
            short_of(c, job, place, a->RequestDisk, a->Disk, 0, clause, value))
                return CORE_JOB_REFUSES;
        amounts_names(c->symbols, job, &more);
        for (unsigned i = 0; i < more.count; i++)
                if (short_of(c, job, place, more.v[i].request, more.v[i].name, 0, clause, value))
                        return CORE_JOB_REFUSES;
        if (refusal(c, place, job, clause, value))
                return CORE_QUEUE_REFUSES;
        return CORE_FITS;
}

bool queue_would_take(struct core *c, const struct ad *job, const struct ad *place)
{
        struct buf BUF_CLEANUP clause = {0}, value = {0};

        return ask(c, job, place, &clause, &value) == CORE_FITS;
}

struct asking {
        const struct request *request;
        uint32_t member;
        uint64_t labels; /* of its data */
        const struct ad *ad;
};

/* Is its room kept for another job? */
static bool is_reserved(struct core *c, const struct asking *x, const struct queue *q)
{
        const struct bucket *b = request_bucket(c, x->request, x->member);
        struct need need;

        if (!q->reserved || !b || !b->class || b->class->idle == 0)
                return false;
        need_of(c, b->class, x->ad, q->ad, &need);
        return !reserve_allows(c, b->class, q, &need);
}

static bool store_is_down(struct core *c, const struct asking *x, const struct queue *q, struct core_why *w,
                          struct buf *clause, struct buf *value)
{
        size_t store = cost_store_down(c, request_part(x->request, x->member, NULL), x->member, q);
        const struct link *l = store == FILE_STORE_NONE ? NULL : agent_link_down(q->agent, store);

        if (!l)
                return false;
        w->verdict = CORE_STORE_DOWN;
        w->since_ms = l->down_ms;
        buf_str(clause, c->sites.stores[store].urls.name);
        buf_addz(value, l->down_why);
        return true;
}

static void ask_queue(struct core *c, const struct asking *x, struct queue *q, struct core_why *w,
                      struct buf *clause, struct buf *value)
{
        const struct request *r = x->request;
        const struct ad *job = x->ad;
        struct ad *whole;

        w->verdict = CORE_AWAY;
        if (!q->agent->connected || !q->ad)
                return;
        w->verdict = CORE_UNREACHABLE;
        if (q->unreachable) {
                buf_addz(value, q->unreachable);
                return;
        }
        w->verdict = CORE_OWNER_REFUSED;
        if (!queue_allows_owner(q, request_owner(r))) {
                buf_str(value, queue_denies_owner(q, request_owner(r)));
                if (!value->n && q->closed)
                        buf_addz(value, q->closed);
                return;
        }
        w->verdict = CORE_NOT_CLEARED;
        if (x->labels & ~q->agent->cleared) {
                label_print(c, x->labels & ~q->agent->cleared, value);
                return;
        }
        w->verdict = CORE_NOT_OFFERING;
        if (q->closed && q->total_cpus == 0) { /* it has nothing that a job could ask for */
                buf_addz(value, q->closed);
                return;
        }
        if (q->paused_until_ms > c->steady_ms) {
                buf_addz(value, "its expressions take too long to evaluate");
                return;
        }
        whole = queue_whole_ad(c, q);
        w->verdict = ask(c, job, whole, clause, value);
        ad_free(whole);
        if (w->verdict != CORE_FITS)
                return;
        if (store_is_down(c, x, q, w, clause, value))
                return;
        if (!give_room(r, x->member, 0)) {
                w->verdict = CORE_JOB_REFUSES;
                buf_addz(clause, "JobMaterializeLimit");
                buf_printf(value, "%llu jobs of the request are under way",
                           (unsigned long long)idmap_count(r->jobs));
                return;
        }
        if (q->closed)
                buf_addz(value, q->closed);
        if (q->closed || (!q->offers && q->attempt_count == 0))
                w->verdict = CORE_NOT_OFFERING;
        else if (!q->offers || q->jobs_left == 0 || ask(c, job, q->ad, clause, value) != CORE_FITS)
                w->verdict = CORE_BUSY;
        if (w->verdict == CORE_FITS && is_reserved(c, x, q))
                w->verdict = CORE_BUSY;
        cost_of(c, request_part(r, x->member, NULL), x->member, q, &w->cost);
        if (w->verdict == CORE_BUSY) {
                int64_t wait = busy_wait_ms(c, q, 0);

                cost_wait(&w->cost, wait == BUSY_UNKNOWN ? 0 : wait);
        }
}

/* ---- a walk */

/* Steps of evaluation in a slice; then the slice ends, however few queues were asked. */
#define WALK_STEPS_MAX 100000u

struct core_walk {
        struct core_agent **agents; /* agents and queues stay as long as the core does */
        size_t count, at;
        struct queue *next; /* of agents[at]; NULL: its first */
};

struct core_walk *core_walk_new(struct core *c)
{
        struct core_walk *w = mem_new(struct core_walk);

        w->agents = agents_sorted(c, &w->count);
        return w;
}

void core_walk_free(struct core_walk *w)
{
        if (!w)
                return;
        free(w->agents);
        free(w);
}

struct queue *walk_next(struct core_walk *w)
{
        struct queue *q = w->next;

        while (!q && w->at < w->count)
                q = w->agents[w->at++]->queues;
        w->next = q ? q->next : NULL;
        return q;
}

bool walk_has_steps(const struct core *c, uint64_t began, unsigned queues)
{
        return queues > UINT32_MAX / 2 || c->eval.steps_all - began < WALK_STEPS_MAX;
}

bool core_walk_is_over(const struct core_walk *w)
{
        bool more = w->next != NULL;

        for (size_t i = w->at; i < w->count && !more; i++)
                more = w->agents[i]->queues != NULL;
        return !more;
}

void why_some(struct core *c, struct core_walk *w, unsigned queues, const struct request *r, uint32_t member,
              core_why_fn *fn, void *arg)
{
        struct asking x = {.request = r, .member = member};
        uint64_t steps = c->eval.steps_all;
        struct queue *q;
        struct ad *job;

        label_of(c, r, request_part(r, member, NULL), member, &x.labels, NULL);
        x.ad = job = member_ad(c, r, member, request_job(r, member));
        for (; queues > 0 && walk_has_steps(c, steps, queues) && (q = walk_next(w)); queues--) {
                struct buf BUF_CLEANUP clause = {0}, text = {0};
                struct core_why why = {.agent = q->agent->name, .queue = q->name};

                ask_queue(c, &x, q, &why, &clause, &text);
                why.clause = buf_view(&clause);
                why.value = buf_view(&text);
                fn(arg, &why);
                eval_reset(&c->eval);
        }
        ad_free(job);
}

int core_why_some(struct core *c, struct core_walk *w, unsigned queues, uint64_t request, uint32_t member,
                  core_why_fn *fn, void *arg)
{
        const struct request *r = request_find(c, request);

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        why_some(c, w, queues, r, member, fn, arg);
        return 0;
}

int core_why(struct core *c, uint64_t request, uint32_t member, core_why_fn *fn, void *arg)
{
        struct core_walk *w = core_walk_new(c);
        int e = core_why_some(c, w, UINT32_MAX, request, member, fn, arg);

        core_walk_free(w);
        return e;
}
