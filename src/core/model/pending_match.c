#include "core/model/pending_match.h"
#include "base/mem.h"
#include "core/model/core_parts.h"

struct pending_match *pending_match_new(void)
{
        struct pending_match *p = mem_new(struct pending_match);

        return p;
}

void pending_match_free(struct pending_match *p)
{
        if (!p)
                return;
        free(p->dirty);
        free(p->changed);
        free(p);
}

void job_class_look_again(struct core *c, struct job_class *k)
{
        if (k)
                k->met_at = 0;
        if (!k || k->idle == 0 || k->dirty_at || c->config.shadow)
                return;
        MEM_GROW(c->pending->dirty, c->pending->dirty_cap, c->pending->dirty_count + 1);
        c->pending->dirty[c->pending->dirty_count++] = k;
        k->dirty_at = c->pending->dirty_count;
        c->pending->dirty_sorted = false;
}

void job_class_look_no_more(struct core *c, struct job_class *k)
{
        struct job_class *last;

        if (!k->dirty_at)
                return;
        last = c->pending->dirty[--c->pending->dirty_count];
        c->pending->dirty[k->dirty_at - 1] = last;
        last->dirty_at = k->dirty_at;
        k->dirty_at = 0;
        c->pending->dirty_sorted = false;
}

void queue_look_again(struct core *c, struct queue *q)
{
        c->pending->offers_new++;
        if (q->changed_at || c->config.shadow)
                return;
        MEM_GROW(c->pending->changed, c->pending->changed_cap, c->pending->changed_count + 1);
        c->pending->changed[c->pending->changed_count++] = q;
        q->changed_at = c->pending->changed_count;
        c->pending->changed_sorted = false;
}
