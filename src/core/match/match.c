/* Matching: decides which classes and offers are compared, and in which order.
 *
 * A pass looks at pairs of which at least one side is new: each offer that changed against all ready classes
 * in their order, then each class that has become ready against all parked offers. The index (index.h) leaves
 * out pairs that Requirements surely refuse and queues without room, so the work grows with the pairs that
 * might match. A class that prefers some places to others meets all offers at once when its turn comes; an
 * offer that prefers some jobs chooses among the classes between which the order does not decide.
 */
#include "base/heap.h"
#include "base/mem.h"
#include "core/classes/job_class.h"
#include "core/dependency/dependency.h"
#include "core/fairness/charge.h"
#include "core/fairness/order.h"
#include "core/gang/gang.h"
#include "core/index/index.h"
#include "core/match/choose.h"
#include "core/match/dispatch.h"
#include "core/match/gang_place.h"
#include "core/match/matching.h"
#include "core/match/places.h"
#include "core/match/policy.h"
#include "core/model/gang_rule.h"
#include "core/model/need.h"
#include "core/model/pending_match.h"
#include "core/model/precedence.h"

/* A pass ends after this many looks (a few milliseconds); the next pass continues. */
#define LOOKS_MAX 10000u
/* Classes among which an offer chooses at a time. */
#define CHOICE_MAX 1000u
/* Places compared for a class with a Rank, those with most room first. */
#define RANKED_MAX 5000u
/* Shares of a place for which a class is divided, under a policy that spreads its jobs. */
#define SPREAD_PARTS 8u
/* Groups of jobs that such a class is given in one pass (some milliseconds); the next pass continues. */
#define SPREAD_GROUPS_MAX 2000u
/* Places that hold files of its members compared for a class without one. */
#define LOCAL_MAX 512u

/* Sorts the class whose turn is next to the end of the array, from where it is taken. */
static int by_order(const void *x, const void *y)
{
        const struct job_class *a = *(struct job_class *const *)x, *b = *(struct job_class *const *)y;

        return order_class_before(a, b) ? 1 : order_class_before(b, a) ? -1 : 0;
}

/* Sorts the queue that is matched next to the end: queues that prefer some jobs come first, then those with
 * more free processors. */
static int by_room(const void *x, const void *y)
{
        const struct queue *a = *(struct queue *const *)x, *b = *(struct queue *const *)y;

        if (choose_offer_prefers(a) != choose_offer_prefers(b))
                return choose_offer_prefers(a) ? 1 : -1;
        if (a->cpus != b->cpus)
                return a->cpus > b->cpus ? 1 : -1;
        return (a->index.serial < b->index.serial) - (a->index.serial > b->index.serial);
}

static struct job_class *next_dirty(struct core *c)
{
        struct job_class *k;

        if (!c->pending->dirty_sorted && c->pending->dirty_count > 1)
                qsort(c->pending->dirty, c->pending->dirty_count, sizeof(struct job_class *), by_order);
        for (size_t i = 0; !c->pending->dirty_sorted && i < c->pending->dirty_count; i++)
                c->pending->dirty[i]->dirty_at = i + 1;
        c->pending->dirty_sorted = true;
        k = c->pending->dirty[--c->pending->dirty_count];
        k->dirty_at = 0;
        return k;
}

static struct queue *next_changed(struct core *c)
{
        struct queue *q;

        if (!c->pending->changed_sorted && c->pending->changed_count > 1)
                qsort(c->pending->changed, c->pending->changed_count, sizeof(struct queue *), by_room);
        for (size_t i = 0; !c->pending->changed_sorted && i < c->pending->changed_count; i++)
                c->pending->changed[i]->changed_at = i + 1;
        c->pending->changed_sorted = true;
        q = c->pending->changed[--c->pending->changed_count];
        q->changed_at = 0;
        return q;
}

/* Dispatches a class that has no preference: places in the order of their room. */
static void class_meets_offers(struct core *c, struct job_class *k)
{
        struct index_offers w;
        struct queue *q;
        struct need need;

        index_offers_begin(&w, k);
        while (k->idle > 0 && !order_turn_is_over(c, k) && (q = index_offers_next(&w)) != NULL)
                if (choose_fits(c, k, q, &need))
                        dispatch(c, k, q, DISPATCH_FITTING);
        index_offers_end(&w);
}

