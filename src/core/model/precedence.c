#include "core/model/precedence.h"
#include "core/accounts/share.h"
#include "core/model/core_parts.h"

bool order_bucket_before(const struct bucket *a, const struct bucket *b)
{
        if (a->points != b->points)
                return a->points > b->points;
        if (a->priority != b->priority)
                return a->priority > b->priority;
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
        return a->request != b->request ? a->request < b->request : a->part < b->part;
}

double order_bucket_points(const struct core *c, const struct bucket *b)
{
        const struct order_weights *w = &c->config.weights;

        /* As if all had waited since 1970: the difference between two is that of their ages. */
        return w->user * (double)b->priority - w->age * (double)b->request->submitted_ms / 3600000;
}
