/* Job signatures and offer signatures are made when a class or queue with a new side (side.h) arrives, and
 * are then compared once with all of the other sort. A newly learned name is used by signatures made later;
 * existing ones are made again in slices, and until then clauses with that name exclude nothing for them. */
#include "core/index/index.h"

#include <assert.h>

#include "base/mem.h"
#include "classad/print.h"
#include "core/index/signature.h"
#include "core/model/core_parts.h"
#include "core/model/precedence.h"

/* A name whose value changes more often than this, and more than eight times for each queue, is not indexed.
 */
#define CHANGES_MAX 64u

/* ---- names that are never indexed */

static bool queue_moves(const struct core *c, symbol name)
{
        const struct attributes *a = &c->attr;
        const symbol moving[] = {a->Cpus,          a->Memory,       a->Disk,         a->GPUs,
                                 a->LoadAvg,       a->TotalLoadAvg, a->KeyboardIdle, a->ConsoleIdle,
                                 a->MyCurrentTime, a->State,        a->Activity};

        for (size_t i = 0; i < sizeof(moving) / sizeof(moving[0]); i++)
                if (name == moving[i])
                        return true;
        return false;
}

/* Resources are handled by the trees; owners are looked up separately; the rest differs from job to job. */
static bool class_moves(const struct core *c, symbol name)
{
        const struct attributes *a = &c->attr;
        const symbol moving[] = {a->RequestCpus, a->RequestMemory, a->RequestDisk,    a->RequestGPUs,
                                 a->Owner,       a->User,          a->JobPrio,        a->ProcId,
                                 a->ClusterId,   a->QDate,         a->GlobalJobId,    a->NumJobStarts,
                                 a->JobStatus,   a->JobRunCount,   a->NumShadowStarts};

        for (size_t i = 0; i < sizeof(moving) / sizeof(moving[0]); i++)
                if (name == moving[i])
                        return true;
        return str_istarts(symbols_name(c->symbols, name), STR("Request"));
}

/* ---- trees */