/* Dispatches a class with a Rank, which has to be evaluated for every place. */
static void class_ranks(struct core *c, struct job_class *k)
{
        struct candidate *found = NULL;
        size_t n = 0, cap = 0;
        struct index_offers w;
        struct queue *q;
        struct need need;

        index_offers_begin(&w, k);
        while (n < RANKED_MAX && (q = index_offers_next(&w)) != NULL)
                if (choose_fits(c, k, q, &need)) {
                        MEM_GROW(found, cap, n + 1);
                        found[n++] = choose_worth(c, k, q);
                }
        index_offers_end(&w);
        choose_sort(found, n);
        for (size_t i = 0; n > 1 && i < n && k->idle > 0 && !order_turn_is_over(c, k); i++)
                dispatch(c, k, found[i].queue, DISPATCH_LOCAL);
        for (size_t i = 0; i < n && k->idle > 0 && !order_turn_is_over(c, k); i++)
                dispatch(c, k, found[i].queue, DISPATCH_ANY);
        free(found);
}

/* A place that takes its share under a policy that spreads jobs. */
struct spread_place {
        struct heap_node node;
        struct candidate at;
        uint64_t given; /* jobs, in this pass */
};

static bool spread_before(const struct heap_node *x, const struct heap_node *y)
{
        const struct spread_place *p = container_of(x, const struct spread_place, node),
                                  *q = container_of(y, const struct spread_place, node);
        const struct candidate *a = &p->at, *b = &q->at;

        if (a->rank != b->rank)
                return a->rank > b->rank;
        if (a->cost != b->cost)
                return a->cost < b->cost;
        if (p->given != q->given)
                return p->given < q->given;
        if (a->queue->given_turn != b->queue->given_turn)
                return a->queue->given_turn < b->queue->given_turn;
        return choose_better(a, b) < 0;
}

static size_t spread_find(struct core *c, struct job_class *k, struct spread_place *found)
{
        struct index_offers w;
        struct queue *q;
        struct need need;
        size_t n = 0;

        index_offers_begin(&w, k);
        while (n < RANKED_MAX && (q = index_offers_next(&w)) != NULL)
                if (choose_fits(c, k, q, &need))
                        found[n++] = (struct spread_place){.at = choose_worth(c, k, q)};
        index_offers_end(&w);
        return n;
}

/* Dispatches a class whose policy spreads jobs: some at a time to the place that is best then. What a place
 * was given never makes it or another one better, so a place whose cost is old is looked at again when its
 * turn comes. */
static void class_spreads(struct core *c, struct job_class *k)
{
        struct spread_place *found = mem_array(NULL, RANKED_MAX, sizeof(*found));
        struct heap h = {.before = spread_before};
        size_t n = spread_find(c, k, found), groups = 0;

        for (size_t i = 0; i < n; i++)
                heap_put(&h, &found[i].node);
        while (h.count && k->idle > 0 && !order_turn_is_over(c, k) && groups < SPREAD_GROUPS_MAX) {
                struct spread_place *x = container_of(heap_first(&h), struct spread_place, node);
                double cost = choose_worth(c, k, x->at.queue).cost;
                uint64_t share = k->idle / (h.count * SPREAD_PARTS), given;

                if (cost > x->at.cost) {
                        x->at.cost = cost;
                        heap_moved(&h, &x->node);
                        continue;
                }
                share = share ? share : 1;
                given = dispatch_most(c, k, x->at.queue, share);
                x->given += given;
                groups++;
                if (given < share)
                        heap_take(&h, &x->node);
                else
                        heap_moved(&h, &x->node);
        }
        if (groups == SPREAD_GROUPS_MAX && h.count && k->idle > 0) {
                k->met_at = 0;
                job_class_look_again(c, k);
        }
        heap_deinit(&h);
        free(found);
}

/* Dispatches a class whose places are compared by cost. Members whose files a free place holds go there
 * first, before any place takes the rest. */
static void class_costs(struct core *c, struct job_class *k)
{
        struct candidate near[LOCAL_MAX];
        size_t n = places_local(c, k, near, LOCAL_MAX);
        uint64_t passed_over = c->matching->passed_over;
        struct places w;
        struct queue *q;

        for (size_t i = 0; i < n && k->idle > 0 && !order_turn_is_over(c, k); i++)
                dispatch(c, k, near[i].queue, DISPATCH_LOCAL);
        places_begin(&w, c, k);
        while (k->idle > 0 && !order_turn_is_over(c, k) && (q = places_next(&w)) != NULL) {
                bool more;

                passed_over = c->matching->passed_over;
                /* The remaining members wait for a busy place that is better than the best free one. */
                if (dispatch_some(c, k, q, &more) == 0 && c->matching->passed_over != passed_over)
                        break;
                if (more)
                        places_again(q);
        }
        /* A store that the first job needs does not answer at some places; other members may not need it. */
        if (w.down && k->idle > 0 && !order_turn_is_over(c, k) && c->matching->passed_over == passed_over)
                class_meets_offers(c, k);
}

