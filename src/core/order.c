#include "core/order.h"

bool order_bucket_before(const struct bucket *a, const struct bucket *b)
{
        if (a->priority != b->priority)
                return a->priority > b->priority;
        if (a->request->id != b->request->id)
                return a->request->id < b->request->id;
        return a->part < b->part;
}

bool order_class_before(const struct class *a, const struct class *b)
{
        return order_bucket_before(class_first_bucket(a), class_first_bucket(b));
}

bool order_class_level(const struct class *a, const struct class *b)
{
        return class_first_bucket(a)->priority == class_first_bucket(b)->priority;
}
