#include "core/model/precedence.h"
#include "core/accounts/share.h"
#include "core/model/core_parts.h"

#define SHORT_MS     600000 /* runs up to this are alike */
#define LATER        10     /* so many times what is longer a job counts as if it had come later */
#define LATER_MAX_MS (7 * INT64_C(86400000))

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
                request_part_at(b->request, b->part); /* NULL: of an edit that is being undone */

        return order_due_s(b->request->submitted_ms, p ? p->job_template->long_ms : 0);
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
        return a->standing == b->standing && a->account == b->account &&
               job_class_first_bucket(a)->priority == job_class_first_bucket(b)->priority;
}

struct order_mark order_mark_of(const struct job_class *k)
{
        const struct bucket *b = job_class_first_bucket(k);

        return (struct order_mark){.account = k->account,
                                   .own = k->standing - k->account->points,
                                   .points = b->points,
                                   .request = b->request->id,
                                   .priority = b->priority,
                                   .due_s = order_bucket_due_s(b),
                                   .part = b->part};
}

bool order_mark_before(const struct order_mark *a, const struct order_mark *b)
{
        double x = a->account->points + a->own, y = b->account->points + b->own;

        if (a->account != b->account)
                return x != y ? x > y : a->account->serial < b->account->serial;
        if (a->own != b->own)
                return a->own > b->own;
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

        /* As if all had waited since 1970: the difference between two is that of their ages. */
        return w->user * (double)b->priority - w->age * (double)b->request->submitted_ms / 3600000;
}
