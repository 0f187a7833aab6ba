/* Members go in groups: of one bucket, under one fence, each taking the same of the queue. A group is one
 * event and one assignment. */
#include "core/match/dispatch.h"

#include "classad/match.h"
#include "core/accounts/share.h"
#include "core/billing/billing.h"
#include "core/classes/fill.h"
#include "core/classes/member_ad.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/data/inputs_private.h"
#include "core/data/locality.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/fairness/order.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/match/choose.h"
#include "core/match/delay_scheduling.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/model/core_parts.h"
#include "core/model/precedence.h"

/* How many members are tried when a queue's expression looks at what differs from job to job. */
#define LATE_TRIES 16u
/* Of members that are near, how many are compared; of buckets that are level, how many. */
#define NEAR_TRIES  64u
#define LEVEL_TRIES 64u
#define PASSED_MAX  8u

/* A group is complete when so much comes for it. */
#define MOVES_MS 2000

/* Giving one member takes as long as so many looks at a pair. */
#define GIVE_LOOKS 8u

struct group {
        struct job_class *job_class;
        struct bucket *bucket;
        struct queue *queue;
        struct set members;
        uint64_t most;                   /* so many at most */
        uint32_t fence;                  /* of all of them */
        bool fits;                       /* as long as it has none: choose_fits has said so */
        struct need need;                /* of each of them */
        struct draws *draws;             /* likewise */
        uint64_t fresh;                  /* of them, those that were never given before */
        unsigned tries;                  /* members that the queue did not want */
        bool alone;                      /* it is one member, which has the node for itself */
        struct buf values;               /* that the place fills in, of each of them */
        bool same_values;                /* and of all others */
        const struct dispatch_gang *set; /* NULL: each member is on its own */
        int64_t shared_ms, own_ms;       /* transfers that begin: of what all members read, of their own */
        bool loads_link;                 /* these are enough */
        struct set unfilled;             /* members for which it has no value of the reference `missing` */
        struct buf missing;
        struct err unpaid; /* why its bucket cannot be paid for, and will be held; empty: it can */
};

enum add { ADD_DONE, ADD_SKIPPED, ADD_FULL };

static const struct part *part_of(const struct bucket *b)
{
        return request_part_at(b->request, b->part);
}

static uint32_t next_fence(const struct core *c, const struct job *j)
{
        uint32_t fence = j ? j->fence + 1 : 1;

        return fence < c->requests->fence_from ? c->requests->fence_from : fence;
}

/* The queue's word on one member, when its expressions look at more than the class. */
static bool member_allowed(struct core *c, struct job_class *k, struct queue *q, const struct request *r,
                           uint32_t member)
{
        uint64_t steps = c->eval.steps_all, overruns = c->eval.overruns;
        struct ad *ad;
        bool yes;

        if (!q->job_specific)
                return true;
        ad = member_ad(c, r, member, request_job(r, member));
        yes = match_one_way(&c->eval, q->ad, ad);
        overrun_looked(c, k, q, steps, overruns);
        ad_free(ad);
        return yes && !k->overrun;
}

/* As choose_fits, but what it has said already is not asked again. */
static bool fits(struct core *c, const struct group *g, struct need *ret)
{
        if (!g->fits || set_count(&g->members))
                return choose_fits(c, g->job_class, g->queue, ret);
        c->matching->looks++;
        need_of(c, g->job_class, g->job_class->ad, g->queue->ad, ret);
        return true;
}

/* All that one more member takes, from the queue and elsewhere: is it there? Those before it have no attempt
 * yet, and so are not seen by a reservation. */
static bool may_take(struct core *c, const struct group *g, struct need *ret)
{
        uint64_t n = set_count(&g->members);

        return n < g->most && n < charge_room(g->job_class, g->draws, NULL) && fits(c, g, ret) &&
               reserve_allows_all(c, g->job_class, g->queue, ret, n + 1);
}

/* Members that cannot be filled in are held, as many as share the reason. */
static enum add leave_unfilled(struct group *g, uint32_t member, struct str missing, bool all)
{
        if (set_count(&g->unfilled) && !str_eq(missing, buf_view(&g->missing)))
                return ADD_FULL;
        if (set_count(&g->unfilled) == 0)
                buf_str(&g->missing, missing);
        if (all)
                set_copy(&g->unfilled, &g->bucket->idle);
        else
                set_add(&g->unfilled, member);
        return all ? ADD_FULL : ADD_SKIPPED;
}

