/* Matching: who meets whom. Classes of idle jobs in their order (order.h), against the offers that are
 * parked.
 *
 * A pass looks at pairs of which at least one is new since the last pass: a class that has become ready
 * against all offers, an offer that changed against all ready classes. For each class choose.c says which
 * offers it can use, best first; give.c gives them members, first to each the jobs whose files it holds, then
 * to one after the other until the class or the offers are used up.
 */
#include "classad/match.h"
#include "base/mem.h"
#include "core/better.h"
#include "core/choose.h"
#include "core/claim.h"
#include "core/give.h"
#include "core/order.h"

/* An offer with a Rank chooses by it among the classes that the order leaves to it. */
static void sort_for_rank(struct core *c, struct queue *q, struct class **classes, size_t count)
{
        double *rank = mem_array(NULL, count, sizeof(*rank));

        for (size_t i = 0; i < count; i++)
                rank[i] = match_rank(&c->eval, q->ad, classes[i]->ad);
        for (size_t i = 1; i < count; i++) { /* insertion: stable, and mostly sorted already */
                struct class *k = classes[i];
                double r = rank[i];
                size_t at = i;

                while (at > 0 && order_class_level(classes[at - 1], k) && rank[at - 1] < r) {
                        classes[at] = classes[at - 1];
                        rank[at] = rank[at - 1];
                        at--;
                }
                classes[at] = k;
                rank[at] = r;
        }
        free(rank);
}

struct offers {
        struct queue **v;
        size_t n, cap;
};

static void offers_add(struct offers *o, struct queue *q)
{
        if (!q->agent->connected || !q->offers || q->jobs_left == 0)
                return;
        MEM_GROW(o->v, o->cap, o->n + 1);
        o->v[o->n++] = q;
}

static void offers_all(struct core *c, struct offers *o)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        offers_add(o, q);
}

/* Offers that prefer some jobs choose first, each over all classes. */
static void match_ranked(struct core *c, const struct offers *changed, struct class **classes)
{
        for (size_t i = 0; i < changed->n; i++) {
                struct queue *q = changed->v[i];
                size_t count = c->ready_count;

                if (!q->has_rank)
                        continue;
                class_ready_sort(c);
                memcpy(classes, c->ready, count * sizeof(struct class *));
                sort_for_rank(c, q, classes, count);
                for (size_t k = 0; k < count && q->jobs_left; k++) {
                        struct need need;

                        if (classes[k]->idle && !claim_must_wait(c, classes[k]) &&
                            choose_fits(c, classes[k], q, &need))
                                give(c, classes[k], q, GIVE_ANY);
                }
        }
}

static void match_class(struct core *c, struct class *k, const struct offers *o, struct candidate *found)
{
        size_t n = claim_must_wait(c, k) ? 0 : choose_offers(c, k, o->v, o->n, found);

        for (size_t i = 0; n > 1 && i < n && k->idle > 0; i++)
                give(c, k, found[i].queue, GIVE_NEAR);
        for (size_t i = 0; i < n && k->idle > 0; i++)
                give(c, k, found[i].queue, GIVE_ANY);
        if (k->idle > 0)
                claim_must_wait(c, k);
}

void core_match(struct core *c)
{
        struct offers changed = {0}, all = {0};
        struct class **classes;
        struct candidate *found;
        size_t count = c->ready_count;
        bool any_dirty = false;

        if (!c->match_wanted || c->config.shadow)
                return;
        c->match_wanted = false;
        better_pass_begins(c);
        for (size_t i = 0; i < c->changed_count; i++)
                offers_add(&changed, c->changed[i]);
        classes = mem_array(NULL, count + 1, sizeof(struct class *));
        match_ranked(c, &changed, classes);
        class_ready_sort(c);
        count = c->ready_count;
        if (count)
                memcpy(classes, c->ready, count * sizeof(struct class *));
        for (size_t i = 0; i < count; i++)
                any_dirty |= classes[i]->dirty;
        if (any_dirty)
                offers_all(c, &all);
        found = mem_array(NULL, changed.n + all.n + 1, sizeof(*found));
        for (size_t i = 0; i < count; i++) {
                const struct offers *o = classes[i]->dirty ? &all : &changed;

                if (classes[i]->idle && o->n)
                        match_class(c, classes[i], o, found);
        }
        for (size_t i = 0; i < count; i++)
                classes[i]->dirty = false;
        for (size_t i = 0; i < c->changed_count; i++)
                c->changed[i]->dirty = false;
        c->changed_count = 0;
        free(found);
        free(classes);
        free(changed.v);
        free(all.v);
}