/* Dispatches a class that prefers some places to others. */
static void class_chooses(struct core *c, struct job_class *k)
{
        if (k->met_at == c->pending->offers_new)
                return; /* nobody has more for it than when it chose */
        k->met_at = c->pending->offers_new;
        k->passed_over = false;
        if (policy_of_class(c, k)->spreads)
                class_spreads(c, k);
        else if (k->has_rank)
                class_ranks(c, k);
        else
                class_costs(c, k);
        if (order_turn_is_over(c, k))
                k->met_at = 0; /* it has not seen the end of them */
}

/* Matches an offer with the class whose turn it is and which can use the offer. */
static void pair(struct core *c, struct job_class *k, struct queue *q, enum dispatch_what what)
{
        if (k->met_at == c->pending->offers_new || charge_must_wait(c, k))
                return;
        if (gang_class(k))
                gang_place(c, k);
        else if (choose_class_prefers(c, k) && (c->pending->changed_count > 0 || k->dirty_at))
                class_chooses(c, k);
        else
                dispatch(c, k, q, what);
        if (k->idle > 0)
                charge_must_wait(c, k); /* queues the class for a concurrency limit that is used up */
}

static void offer_meets_classes(struct core *c, struct queue *q)
{
        struct index_classes w;
        struct job_class *k;
        struct need need;
        bool moved;

        do { /* starts from the front again when the order of classes has changed */
                moved = false;
                index_classes_begin(&w, c, q);
                while (!moved && q->jobs_left > 0 && (k = index_classes_next(&w)) != NULL)
                        if (k->met_at != c->pending->offers_new && choose_fits(c, k, q, &need)) {
                                pair(c, k, q, DISPATCH_FITTING);
                                moved = order_settle(c);
                        }
                index_classes_end(&w);
        } while (moved && q->jobs_left > 0);
}

/* Dispatches the classes between which the order does not decide, from `first` on, the one that the offer
 * likes best first. Returns true when the order of classes has changed, which ends the walk. */
static bool choose_among_level(struct core *c, struct queue *q, struct index_classes *w,
                               struct job_class **first, struct liked *found)
{
        struct job_class *k = *first;
        struct need need;
        size_t n;

        for (n = 0; k && n < CHOICE_MAX && order_class_level(*first, k); k = index_classes_next(w))
                if (choose_fits(c, k, q, &need)) {
                        found[n] = choose_liking(c, q, k, n);
                        n++;
                }
        choose_sort_liked(found, n);
        for (size_t i = 0; i < n && q->jobs_left > 0; i++) {
                pair(c, found[i].job_class, q, DISPATCH_ANY);
                if (order_settle(c))
                        return true;
        }
        *first = k;
        return false;
}

/* Matches an offer that prefers some jobs: it chooses among the classes that are level in the order. */
static void offer_chooses(struct core *c, struct queue *q)
{
        struct liked *found = mem_array(NULL, CHOICE_MAX, sizeof(*found));
        struct index_classes w;
        struct job_class *k;
        bool moved;

        do {
                moved = false;
                index_classes_begin(&w, c, q);
                k = index_classes_next(&w);
                while (k && q->jobs_left > 0 && !moved)
                        moved = choose_among_level(c, q, &w, &k, found);
                index_classes_end(&w);
        } while (moved && q->jobs_left > 0);
        free(found);
}

bool core_match(struct core *c)
{
        uint64_t until;

        if (core_rekey_slice(c))
                return true;
        dependency_settle(c);
        gang_settle(c);
        c->listeners.matching(c);
        gang_place_authorised(c);
        until = c->matching->looks + LOOKS_MAX;
        order_refresh(c);
        while (c->pending->changed_count && c->matching->looks < until) {
                struct queue *q = next_changed(c);

                if (choose_offer_prefers(q))
                        offer_chooses(c, q);
                else
                        offer_meets_classes(c, q);
                eval_reset(&c->eval);
        }
        while (c->pending->dirty_count && c->matching->looks < until) {
                struct job_class *k = next_dirty(c);

                if (charge_must_wait(c, k))
                        continue;
                if (gang_class(k))
                        gang_place(c, k);
                else if (choose_class_prefers(c, k))
                        class_chooses(c, k);
                else
                        class_meets_offers(c, k);
                if (k->idle > 0 && !charge_must_wait(c, k) && order_turn_is_over(c, k))
                        job_class_look_again(c, k);
                order_settle(c);
                eval_reset(&c->eval);
        }
        return c->pending->changed_count || c->pending->dirty_count;
}