/* What the place fills in for the member must be what it fills in for the others of the group. */
static enum add fill_in(struct core *c, struct group *g, uint32_t member, const struct need *need)
{
        const struct request *r = g->bucket->request;
        const struct part *p = request_part_at(r, g->bucket->part);
        bool first = set_count(&g->members) == 0;
        BUF_CLEANUP struct buf text = {0};
        enum fill_result result;

        if (!fill_wanted(p) || (!first && g->same_values))
                return ADD_DONE;
        result = fill_member(c, r, p, member, g->queue, need, &text);
        if (result == FILL_MISSING || result == FILL_MISSING_SAME)
                return leave_unfilled(g, member, buf_view(&text), result == FILL_MISSING_SAME);
        if (!first && !str_eq(buf_view(&text), buf_view(&g->values)))
                return ADD_FULL;
        if (first)
                buf_str(&g->values, buf_view(&text));
        g->same_values = result == FILL_SAME;
        return ADD_DONE;
}

static void group_deinit(struct group *g)
{
        set_deinit(&g->members);
        set_deinit(&g->unfilled);
        buf_deinit(&g->values);
        buf_deinit(&g->missing);
}

static bool room_for_fresh(const struct request *r, const struct part *p, uint64_t more)
{
        uint64_t under_way = r->jobs ? idmap_count(r->jobs) - set_count(&request_cold(r)->left) : 0;

        return !p->job_template || under_way + more < (uint64_t)p->job_template->jobs_max;
}

bool dispatch_room(const struct request *r, uint32_t member, uint64_t more)
{
        return room_for_fresh(r, request_part(r, member, NULL), more) || request_job(r, member);
}

/* A suspected job goes where nothing else is (losses.h). */
static bool runs_alone(struct core *c, const struct group *g, const struct job *j)
{
        return !g->set && job_is_suspected(j) && queue_is_node(c, g->queue);
}

/* The node runs nothing; else it is emptied for the job if that has waited for long. */
static bool node_is_free(struct core *c, const struct group *g, const struct job *j)
{
        int64_t since_ms = j->entered_ms > j->losses->until_ms ? j->entered_ms : j->losses->until_ms;

        if (agent_attempts(g->queue->agent) == 0)
                return true;
        if (!c->clearing.agent && c->now_ms - since_ms >= LOSSES_CLEAR_PAUSES * c->config.lost_pause_ms)
                c->clearing = (struct clearing){.agent = g->queue->agent,
                                                .request = j->request->id,
                                                .job_class = g->job_class->index.serial,
                                                .member = j->member};
        return false;
}

static enum add group_add(struct core *c, struct group *g, uint32_t member)
{
        const struct request *r = g->bucket->request;
        const struct job *j = request_job(r, member);
        uint32_t fence = g->set ? g->set->fence : next_fence(c, j);
        bool first = set_count(&g->members) == 0, alone = runs_alone(c, g, j);
        struct need need;
        enum add filled;

        if (!first && (fence != g->fence || g->alone))
                return ADD_FULL;
        if (alone ? !first || !node_is_free(c, g, j) : c->clearing.agent == g->queue->agent)
                return ADD_SKIPPED;
        if (!j && !room_for_fresh(r, request_part(r, member, NULL), g->fresh))
                return ADD_FULL;
        if (!cost_reaches(c, part_of(g->bucket), member, g->queue))
                return ADD_SKIPPED;
        if (!may_take(c, g, &need) || (!first && !need_same(&need, &g->need)))
                return ADD_FULL;
        if (!member_allowed(c, g->job_class, g->queue, r, member))
                return ++g->tries == LATE_TRIES ? ADD_FULL : ADD_SKIPPED;
        filled = fill_in(c, g, member, &need);
        if (filled != ADD_DONE)
                return filled;
        g->need = need;
        g->fence = fence;
        g->alone = alone;
        set_add(&g->members, member);
        g->fresh += j == NULL;
        need_take(c, &g->need, g->queue);
        c->matching->looks += GIVE_LOOKS;
        return ADD_DONE;
}

struct locality {
        uint32_t member;
        uint64_t held;
};

static int by_held(const void *x, const void *y)
{
        const struct locality *a = x, *b = y;

        if (a->held != b->held)
                return a->held > b->held ? -1 : 1;
        return (a->member > b->member) - (a->member < b->member);
}

/* Adds members of which the agent holds a file, those of which it holds most first. */
static enum add group_add_local(struct core *c, struct group *g)
{
        struct inputs *in = request_part_at(g->bucket->request, g->bucket->part)->inputs;
        const struct set *set = data_counts(c) ? locality_members(in, g->queue->agent) : NULL;
        struct locality near[NEAR_TRIES];
        struct set idle = {0};
        size_t n = 0;

