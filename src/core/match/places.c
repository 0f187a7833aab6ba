/* A bound keeps the search short. A place costs at most what its bin costs, where nothing is held, and at
 * least what the cheapest cost class would cost if it held every file that any agent holds. Once a place
 * costs no more than that lower bound the search ends, so an image that all agents hold is as cheap to search
 * for as one that none holds. */
#include "core/match/places.h"

#include "core/data/cost.h"
#include "core/data/data_state.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/data/locality.h"
#include "core/index/index.h"
#include "core/match/choose.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/match/policy.h"
#include "core/model/core_parts.h"
#include "core/model/need.h"

/* Files of a job that are looked at, the largest first, and agents that hold one of them. */
#define FILES_MAX   32u
#define HOLDERS_MAX 256u
/* Cost terms are rounded one by one for a place and together for a bin, so equal costs may differ by this
 * much. */
#define ROUNDED_MS 5
/* Buckets of a class whose agents with cached files are looked at. */
#define BUCKETS_MAX 64u

struct found_file {
        struct file *file;
        uint64_t bytes;
};

struct search {
        struct core *core;
        struct job_class *job_class;
        const struct part *part;
        uint32_t member;
        uint64_t choice, number;
        struct cost_load load;     /* all of its files */
        struct cost_load not_held; /* those that nobody holds, the part of them that must come anywhere */
        uint64_t held_bytes;       /* of those that somebody holds */
        struct found_file files[FILES_MAX];
        unsigned file_count;
        double floor; /* nothing costs less */
        bool down;    /* some place was left out since a store does not answer there */
        struct candidate best;
};

void places_begin(struct places *w, struct core *c, struct job_class *k)
{
        *w = (struct places){.core = c, .job_class = k, .choice = ++c->matching->choice};
}

static void note_file(struct search *s, struct file *f, uint64_t bytes)
{
        unsigned i = s->file_count;

        if (i == FILES_MAX && s->files[i - 1].bytes >= bytes)
                return;
        if (i == FILES_MAX)
                i--;
        else
                s->file_count++;
        for (; i > 0 && s->files[i - 1].bytes < bytes; i--)
                s->files[i] = s->files[i - 1];
        s->files[i] = (struct found_file){f, bytes};
}

static bool on_file(void *arg, const struct input *f)
{
        struct search *s = arg;
        struct file *held = s->core->data->files ? idmap_get(s->core->data->files, f->id) : NULL,
                    *inflight = s->core->data->inflight ? idmap_get(s->core->data->inflight, f->id) : NULL;

        cost_load_add(&s->load, f, 1);
        if (!held || inflight) /* a file that is on its way to a place is no further load there */
                cost_load_add(&s->not_held, f, held ? 0 : inflight ? INFLIGHT_PART : 1);
        if (held)
                s->held_bytes += f->bytes;
        if (held)
                note_file(s, held, f->bytes);
        if (inflight)
                note_file(s, inflight, f->bytes);
        return true;
}

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
        if (!b->queue || a->cost != b->cost)
                return !b->queue || a->cost < b->cost;
        if (a->queue->cpus != b->queue->cpus)
                return a->queue->cpus > b->queue->cpus;
        return a->queue->index.serial < b->queue->index.serial;
}

/* Compares a place with the best so far. The cost comes first, since it rules out most places. */
static bool consider(struct search *s, struct queue *q)
{
        struct candidate x = {.queue = q};
        struct need need;

        if (q->seen == s->choice || !overrun_may_look(s->core, s->job_class))
                return false;
        x.cost = choose_class_cost(s->core, s->job_class, s->part, s->member, q);
        if (x.cost >= (double)COST_NOWHERE) {
                s->down = true;
                return false;
        }
        if (s->best.queue && !goes_before(&x, &s->best))
                return true;
        if (!choose_fits(s->core, s->job_class, q, &need))
                return false;
        s->best = x;
        return true;
}

static double load_cost(const struct search *s, const struct cost_load *l, const struct cost_class *p)
{
        enum core_placement placement = policy_of(s->core, s->part)->placement;
        int64_t ms = placement == CORE_PLACE_BLIND ? 0 : cost_of_load_ms(s->core, s->part, l, p);

        if (placement == CORE_PLACE_CACHED && ms < COST_NOWHERE)
                ms = 0;
        return (double)ms + choose_order(p->search_order);
}

static void on_bin(void *arg, struct offer_bin *b)
{
        struct search *s = arg;
        struct cost_class *p = b->cost_class;
        struct queue *q = NULL;

        if (p->asked != s->number) {
                p->asked = s->number;
                p->cost = load_cost(s, &s->load, p);
                p->least = s->file_count ? load_cost(s, &s->not_held, p) : p->cost;
        }
        s->floor = p->least < s->floor ? p->least : s->floor;
        if (p->cost >= (double)COST_NOWHERE) { /* agents that hold the file are compared separately */
                s->down = true;
                return;
        }
        if (s->best.queue &&
            (p->cost > s->best.cost || (p->cost == s->best.cost && offer_bin_cpus(b) <= s->best.queue->cpus)))
                return;
        do
                q = offer_bin_next(b, s->job_class, q);
        while (q && !consider(s, q));
}

