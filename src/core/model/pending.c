#include "core/model/pending.h"
#include "base/mem.h"
#include "core/model/core_parts.h"

void class_look_again(struct core *c, struct class *k)
{
        if (k)
                k->met_at = 0;
        if (!k || k->idle == 0 || k->dirty_at || c->config.shadow)
                return;
        MEM_GROW(c->dirty, c->dirty_cap, c->dirty_count + 1);
        c->dirty[c->dirty_count++] = k;
        k->dirty_at = c->dirty_count;
        c->dirty_sorted = false;
}

void class_look_no_more(struct core *c, struct class *k)
{
        struct class *last;

        if (!k->dirty_at)
                return;
        last = c->dirty[--c->dirty_count];
        c->dirty[k->dirty_at - 1] = last;
        last->dirty_at = k->dirty_at;
        k->dirty_at = 0;
        c->dirty_sorted = false;
}

void queue_look_again(struct core *c, struct queue *q)
{
        c->offers_new++;
        if (q->changed_at || c->config.shadow)
                return;
        MEM_GROW(c->changed, c->changed_cap, c->changed_count + 1);
        c->changed[c->changed_count++] = q;
        q->changed_at = c->changed_count;
        c->changed_sorted = false;
}
