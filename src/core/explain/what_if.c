/* Finds what would have to change for an idle job to run: each clause that is false somewhere is ignored,
 * and each request that is too large is reduced, one at a time, and every queue is evaluated again. */
#include "base/mem.h"
#include "classad/match.h"
#include "classad/print.h"
#include "core/classes/member_ad.h"
#include "core/model/core_parts.h"
#include "core/model/suits.h"
#include "core/model/walk.h"

struct change {
        struct core_change told;
        char *text;
};
struct core_what_if {
        struct core *core; /* only during the query */
        struct change *v;
        size_t n, cap;
        struct change none; /* stands for changes beyond the maximum */
};

static struct change *change_get(struct core_what_if *all, enum core_change_kind kind, struct str text)
{
        struct change *x;

        for (size_t i = 0; i < all->n; i++)
                if (all->v[i].told.kind == kind && str_eqz(text, all->v[i].text))
                        return &all->v[i];
        if (all->n == CORE_WHAT_IF_MAX)
                return &all->none;
        MEM_GROW(all->v, all->cap, all->n + 1);
        x = &all->v[all->n++];
        *x = (struct change){.text = str_dupz(text)};
        x->told.kind = kind;
        return x;
}

/* Notes each clause of my Requirements that is not true against `other`. Returns how many; *ret_last is the
 * last one. */
static unsigned false_clauses(struct core_what_if *all, enum core_change_kind kind, const struct ad *my,
                              const struct ad *other, size_t *ret_last)
{
        struct core *c = all->core;
        const struct expr *e = ad_find(my, c->attr.Requirements);
        unsigned found = 0;

        for (unsigned n = 0; e && n < expr_clause_count(e); n++) {
                struct buf BUF_CLEANUP text = {0};
                struct value v;
                struct change *x;

                eval_clause(&c->eval, e, n, my, other, &v);
                if (value_is_true(&v))
                        continue;
                expr_print_clause(&text, e, n, c->symbols);
                x = change_get(all, kind, buf_view(&text));
                x->told.refused++;
                *ret_last = x == &all->none ? SIZE_MAX : (size_t)(x - all->v);
                found++;
        }
        return found;
}

static int64_t number(struct core *c, const struct ad *my, const struct ad *target, symbol name,
                      int64_t missing)
{
        int64_t v = missing;

        eval_integer(&c->eval, my, target, name, &v);
        return v;
}

struct resource {
        symbol request, has;
        int64_t missing;
};

/* Tests whether the queue would take the job if it asked for at most the queue's total of one resource. */
static void try_smaller(struct core_what_if *all, const struct resource *r, struct ad *job,
                        const struct ad *place)
{
        struct core *c = all->core;
        int64_t asked = number(c, job, place, r->request, r->missing),
                most = number(c, place, job, r->has, 0);
        struct change *x;
        bool fits;

        if (asked <= most)
                return;
        x = change_get(all, CORE_CHANGE_REQUEST, symbols_name(c->symbols, r->request));
        x->told.asked = asked;
        x->told.refused++;
        ad_set_integer(job, r->request, most);
        fits = most > 0 && queue_would_take(c, job, place);
        ad_set_integer(job, r->request, asked);
        if (!fits)
                return;
        x->told.alone++;
        if (most > x->told.most)
                x->told.most = most;
}

static void ask_place(struct core_what_if *all, struct ad *job, const struct ad *place)
{
        struct core *c = all->core;
        const struct attributes *a = &c->attr;
        struct resource resources[3 + AMOUNTS_MAX] = {
                {a->RequestCpus, a->Cpus, 1}, {a->RequestMemory, a->Memory, 0}, {a->RequestDisk, a->Disk, 0}};
        unsigned count = 3;
        struct amounts more;
        size_t last = 0;
        unsigned bad = 0;
        bool short_of_any = false;

        bad += false_clauses(all, CORE_CHANGE_JOB_CLAUSE, job, place, &last);
        bad += false_clauses(all, CORE_CHANGE_QUEUE_CLAUSE, place, job, &last);
        amounts_names(c->symbols, job, &more);
        for (unsigned i = 0; i < more.count; i++)
                resources[count++] = (struct resource){more.v[i].request, more.v[i].name, 0};
        for (unsigned i = 0; i < count; i++) {
                short_of_any |= number(c, job, place, resources[i].request, resources[i].missing) >
                                number(c, place, job, resources[i].has, 0);
                try_smaller(all, &resources[i], job, place);
        }
        /* Counts the queue for the clause alone only if it has room. */
        if (bad == 1 && !short_of_any && last != SIZE_MAX)
                all->v[last].told.alone++;
}

static int by_use(const void *x, const void *y)
{
        const struct core_change *a = &((const struct change *)x)->told,
                                 *b = &((const struct change *)y)->told;

        if (a->alone != b->alone)
                return a->alone > b->alone ? -1 : 1;
        return (a->refused < b->refused) - (a->refused > b->refused);
}

struct core_what_if *core_what_if_new(void)
{
        return mem_new(struct core_what_if);
}

void core_what_if_free(struct core_what_if *x)
{
        for (size_t i = 0; x && i < x->n; i++)
                free(x->v[i].text);
        if (x)
                free(x->v);
        free(x);
}

int core_what_if_look(struct core *c, struct core_what_if *x, struct core_walk *w, unsigned queues,
                      uint64_t request, uint32_t member)
{
        struct request *r = request_find(c, request);
        uint64_t steps = core_steps(c);
        struct queue *q;
        struct ad *job;

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        x->core = c;
        job = member_ad(c, r, member, request_job(r, member));
        for (; queues > 0 && walk_has_steps(c, steps, queues) && (q = walk_next(w)); queues--) {
                struct ad *place;

                if (!agent_takes_jobs(q->agent) || !q->ad || !queue_allows_owner(q, request_owner(r)) ||
                    !queue_is_place_for(c, q, job))
                        continue;
                place = queue_whole_ad(c, q);
                ask_place(x, job, place);
                ad_free(place);
                eval_reset(&c->eval);
        }
        ad_free(job);
        return 0;
}

void core_what_if_tell(struct core_what_if *x, void (*fn)(void *arg, const struct core_change *change),
                       void *arg)
{
        if (x->n > 1)
                qsort(x->v, x->n, sizeof(*x->v), by_use);
        for (size_t i = 0; i < x->n; i++) {
                x->v[i].told.text = str_of(x->v[i].text);
                fn(arg, &x->v[i].told);
        }
}