static bool good_enough(const struct search *s)
{
        double floor = policy_of(s->core, s->part)->placement == CORE_PLACE_CACHED ? -(double)s->held_bytes
                                                                                   : s->floor;

        return s->best.queue && s->best.cost <= floor + ROUNDED_MS;
}

static void ask_holders(struct search *s, struct file *f)
{
        uint32_t n = f->count < HOLDERS_MAX ? f->count : HOLDERS_MAX, first = f->next % f->count;

        for (uint32_t i = 0; i < n && !good_enough(s); i++) {
                uint32_t at = (first + i) % f->count;

                for (struct queue *q = f->holders[at]->queues; q; q = q->next) {
                        s->core->matching->looks++;
                        if (q->index.node.weight)
                                consider(s, q);
                }
                f->next = at;
        }
}

/* Checks the choice by comparing every offer (config.check_choices). */
static bool is_best(struct search *s)
{
        struct candidate best = {0};
        uint64_t looks = s->core->matching->looks;
        struct index_offers w;
        struct queue *q;
        struct need need;

        index_offers_begin(&w, s->job_class);
        while ((q = index_offers_next(&w)) != NULL) {
                struct candidate x = {.queue = q};

                if (q->seen == s->choice || !choose_fits(s->core, s->job_class, q, &need))
                        continue;
                x.cost = choose_cost(s->core, s->part, s->member, q);
                if (x.cost < (double)COST_NOWHERE && goes_before(&x, &best))
                        best = x;
        }
        index_offers_end(&w);
        s->core->matching->looks = looks;
        return s->best.queue ? best.queue && s->best.cost <= best.cost + ROUNDED_MS : !best.queue;
}

struct queue *places_next(struct places *w)
{
        struct search s = {.core = w->core, .job_class = w->job_class, .choice = w->choice, .floor = 1e18};
        uint64_t steps = core_steps(w->core);
        const struct bucket *b;

        if (w->job_class->idle == 0 || !overrun_may_look(w->core, w->job_class))
                return NULL;
        b = job_class_first_bucket(w->job_class);
        s.part = request_part_at(b->request, b->part);
        s.member = (uint32_t)set_first(&b->idle);
        if (policy_of(s.core, s.part)->placement != CORE_PLACE_BLIND)
                inputs_each(s.core, s.part->inputs, s.member, on_file, &s);
        overrun_charge(w->core, w->job_class, steps);
        s.number = ++s.core->matching->searches;
        offer_bins_settle(s.core);
        offer_bins_each(s.job_class, on_bin, &s);
        for (unsigned i = 0; i < s.file_count && !good_enough(&s); i++)
                ask_holders(&s, s.files[i].file);
        if (s.core->config.check_choices && !is_best(&s))
                s.core->matching->wrong_choice = true;
        if (s.best.queue)
                s.best.queue->seen = w->choice;
        w->down |= s.down;
        return s.best.queue;
}

void places_again(struct queue *q)
{
        q->seen = 0;
}

/* ---- agents that hold files */

static size_t local_of_bucket(struct core *c, struct job_class *k, const struct bucket *b,
                              struct candidate *ret, size_t n, size_t max)
{
        const struct part *p = request_part_at(b->request, b->part);
        const struct set *members;
        struct core_agent *a;
        struct need need;

        for (size_t at = 0; n < max && (members = locality_next(p->inputs, &at, &a)) != NULL;)
                for (struct queue *q = a->queues; q && n < max; q = q->next) {
                        uint64_t m;

                        c->matching->looks++;
                        if (!q->index.node.weight || q->seen == c->matching->choice)
                                continue;
                        m = set_first_common(members, &b->idle);
                        if (m == SET_END || !choose_fits(c, k, q, &need) ||
                            !cost_reaches(c, p, (uint32_t)m, q))
                                continue;
                        q->seen = c->matching->choice;
                        ret[n++] = (struct candidate){.queue = q,
                                                      .cost = choose_class_cost(c, k, p, (uint32_t)m, q)};
                }
        return n;
}

size_t places_local(struct core *c, struct job_class *k, struct candidate *ret, size_t max)
{
        size_t n = 0;

        c->matching->choice++;
        for (size_t i = 0; policy_by_files(c, k) && i < k->buckets.count && i < BUCKETS_MAX; i++) {
                const struct bucket *b = container_of(k->buckets.nodes[i], struct bucket, node);

                n = local_of_bucket(c, k, b, ret, n, max);
        }
        choose_sort(ret, n);
        return n;
}