static int64_t least(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

static struct index_place *index_place_of(const struct tree_node *n)
{
        return container_of(n, struct index_place, node);
}

static void sum_least(struct tree_node *n)
{
        struct index_place *p = index_place_of(n);

        p->least = p->job_class->index.need;
        for (int i = 0; i < ROOM_KINDS; i++) {
                if (n->left)
                        p->least.v[i] = least(p->least.v[i], index_place_of(n->left)->least.v[i]);
                if (n->right)
                        p->least.v[i] = least(p->least.v[i], index_place_of(n->right)->least.v[i]);
        }
}

static bool class_before(const struct tree_node *x, const struct tree_node *y)
{
        const struct job_class *a = index_place_of(x)->job_class, *b = index_place_of(y)->job_class;

        if (order_class_before(a, b))
                return true;
        return !order_class_before(b, a) && a->index.serial < b->index.serial;
}

static struct queue *index_queue_of(const struct tree_node *n)
{
        return container_of(n, struct queue, index.node);
}

struct room index_queue_room(const struct queue *q)
{
        return (struct room){{q->cpus, q->memory_mib, q->disk_kib}};
}

bool room_within(const struct room *need, const struct room *has)
{
        for (int i = 0; i < ROOM_KINDS; i++)
                if (need->v[i] > has->v[i])
                        return false;
        return true;
}

static void sum_most(struct tree_node *n)
{
        struct queue *q = index_queue_of(n);

        q->index.most = index_queue_room(q);
        for (int i = 0; i < ROOM_KINDS; i++) {
                if (n->left)
                        q->index.most.v[i] =
                                -least(-q->index.most.v[i], -index_queue_of(n->left)->index.most.v[i]);
                if (n->right)
                        q->index.most.v[i] =
                                -least(-q->index.most.v[i], -index_queue_of(n->right)->index.most.v[i]);
        }
}

static bool queue_before(const struct tree_node *x, const struct tree_node *y)
{
        const struct queue *a = index_queue_of(x), *b = index_queue_of(y);

        if (a->cpus != b->cpus)
                return a->cpus > b->cpus;
        return a->index.serial < b->index.serial;
}

/* ---- signatures */

static void let_go(struct index_signature *p)
{
        if (p->users == 0 && p->held == 0)
                free(p);
}

struct index_signature *index_meet(struct index_signature *p, size_t n)
{
        while (n < p->meet_count) {
                struct index_signature *other = p->meets[n];

                if (other->users)
                        return other;
                p->meets[n] = p->meets[--p->meet_count];
                other->held--;
                let_go(other);
        }
        return NULL;
}

static void add_meeting(struct index_signature *p, struct index_signature *other)
{
        if (p->meet_count > 2 * p->meet_clean + 8) {
                for (size_t i = 0; index_meet(p, i); i++)
                        ;
                p->meet_clean = p->meet_count;
        }
        MEM_GROW(p->meets, p->meet_cap, p->meet_count + 1);
        p->meets[p->meet_count++] = other;
        other->held++;
}

static void signature_add(struct core *c, struct index_signatures *mine, struct index_signatures *others,
                          struct index_signature *p)
{
        map_put(mine->by_text, buf_view(&p->side.text), p);
        MEM_GROW(mine->all, mine->cap, mine->count + 1);
        mine->all[mine->count++] = p;
        p->at = mine->count;
        for (size_t i = 0; i < others->count; i++) {
                struct index_signature *other = others->all[i];
                bool of_jobs = mine == &c->index->job_signatures;

                if (!index_sides_meet(c, of_jobs ? &p->side : &other->side,
                                      of_jobs ? &other->side : &p->side))
                        continue;
                add_meeting(p, other);
                add_meeting(other, p);
        }
}

static void signature_drop(struct index_signatures *mine, struct index_signature *p)
{
        struct index_signature *last;

        if (--p->users)
                return;
        last = mine->all[--mine->count];
        mine->all[p->at - 1] = last;
        last->at = p->at;
        map_take(mine->by_text, buf_view(&p->side.text));
        for (size_t i = 0; i < p->meet_count; i++) {
                p->meets[i]->held--;
                let_go(p->meets[i]);
        }
        free(p->meets);
        p->meets = NULL;
        p->meet_count = 0;
        index_side_deinit(&p->side);
}

static struct job_signature *job_signature_get(struct core *c, const struct job_class *job_class)
{
        const struct index_side_how how = {.own = &c->index->job_signatures.names,
                                           .other = &c->index->offer_signatures.names,
                                           .other_moves = queue_moves,
                                           .demands = true,
                                           .labels = job_class->labels,
                                           .who = str_of(job_class->owner),
                                           .asks = job_class->fixed ? &job_class->more : NULL};
        struct index_side side;
        struct index_signature *p;
        struct job_signature *g;

        index_side_make(c, job_class->ad, &how, &side);
        p = map_get(c->index->job_signatures.by_text, buf_view(&side.text));
        if (p) {
                index_side_deinit(&side);
                p->users++;
                return job_signature_of(p);
        }
        g = mem_new(struct job_signature);
        g->signature.side = side;
        g->signature.users = 1;
        g->classes = (struct tree){.before = class_before, .sum = sum_least};
        g->owners = map_new();
        signature_add(c, &c->index->job_signatures, &c->index->offer_signatures, &g->signature);
        return g;
}

static void job_signature_drop(struct core *c, struct job_signature *g)
{
        void *value;

        assert(g->signature.users > 1 || g->classes.count == 0);
        if (g->signature.users == 1) {
                for (size_t at = 0; map_next(g->owners, &at, NULL, &value);)
                        free(value);
                map_free(g->owners);
        }
        g->signature.held++;
        signature_drop(&c->index->job_signatures, &g->signature);
        g->signature.held--;
        let_go(&g->signature);
}

static void add_owners(const struct queue *q, struct buf *text)
{
        for (size_t i = 0; i < q->owners.count; i++) {
                buf_char(text, '\n');
                buf_str(text, q->owners.items[i]);
        }
}

static struct offer_signature *offer_signature_get(struct core *c, const struct queue *q)
{
        const struct index_side_how how = {.own = &c->index->offer_signatures.names,
                                           .other = &c->index->job_signatures.names,
                                           .own_moves = queue_moves,
                                           .other_moves = class_moves,
                                           .demands = !q->job_specific,
                                           .own_is_shown = true,
                                           .labels = q->agent->cleared,
                                           .who = str_of(q->agent->name)};
        struct index_side side;
        struct index_signature *p;
        struct offer_signature *k;

        index_side_make(c, q->ad, &how, &side);
        add_owners(q, &side.text);
        p = map_get(c->index->offer_signatures.by_text, buf_view(&side.text));
        if (p) {
                index_side_deinit(&side);
                p->users++;
                return offer_signature_of(p);
        }
        k = mem_new(struct offer_signature);
        k->signature.side = side;
        k->signature.users = 1;
        k->queues = (struct tree){.before = queue_before, .sum = sum_most};
        signature_add(c, &c->index->offer_signatures, &c->index->job_signatures, &k->signature);
        return k;
}

static void offer_signature_drop(struct core *c, struct offer_signature *k)
{
        assert(k->signature.users > 1 || k->queues.count == 0);
        if (k->signature.users == 1)
                offer_signature_empty(k);
        k->signature.held++;
        signature_drop(&c->index->offer_signatures, &k->signature);
        k->signature.held--;
        let_go(&k->signature);
}

/* ---- learned names */

struct learnt {
        unsigned job_signatures, offer_signatures;
};

static struct learnt learnt_before(const struct index *x)
{
        return (struct learnt){x->job_signatures.names.n, x->offer_signatures.names.n};
}

/* Existing classes and queues must be updated for new names. */
static void learnt_since(struct index *x, struct learnt before)
{
        if (x->job_signatures.names.n > before.job_signatures)
                x->class_slice = 0;
        if (x->offer_signatures.names.n > before.offer_signatures)
                x->queue_slice = 0;
}

/* ---- classes */

static void owner_tree(struct job_class *k, bool in)
{
        struct job_signature *g = k->index.signature;
        struct index_owner *o = map_get(g->owners, str_of(k->owner));

        if (!o) {
                o = mem_new(struct index_owner);
                o->classes = (struct tree){.before = class_before, .sum = sum_least};
                map_put(g->owners, str_of(k->owner), o);
        }
        if (!in)
                tree_take(&o->classes, &k->index.in_owner.node);
        else if (k->index.in_owner.node.weight)
                tree_moved(&o->classes, &k->index.in_owner.node);
        else
                tree_put(&o->classes, &k->index.in_owner.node);
        if (o->classes.count == 0) {
                map_take(g->owners, str_of(k->owner));
                free(o);
        }
}

void index_class_changed(struct core *c, struct job_class *k)
{
        struct index_class *i = &k->index;

        (void)c;
        if (k->idle == 0) {
                if (i->in_signature.node.weight)
                        owner_tree(k, false);
                tree_take(&i->signature->classes, &i->in_signature.node);
                return;
        }
        if (i->in_signature.node.weight)
                tree_moved(&i->signature->classes, &i->in_signature.node);
        else
                tree_put(&i->signature->classes, &i->in_signature.node);
        owner_tree(k, true);
}

void index_class_add(struct core *c, struct job_class *k)
{
        struct index *x = c->index;
        struct learnt before = learnt_before(x);

        k->index = (struct index_class){.serial = ++x->serial};
        k->index.in_signature.job_class = k->index.in_owner.job_class = k;
        if (k->fixed)
                k->index.need = (struct room){{k->cpus, k->memory_mib, k->disk_kib}};
        else
                k->index.need = (struct room){{INT64_MIN, INT64_MIN, INT64_MIN}};
        MEM_GROW(x->classes, x->class_cap, x->class_count + 1);
        x->classes[x->class_count++] = k;
        k->index.at = x->class_count;
        k->index.signature = job_signature_get(c, k);
        learnt_since(x, before);
}

void index_class_drop(struct core *c, struct job_class *k)
{
        struct index *x = c->index;
        struct job_class *last = x->classes[--x->class_count];

        x->classes[k->index.at - 1] = last;
        last->index.at = k->index.at;
        if (x->class_slice != SIZE_MAX && k->index.at <= x->class_slice)
                x->class_slice = k->index.at - 1; /* the last one may not have been updated */
        job_signature_drop(c, k->index.signature);
}

static void class_again(struct core *c, struct job_class *k)
{
        struct job_signature *old = k->index.signature, *g = job_signature_get(c, k);

        if (g != old) {
                if (k->index.in_signature.node.weight)
                        owner_tree(k, false);
                tree_take(&old->classes, &k->index.in_signature.node);
                k->index.signature = g;
                if (k->idle)
                        index_class_changed(c, k);
        }
        job_signature_drop(c, g != old ? old : g);
}

/* ---- queues */

void index_queue_changed(struct core *c, struct queue *q)
{
        struct index_queue *i = &q->index;
        bool parked = q->offers && agent_takes_jobs(q->agent) && q->jobs_left > 0 && i->signature;

        offer_bin_later(c->index, q);
        if (!parked && i->signature)
                tree_take(&i->signature->queues, &i->node);
        else if (parked && i->node.weight)
                tree_moved(&i->signature->queues, &i->node);
        else if (parked)
                tree_put(&i->signature->queues, &i->node);
}

/* Counts changed values between two offer signatures of one queue. */
static void count_changes(struct index *x, const struct offer_signature *was,
                          const struct offer_signature *is)
{
        for (unsigned i = 0; i < x->offer_signatures.names.n; i++) {
                struct index_name *name = &x->offer_signatures.names.v[i];
                const struct expr *a = ad_find(was->signature.side.ad, name->name),
                                  *b = ad_find(is->signature.side.ad, name->name);
                struct buf BUF_CLEANUP s = {0}, t = {0};

                if (name->counted || !(was->signature.side.known & is->signature.side.known & 1ull << i))
                        continue;
                if (a)
                        expr_print(&s, a, ad_symbols(was->signature.side.ad));
                if (b)
                        expr_print(&t, b, ad_symbols(is->signature.side.ad));
                if (!str_eq(buf_view(&s), buf_view(&t)) && ++name->changes > CHANGES_MAX + 8 * x->queue_count)
                        name->moving = true;
        }
}

static void queue_again(struct core *c, struct queue *q)
{
        struct offer_signature *old = q->index.signature, *k = offer_signature_get(c, q);

        if (k == old) {
                offer_signature_drop(c, k); /* it existed already */
                return;
        }
        if (old) {
                count_changes(c->index, old, k);
                tree_take(&old->queues, &q->index.node);
                offer_bin_leave(q);
                offer_signature_drop(c, old);
        }
        q->index.signature = k;
        index_queue_changed(c, q);
}

void index_queue_shown(struct core *c, struct queue *q)
{
        struct index *x = c->index;
        struct learnt before = learnt_before(x);

        if (!q->index.listed) {
                q->index.listed = true;
                q->index.serial = ++x->serial;
                MEM_GROW(x->queues, x->queue_cap, x->queue_count + 1);
                x->queues[x->queue_count++] = q;
        }
        queue_again(c, q);
        learnt_since(x, before);
}

/* ---- all classes and queues */

#define SLICE_STEPS 20000u /* of the evaluations in a slice; the last class or queue may go beyond it */

bool index_slice(struct core *c, unsigned budget)
{
        struct index *x = c->index;
        uint64_t until = core_steps(c) + SLICE_STEPS;

        for (; budget && core_steps(c) < until && x->class_slice < x->class_count; budget--)
                class_again(c, x->classes[x->class_slice++]);
        for (; budget && core_steps(c) < until && x->queue_slice < x->queue_count; budget--)
                queue_again(c, x->queues[x->queue_slice++]);
        if (x->class_slice >= x->class_count)
                x->class_slice = SIZE_MAX;
        if (x->queue_slice >= x->queue_count)
                x->queue_slice = SIZE_MAX;
        return x->class_slice != SIZE_MAX || x->queue_slice != SIZE_MAX;
}

struct index *index_new(void)
{
        struct index *x = mem_new(struct index);

        x->job_signatures.by_text = map_new();
        x->offer_signatures.by_text = map_new();
        x->job_signatures.names.share = share_new(INDEX_NAMES_MAX);
        x->offer_signatures.names.share = share_new(INDEX_NAMES_MAX);
        x->class_slice = x->queue_slice = SIZE_MAX;
        return x;
}

void index_free(struct index *x)
{
        if (!x)
                return;
        assert(x->class_count == 0 && x->job_signatures.count == 0);
        while (x->offer_signatures.count) {
                struct index_signature *p = x->offer_signatures.all[0];

                p->users = 1;
                p->held++;
                offer_signature_empty(offer_signature_of(p));
                signature_drop(&x->offer_signatures, p);
                p->held--;
                let_go(p);
        }
        map_free(x->job_signatures.by_text);
        map_free(x->offer_signatures.by_text);
        share_free(x->job_signatures.names.share);
        share_free(x->offer_signatures.names.share);
        free(x->job_signatures.all);
        free(x->offer_signatures.all);
        free(x->classes);
        free(x->queues);
        free(x->stale);
        free(x);
}

bool index_meets(const struct job_class *k, const struct queue *q)
{
        const struct index_signature *p = q->index.signature ? &q->index.signature->signature : NULL;

        for (size_t i = 0; p && i < p->meet_count; i++)
                if (p->meets[i] == &k->index.signature->signature)
                        return true;
        return false;
}

void index_counts(const struct core *c, struct index_counts *ret)
{
        *ret = (struct index_counts){.job_signatures = c->index->job_signatures.count,
                                     .offer_signatures = c->index->offer_signatures.count,
                                     .job_names = c->index->job_signatures.names.n,
                                     .queue_names = c->index->offer_signatures.names.n};
}
