/* Members are dispatched in groups: members of one bucket, under one fence, that take the same resources of
 * the queue. A group is one event and one assignment. */
#include "core/match/dispatch.h"

#include "classad/match.h"
#include "core/accounts/share.h"
#include "core/billing/billing.h"
#include "core/classes/fill.h"
#include "core/classes/member_ad.h"
#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
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
#include "core/match/policy.h"
#include "core/model/core_parts.h"
#include "core/model/place_wait.h"
#include "core/model/precedence.h"

/* Members tried when a queue's expressions look at attributes that differ from job to job. */
#define LATE_TRIES 16u
/* Members with cached files, and buckets that are level in the order, that are compared. */
#define NEAR_TRIES  64u
#define LEVEL_TRIES 64u
#define PASSED_MAX  16u

/* A group is complete when it has begun transfers of this length. */
#define MOVES_MS 2000

/* Dispatching a member takes as long as this many looks at a pair. */
#define GIVE_LOOKS 8u

/* A member that lacks a value is charged this many steps, whatever its expressions take: there may be a
 * million such members, which no offer limits. */
#define UNFILLED_STEPS (ACCOUNT_STEPS_FREE + 100u)

struct group {
        struct job_class *job_class;
        struct bucket *bucket;
        struct queue *queue;
        struct set members;
        uint64_t most;                    /* members it may have */
        uint32_t fence;                   /* of every member */
        bool fits;                        /* choose_fits has said yes, which holds until a member is added */
        struct need need;                 /* of each member */
        struct draws *draws;              /* of concurrency limits, of each member */
        uint64_t fresh;                   /* members that were never dispatched before */
        unsigned tries;                   /* members that the queue did not want */
        bool alone;                       /* its one member gets the node to itself */
        struct buf values;                /* attributes that the place fills in, of each member */
        bool same_values;                 /* the values are the same for all members of the bucket */
        const struct dispatch_gang *gang; /* NULL: members are no gang */
        int64_t shared_ms, own_ms; /* transfers that begin: files that all members read, files of one */
        bool loads_link;           /* the transfers have reached MOVES_MS */
        struct set unfilled;       /* members for which the place has no value of `missing` */
        struct buf missing;
        struct err unpaid; /* why the account cannot pay, for which the bucket is held; empty: it can */
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

/* Evaluates the queue's expressions for one member, if they look at attributes that differ within the class.
 */
static bool member_allowed(struct core *c, struct job_class *k, struct queue *q, const struct request *r,
                           uint32_t member)
{
        uint64_t steps = core_steps(c), overruns = c->eval.overruns;
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

/* Calls choose_fits, unless its answer is still valid. */
static bool group_fits(struct core *c, const struct group *g, struct need *ret)
{
        if (!g->fits || set_count(&g->members))
                return choose_fits(c, g->job_class, g->queue, ret);
        c->matching->looks++;
        need_of(c, g->job_class, g->job_class->ad, g->queue->ad, ret);
        return true;
}

/* Returns whether the queue, the limits and the reservations have room for one more member. Members already
 * in the group have no attempt yet, so reservations do not see them. */
static bool may_take(struct core *c, const struct group *g, struct need *ret)
{
        uint64_t n = set_count(&g->members);

        return n < g->most && n < charge_room(g->job_class, g->draws, NULL) && group_fits(c, g, ret) &&
               reserve_allows_all(c, g->job_class, g->queue, ret, n + 1);
}

/* Marks members that lack a value to be held, together with all that lack the same one. */
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

/* Fills in a member's attributes from the place. A member whose values differ from the group's is not added.
 */
static enum add fill_in(struct core *c, struct group *g, uint32_t member, const struct need *need)
{
        const struct request *r = g->bucket->request;
        const struct part *p = request_part_at(r, g->bucket->part);
        bool first = set_count(&g->members) == 0;
        uint64_t steps = core_steps(c);
        BUF_CLEANUP struct buf text = {0};
        enum fill_result result;

        if (!fill_wanted(p) || (!first && g->same_values))
                return ADD_DONE;
        if (!g->gang &&
            !overrun_may_look(c, g->job_class)) /* a gang's members were charged by dispatch_wanted */
                return ADD_FULL;
        result = fill_member(c, r, p, member, g->queue, need, &text);
        if (!g->gang)
                overrun_charge(c, g->job_class, steps);
        if (result == FILL_MISSING || result == FILL_MISSING_SAME) {
                account_evaluated(g->job_class->account, c->steady_ms, UNFILLED_STEPS);
                return leave_unfilled(g, member, buf_view(&text), result == FILL_MISSING_SAME);
        }
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

uint64_t dispatch_under_way(const struct request *r)
{
        return r->jobs ? idmap_count(r->jobs) - set_count(&request_cold(r)->left) : 0;
}

static bool room_for_fresh(const struct request *r, const struct part *p, uint64_t more)
{
        return !p->job_template || dispatch_under_way(r) + more < (uint64_t)p->job_template->jobs_max;
}

bool dispatch_room(const struct request *r, uint32_t member, uint64_t more)
{
        return room_for_fresh(r, request_part(r, member, NULL), more) || request_job(r, member);
}

/* Returns whether the job must run alone on its node, since it is suspected of having brought down others
 * (losses.h). */
static bool runs_alone(struct core *c, const struct group *g, const struct job *j)
{
        return !g->gang && job_is_suspected(j) && queue_is_node(c, g->queue);
}

/* Returns whether the node runs nothing. Otherwise starts to empty it when the job has waited for long. */
static bool node_is_free(struct core *c, const struct group *g, const struct job *j)
{
        int64_t since_ms = j->entered_ms > j->losses->until_ms ? j->entered_ms : j->losses->until_ms;

        if (agent_attempts(g->queue->agent) == 0)
                return true;
        if (!c->nodes.clearing.agent && c->now_ms - since_ms >= LOSSES_CLEAR_PAUSES * c->config.lost_pause_ms)
                c->nodes.clearing = (struct clearing){.agent = g->queue->agent,
                                                      .request = j->request->id,
                                                      .job_class = g->job_class->index.serial,
                                                      .member = j->member};
        return false;
}

static enum add group_add(struct core *c, struct group *g, uint32_t member)
{
        const struct request *r = g->bucket->request;
        const struct job *j = request_job(r, member);
        uint32_t fence = g->gang ? g->gang->fence : next_fence(c, j);
        bool first = set_count(&g->members) == 0, alone = runs_alone(c, g, j);
        struct need need;
        enum add filled;

        if (!first && (fence != g->fence || g->alone))
                return ADD_FULL;
        if (alone ? !first || !node_is_free(c, g, j) : c->nodes.clearing.agent == g->queue->agent)
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

/* Adds members that read a file which the agent holds, the one with most held bytes first. */
static enum add group_add_local(struct core *c, struct group *g)
{
        struct inputs *in = request_part_at(g->bucket->request, g->bucket->part)->inputs;
        const struct set *set =
                policy_by_files(c, g->bucket->job_class) ? locality_members(in, g->queue->agent) : NULL;
        struct locality near[NEAR_TRIES];
        uint64_t steps = core_steps(c);
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
        overrun_charge(c, g->job_class, steps);
        if (n > 1)
                qsort(near, n, sizeof(*near), by_held);
        for (size_t i = 0; i < n; i++)
                if (group_add(c, g, near[i].member) == ADD_FULL)
                        return ADD_FULL;
        return ADD_DONE;
}

/* Adds only members that have begun before, since max_materialize leaves no room for new ones. */
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

/* Counts the transfers that begin with an added member; files that all members read are counted once. Returns
 * true when the next group must see these transfers on the link. */
static bool loads_link(struct core *c, struct group *g, uint32_t member)
{
        const struct part *p = request_part_at(g->bucket->request, g->bucket->part);
        uint64_t steps = core_steps(c);

        if (!policy_of_class(c, g->bucket->job_class)->by_links || !p->inputs ||
            !set_has(&g->members, member))
                return false;
        if (g->own_ms == 0)
                g->shared_ms = cost_new_transfers_ms(c, p, MEMBER_ANY, g->queue);
        g->own_ms += cost_new_transfers_ms(c, p, member, g->queue) - g->shared_ms;
        overrun_charge(c, g->job_class, steps);
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

/* Adds members, but none that reads from a store which does not answer at this place: there may be a million
 * of them. Members whose files the place holds were added before. */
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

/* Fills the group with members of its bucket, in the order that suits this queue. */
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

/* Returns whether the account can pay for the members here. Members that it can never pay for stay in the
 * group, all of them, to be held. */
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

        if (g->gang) {
                a.gang_first = g->gang->first;
                a.gang_size = g->gang->size;
                a.gang_machines = g->gang->machines;
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
        g->queue->given_turn = ++c->matching->turns;
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

/* Buckets from which the queue has taken nothing. */
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

/* Returns whether the bucket may have members that need no store which is down at this place. Where members
 * read files of their own, group_add_reached finds out. */
static bool is_reached(struct core *c, const struct bucket *b, const struct queue *q)
{
        return cost_reaches(c, part_of(b), part_of(b)->count == 1 ? part_of(b)->first : MEMBER_ANY, q);
}

/* Returns the first reachable bucket among those on top and some others; each call looks at the next ones. */
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

struct next {
        struct bucket *bucket;
        int64_t since_ms; /* when its first job began to wait for this queue; INT64_MAX: it does not wait for
                             it */
        uint64_t held;    /* bytes of its files that the agent holds */
};

static bool next_before(const struct next *a, const struct next *b)
{
        if (!b->bucket || a->since_ms != b->since_ms)
                return !b->bucket || a->since_ms < b->since_ms;
        return a->held != b->held ? a->held > b->held : order_bucket_before(a->bucket, b->bucket);
}

static int64_t waits_since_ms(const struct bucket *b, const struct queue *q)
{
        const struct place_wait *w =
                q->promised ? place_wait_of(b->request, (uint32_t)set_first(&b->idle)) : NULL;

        return w && w->queue == q ? w->since_ms : INT64_MAX;
}

/* Returns the bucket that this queue serves next, among the first buckets that are level in the order: one
 * whose job has waited for this queue, since it has left another place to others; then the one of whose files
 * the agent holds most, unless the very first has waited too long. NULL: there is none. */
static struct bucket *next_bucket(struct core *c, struct job_class *k, struct queue *q,
                                  const struct passed *passed)
{
        struct bucket *first = job_class_first_bucket(k);
        struct next best = {.bucket = NULL};
        bool data = policy_by_files(c, k) && q->agent->data && !delay_scheduling_is_late(c, first);

        if (agent_data_misses_stores(q->agent->data))
                return next_reached(c, k, q, passed);
        if (!data && passed->n == 0)
                return first;
        for (size_t i = 0; i < k->buckets.count && i < LEVEL_TRIES; i++) {
                struct bucket *b = container_of(k->buckets.nodes[i], struct bucket, node);
                struct next next = {b, waits_since_ms(b, q), 0};

                if (b->priority != first->priority || was_passed(passed, b))
                        continue;
                if (data)
                        next.held = inputs_held(c, request_part_at(b->request, b->part)->inputs, MEMBER_ANY,
                                                q->agent);
                if (next_before(&next, &best))
                        best = next;
        }
        return best.bucket;
}

#define GROUP_FILES                                                                                          \
        100000u /* files of the members of a group, all of which are looked at when it is handed out */

/* Returns how many members a group of at most `most` may have. */
static uint64_t files_most(const struct part *p, uint64_t most)
{
        size_t files = inputs_count(p->inputs);
        uint64_t fit = files ? GROUP_FILES / files + 1 : UINT64_MAX;

        return fit < most ? fit : most;
}

/* With `ret_more`, stops after a group that loads the link. */
static uint64_t dispatch_groups(struct core *c, struct job_class *k, struct queue *q, enum dispatch_what what,
                                uint64_t most, bool *ret_more)
{
        struct passed passed = {.n = 0};
        uint64_t given = 0, quota = order_quota(c, k);
        struct need need;
        bool full, loaded = false;

        most = quota < most ? quota : most;
        while (!loaded && k->idle > 0 && passed.n < PASSED_MAX && given < most) {
                uint64_t n, steps = core_steps(c);
                struct group g = {.job_class = k,
                                  .bucket = next_bucket(c, k, q, &passed),
                                  .queue = q,
                                  .most = most - given,
                                  .fits = what == DISPATCH_FITTING && passed.n == 0 && given == 0};
                bool drawn = g.bucket && !charge_draws(c, k, q, &g.draws, NULL), paid;

                paid = drawn && group_is_paid(c, &g);
                overrun_charge(c, k, steps);
                if (!drawn)
                        break;
                g.most = files_most(part_of(g.bucket), g.most);
                if (paid)
                        group_fill(c, &g, what);
                n = set_count(&g.members);
                given += n;
                steps = core_steps(c);
                if (n)
                        group_hand_out(c, &g);
                overrun_charge(c, k, steps);
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
        return dispatch_groups(c, k, q, what, UINT64_MAX, NULL);
}

uint64_t dispatch_most(struct core *c, struct job_class *k, struct queue *q, uint64_t most)
{
        return dispatch_groups(c, k, q, DISPATCH_ANY, most, NULL);
}

uint64_t dispatch_some(struct core *c, struct job_class *k, struct queue *q, bool *ret_more)
{
        return dispatch_groups(c, k, q, DISPATCH_FITTING, UINT64_MAX, ret_more);
}

/* ---- gangs */

bool dispatch_wanted(struct core *c, const struct bucket *b, uint32_t member, struct queue *q)
{
        const struct part *p = request_part_at(b->request, b->part);
        BUF_CLEANUP struct buf text = {0};
        enum fill_result filled;
        struct need need;
        uint64_t steps;

        if (!member_allowed(c, b->job_class, q, b->request, member) || !cost_reaches(c, p, member, q))
                return false;
        if (!fill_wanted(p))
                return true;
        if (!overrun_may_look(c, b->job_class))
                return false;
        steps = core_steps(c);
        need_of(c, b->job_class, b->job_class->ad, q->ad, &need);
        filled = fill_member(c, b->request, p, member, q, &need, &text);
        overrun_charge(c, b->job_class, steps);
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
                      const struct set *members, const struct dispatch_gang *gang)
{
        struct set left = {0};
        bool stuck = false;

        set_copy(&left, members);
        while (set_count(&left) && !stuck) { /* once, unless members are filled in differently */
                struct group g = {.job_class = k, .bucket = b, .queue = q, .most = UINT64_MAX, .gang = gang};
                int r = charge_draws(c, k, q, &g.draws, NULL);

                SET_FOREACH (&left, m) {
                        if (r != 0 || group_add(c, &g, (uint32_t)m) == ADD_FULL)
                                break;
                }
                /* Everything was checked before, but an expression may exceed its limit now; gang_settle
                 * frees the gang then. */
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
