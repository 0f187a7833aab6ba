#include "core/model/precedence.h"
#include "core/accounts/share.h"
#include "core/model/core_parts.h"

#define SHORT_MS     600000 /* shorter runs do not delay the due time */
#define LATER        6      /* factor by which a longer run delays a job's due time */
#define LATER_MAX_MS (7 * INT64_C(86400000))
#define DAY_S        86400u
/* Most that waiting can put a class ahead of a job that is due now, between accounts. */
#define BEFORE_MAX_S (DAY_S / 2)
#define BEHIND_MAX_S DAY_S /* most that it can be behind */

uint32_t order_due_s(int64_t submitted_ms, int64_t run_ms)
{
        int64_t longer_ms = run_ms > SHORT_MS ? run_ms - SHORT_MS : 0;
        int64_t later_ms = longer_ms < LATER_MAX_MS / LATER ? longer_ms * LATER : LATER_MAX_MS;
        int64_t due_s = (submitted_ms + later_ms) / 1000;

        return due_s < 0 ? 0 : due_s > UINT32_MAX ? UINT32_MAX : (uint32_t)due_s;
}

uint32_t order_bucket_due_s(const struct bucket *b)
{
        const struct part *p =
                request_part_at(b->request, b->part); /* NULL: the part's edit is being undone */

        return order_due_s(b->request->submitted_ms, p ? p->job_template->long_ms : 0);
}

double order_wait_points(const struct core *c, const struct account *a, int64_t priority, uint32_t due_s)
{
        const struct order_wait *w = &c->order_wait;

        if (w->cpus == 0)
                return 0;
        if (a->mixed && priority < a->first_priority && due_s < a->last_due_s)
                due_s = a->last_due_s;
        if (due_s + BEFORE_MAX_S < w->at_s)
                due_s = w->at_s - BEFORE_MAX_S;
        if (due_s > w->at_s + BEHIND_MAX_S)
                due_s = w->at_s + BEHIND_MAX_S;
        return -w->cpus * (double)due_s / DAY_S;
}

bool order_bucket_before(const struct bucket *a, const struct bucket *b)
{
        uint32_t x, y;

        if (a->points != b->points)
                return a->points > b->points;
        if (a->priority != b->priority)
                return a->priority > b->priority;
        if (a->request == b->request && a->part == b->part)
                return false;
        x = order_bucket_due_s(a);
        y = order_bucket_due_s(b);
        if (x != y)
                return x < y;
        if (a->request->id != b->request->id)
                return a->request->id < b->request->id;
        return a->part < b->part;
}

bool order_class_before(const struct job_class *a, const struct job_class *b)
{
        const struct bucket *x = job_class_first_bucket(a), *y = job_class_first_bucket(b);

        if (a->standing != b->standing)
                return a->standing > b->standing;
        if (a->account != b->account)
                return a->account->serial < b->account->serial;
        return order_bucket_before(x, y);
}

bool order_class_level(const struct job_class *a, const struct job_class *b)
{
        return a->own == b->own && a->account == b->account &&
               job_class_first_bucket(a)->priority == job_class_first_bucket(b)->priority;
}

struct order_mark order_mark_of(const struct job_class *k)
{
        const struct bucket *b = job_class_first_bucket(k);

        return (struct order_mark){.account = k->account,
                                   .own = k->own,
                                   .points = b->points,
                                   .request = b->request->id,
                                   .priority = b->priority,
                                   .due_s = order_bucket_due_s(b),
                                   .part = b->part};
}

static double mark_standing(const struct core *c, const struct order_mark *m)
{
        return m->account->points + (m->own + order_wait_points(c, m->account, m->priority, m->due_s));
}

bool order_mark_before(const struct core *c, const struct order_mark *a, const struct order_mark *b)
{
        double x = mark_standing(c, a), y = mark_standing(c, b);

        if (x != y)
                return x > y;
        if (a->account != b->account)
                return a->account->serial < b->account->serial;
        if (a->points != b->points)
                return a->points > b->points;
        if (a->priority != b->priority)
                return a->priority > b->priority;
        if (a->due_s != b->due_s)
                return a->due_s < b->due_s;
        return a->request != b->request ? a->request < b->request : a->part < b->part;
}

double order_bucket_points(const struct core *c, const struct bucket *b)
{
        const struct order_weights *w = &c->config.weights;

        /* Age is counted as if all had waited since 1970: the difference between two jobs is that of their
         * ages. */
        return w->user * (double)b->priority - w->age * (double)b->request->submitted_ms / 3600000;
}