        if (!set || set_count(set) == 0)
                return ADD_DONE;
        set_copy(&idle, set);
        set_keep_all(&idle, &g->bucket->idle);
        SET_FOREACH (&idle, m) {
                if (n == NEAR_TRIES)
                        break;
                near[n++] = (struct locality){(uint32_t)m, inputs_held(c, in, (uint32_t)m, g->queue->agent)};
        }
        set_deinit(&idle);
        if (n > 1)
                qsort(near, n, sizeof(*near), by_held);
        for (size_t i = 0; i < n; i++)
                if (group_add(c, g, near[i].member) == ADD_FULL)
                        return ADD_FULL;
        return ADD_DONE;
}

/* Adds members that were given before: others have no room beside them. */
static void group_add_under_way(struct core *c, struct group *g)
{
        const struct request *r = g->bucket->request;
        struct set there = {0};
        void *value;

        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);)
                set_add(&there, ((struct job *)value)->member);
        set_keep_all(&there, &g->bucket->idle);
        SET_FOREACH (&there, m) {
                if (group_add(c, g, (uint32_t)m) == ADD_FULL)
                        break;
        }
        set_deinit(&there);
}

/* Notes what begins to come with a member that was added; what all members read comes once. True: another
 * group shall see it on the link. */
static bool loads_link(struct core *c, struct group *g, uint32_t member)
{
        const struct part *p = request_part_at(g->bucket->request, g->bucket->part);

        if (!inflight_counts(c) || !p->inputs || !set_has(&g->members, member))
                return false;
        if (g->own_ms == 0)
                g->shared_ms = cost_begins_ms(c, p, MEMBER_ANY, g->queue);
        g->own_ms += cost_begins_ms(c, p, member, g->queue) - g->shared_ms;
        g->loads_link = g->own_ms + g->shared_ms >= MOVES_MS;
        return g->loads_link && g->own_ms > 0;
}

static void group_add_any(struct core *c, struct group *g, const struct set *from)
{
        SET_FOREACH (from, m) {
                if (set_has(&g->members, (uint32_t)m) ||
                    delay_scheduling_waits(c, g->job_class, g->bucket, (uint32_t)m, g->queue))
                        continue;
                if (group_add(c, g, (uint32_t)m) == ADD_FULL || loads_link(c, g, (uint32_t)m))
                        break;
        }
}

/* The same but for members that read from a store that does not answer there: there may be a million of
 * them. What they need may be held there, but then they are near. */
static void group_add_reached(struct core *c, struct group *g)
{
        const struct part *p = part_of(g->bucket);
        struct set reached = {0};

        if (!cost_reaches(c, p, MEMBER_ANY, g->queue))
                return;
        set_copy(&reached, &g->bucket->idle);
        inputs_leave_out_down(p->inputs, g->queue->agent, &reached);
        group_add_any(c, g, &reached);
        set_deinit(&reached);
}

/* Fills the group with members of its bucket, in the order in which this queue should have them. */
static void group_fill(struct core *c, struct group *g, enum dispatch_what what)
{
        if (!room_for_fresh(g->bucket->request, part_of(g->bucket), 0))
                group_add_under_way(c, g);
        else if (group_add_local(c, g) == ADD_FULL || what == DISPATCH_LOCAL)
                ;
        else if (agent_data_misses_stores(g->queue->agent->data))
                group_add_reached(c, g);
        else
                group_add_any(c, g, &g->bucket->idle);
        eval_reset(&c->eval);
}

/* May its account pay for members here? Those that never can are left, all of them, to be held. */
static bool group_is_paid(struct core *c, struct group *g)
{
        enum billing_answer answer;
        uint64_t most = UINT64_MAX;
        struct err why = {""};

        if (!core_bank_is_on(c))
                return true;
        answer = billing_ask(c, g->job_class, g->queue, &most, &why);
        if (answer == BILLING_NEVER || (answer == BILLING_SHORT && billing_holds(c))) {
                g->unpaid = why;
                set_copy(&g->unfilled, &g->bucket->idle);
        }
        g->most = most < g->most ? most : g->most;
        return answer == BILLING_YES;
}

static void group_hand_out(struct core *c, const struct group *g)
{
        struct core_assignment a = {
                .agent = g->queue->agent->name,
                .queue = g->queue->name,
                .serial = g->queue->serial,
                .request = g->bucket->request->id,
                .part = g->bucket->part,
                .fence = g->fence,
                .members = &g->members,
                .lease_ms = (uint64_t)g->job_class->lease_ms,
                .values = buf_view(&g->values),
                .restarts = request_part_at(g->bucket->request, g->bucket->part)->job_template->restarts,
        };
        if (g->set) {
                a.gang_first = g->set->first;
                a.gang_size = g->set->size;
                a.gang_machines = g->set->machines;
        }
        struct buf BUF_CLEANUP more = {0};
        struct event e = {
                .type = EVENT_MATCHED,
                .request = a.request,
                .members = g->members,
                .fence = g->fence,
                .agent = str_of(a.agent),
                .queue = str_of(a.queue),
                .cpus = (uint32_t)g->need.cpus,
                .memory_mib = (uint64_t)g->need.memory_mib,
                .disk_kib = (uint64_t)g->need.disk_kib,
                .lease_ms = a.lease_ms,
                .account = str_of(g->job_class->account->path),
                .draws = str_of(g->draws ? g->draws->text : NULL),
        };

        amounts_print(&more, c->symbols, &g->need.more);
        e.more = buf_view(&more);
        index_queue_changed(c, g->queue);
        reserve_given(c, g->job_class, g->queue);
        core_emit(c, &e, NULL);
        if (g->alone)
                queue_mark_alone(c, g->queue);
        if (g->values.n) {
                e.type = EVENT_FILLED;
                e.values = a.values;
                core_emit(c, &e, NULL);
        }
        c->world.assign(c->world.arg, &a);
}

static void group_hold_unfilled(struct core *c, const struct group *g)
{
        BUF_CLEANUP struct buf reason = {.max = 1024};
        struct str inside = buf_view(&g->missing);
        struct event e = {.type = EVENT_HELD,
                          .request = g->bucket->request->id,
                          .members = g->unfilled,
                          .code = CORE_HOLD_UNSPECIFIED};

        if (g->unpaid.text[0]) {
                e.code = CORE_HOLD_BANK;
                e.reason = str_of(g->unpaid.text);
                core_emit(c, &e, NULL);
                return;
        }
        buf_printf(&reason,
                   "Cannot expand $$ expression (" STR_FMT
                   "): %s@%s gives no value for it. Require one, or write a "
                   "default ($$(name:default)); then release the job",
                   STR_ARG(str_head(inside, 200)), g->queue->name, g->queue->agent->name);
        e.reason = buf_view(&reason);
        core_emit(c, &e, NULL);
}

/* Buckets that gave the queue nothing. */
struct passed {
        const struct bucket *v[PASSED_MAX];
        size_t n;
};

static bool was_passed(const struct passed *p, const struct bucket *b)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->v[i] == b)
                        return true;
        return false;
}

/* Has it members that need no store which does not answer there? Of a part whose members read files of their
 * own that is seen when they are added. */
static bool is_reached(struct core *c, const struct bucket *b, const struct queue *q)
{
        return cost_reaches(c, part_of(b), part_of(b)->count == 1 ? part_of(b)->first : MEMBER_ANY, q);
}

/* The first that is, of those on top and of some others: each call looks at the next ones. */
static struct bucket *next_reached(struct core *c, struct job_class *k, struct queue *q,
                                   const struct passed *passed)
{
        size_t n = k->buckets.count, tries = n < 2 * LEVEL_TRIES ? n : 2 * LEVEL_TRIES;
        struct bucket *best = NULL;

        for (size_t i = 0; i < tries; i++) {
                size_t at = i < LEVEL_TRIES || n == tries ? i : c->matching->reached_at++ % n;
                struct bucket *b = container_of(k->buckets.nodes[at], struct bucket, node);

                if ((!best || order_bucket_before(b, best)) && !was_passed(passed, b) && is_reached(c, b, q))
                        best = b;
        }
        return best;
}

/* The bucket that is next for this queue: of the class's first ones that are level, the one of whose files it
 * holds most, unless the first of all has waited for too long. NULL: there is none. */
static struct bucket *next_bucket(struct core *c, struct job_class *k, struct queue *q,
                                  const struct passed *passed)
{
        struct bucket *first = job_class_first_bucket(k), *best = NULL;
        uint64_t most = 0;
        bool data = data_counts(c) && q->agent->data && !delay_scheduling_is_late(c, first);

        if (agent_data_misses_stores(q->agent->data))
                return next_reached(c, k, q, passed);
        if (!data && passed->n == 0)
                return first;
        for (size_t i = 0; i < k->buckets.count && i < LEVEL_TRIES; i++) {
                struct bucket *b = container_of(k->buckets.nodes[i], struct bucket, node);
                uint64_t held = 0;

                if (b->priority != first->priority || was_passed(passed, b))
                        continue;
                if (data)
                        held = inputs_held(c, request_part_at(b->request, b->part)->inputs, MEMBER_ANY,
                                           q->agent);
                if (!best || held > most || (held == most && order_bucket_before(b, best))) {
                        best = b;
                        most = held;
                }
        }
        return best;
}

/* With `ret_more`: no more after a group that loads the link. */
static uint64_t dispatch_groups(struct core *c, struct job_class *k, struct queue *q, enum dispatch_what what,
                                bool *ret_more)
{
        struct passed passed = {.n = 0};
        uint64_t given = 0, most = order_quota(c, k);
        struct need need;
        bool full, loaded = false;

        while (!loaded && k->idle > 0 && passed.n < PASSED_MAX && given < most) {
                struct group g = {.job_class = k,
                                  .bucket = next_bucket(c, k, q, &passed),
                                  .queue = q,
                                  .most = most - given,
                                  .fits = what == DISPATCH_FITTING && passed.n == 0 && given == 0};
                uint64_t n;

                if (!g.bucket || charge_draws(c, k, q, &g.draws, NULL))
                        break;
                if (group_is_paid(c, &g))
                        group_fill(c, &g, what);
                n = set_count(&g.members);
                given += n;
                if (n)
                        group_hand_out(c, &g);
                n += set_count(&g.unfilled);
                if (set_count(&g.unfilled))
                        group_hold_unfilled(c, &g);
                else if (!n)
                        passed.v[passed.n++] = g.bucket;
                loaded = ret_more && g.loads_link;
                group_deinit(&g);
                full = charge_room(k, g.draws, NULL) == 0;
                draws_unref(c->limits, g.draws);
                if (full || (n == 0 && !choose_fits(c, k, q, &need)))
                        break;
        }
        if (ret_more)
                *ret_more = loaded;
        return given;
}

uint64_t dispatch(struct core *c, struct job_class *k, struct queue *q, enum dispatch_what what)
{
        return dispatch_groups(c, k, q, what, NULL);
}

uint64_t dispatch_some(struct core *c, struct job_class *k, struct queue *q, bool *ret_more)
{
        return dispatch_groups(c, k, q, DISPATCH_FITTING, ret_more);
}

/* ---- of a set */

bool dispatch_wanted(struct core *c, const struct bucket *b, uint32_t member, struct queue *q)
{
        const struct part *p = request_part_at(b->request, b->part);
        BUF_CLEANUP struct buf text = {0};
        enum fill_result filled;
        struct need need;

        if (!member_allowed(c, b->job_class, q, b->request, member) || !cost_reaches(c, p, member, q))
                return false;
        if (!fill_wanted(p))
                return true;
        need_of(c, b->job_class, b->job_class->ad, q->ad, &need);
        filled = fill_member(c, b->request, p, member, q, &need, &text);
        return filled != FILL_MISSING && filled != FILL_MISSING_SAME;
}

bool dispatch_draws_suffice(struct core *c, const struct job_class *k, struct queue *const *where, uint64_t n)
{
        for (uint64_t i = 0; k->draws_vary && i < n; i++) {
                struct draws *draws;
                bool yes;

                if (i > 0 && where[i] == where[i - 1])
                        continue;
                if (charge_draws(c, k, where[i], &draws, NULL))
                        return false;
                yes = charge_room(k, draws, NULL) >= n;
                draws_unref(c->limits, draws);
                if (!yes)
                        return false;
        }
        return true;
}

void dispatch_members(struct core *c, struct job_class *k, struct bucket *b, struct queue *q,
                      const struct set *members, const struct dispatch_gang *set)
{
        struct set left = {0};
        bool stuck = false;

        set_copy(&left, members);
        while (set_count(&left) && !stuck) { /* once, unless members are filled in differently */
                struct group g = {.job_class = k, .bucket = b, .queue = q, .most = UINT64_MAX, .set = set};
                int r = charge_draws(c, k, q, &g.draws, NULL);

                SET_FOREACH (&left, m) {
                        if (r != 0 || group_add(c, &g, (uint32_t)m) == ADD_FULL)
                                break;
                }
                /* All was asked before, but an expression may have run out of its time now: gang_settle frees
                 * the set then. */
                if (set_count(&g.members) > 0)
                        group_hand_out(c, &g);
                stuck = set_count(&g.members) == 0;
                set_remove_all(&left, &g.members);
                group_deinit(&g);
                draws_unref(c->limits, g.draws);
        }
        set_deinit(&left);
        eval_reset(&c->eval);
}
