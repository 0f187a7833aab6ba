#include "core/model/delegation.h"
#include "base/mem.h"
#include "core/model/core_parts.h"

static char *copy(char *to, struct str *s)
{
        if (s->n)
                memcpy(to, s->p, s->n);
        s->p = to;
        return to + s->n;
}

static void keep_origin(struct hop *h, const struct submission_origin *from)
{
        struct submission_origin *o;
        char *at;

        if (from->servers.n == 0)
                return;
        o = h->origin = mem_new(struct submission_origin);
        *o = *from;
        at = h->text = mem_alloc(o->servers.n + o->owner.n + o->label.n + o->path.n + o->job.n + 1);
        at = copy(at, &o->servers);
        at = copy(at, &o->owner);
        at = copy(at, &o->label);
        at = copy(at, &o->path);
        copy(at, &o->job);
}

void hop_load(struct request *r, const struct submission *s)
{
        struct hop *h;

        if (!s->hold_results && !s->lease_ms && s->origin.servers.n == 0)
                return;
        h = &request_rare_make(r)->hop;
        h->hold_results = s->hold_results;
        keep_origin(h, &s->origin);
        h->lease_ms = s->lease_ms;
}

void hop_show(struct core *c, struct request *r)
{
        struct hop *h;

        if (!request_rare(r)->hop.lease_ms)
                return;
        h = &r->rare->hop;
        h->renewed_steady_ms = c->steady_ms;
        MEM_GROW(c->hops->leased, c->hops->cap, c->hops->count + 1);
        c->hops->leased[c->hops->count++] = r;
}

void hop_free(struct core *c, struct request *r)
{
        struct hop *h;

        if (!r->rare)
                return;
        h = &r->rare->hop;
        for (size_t i = 0; h->lease_ms && i < c->hops->count; i++)
                if (c->hops->leased[i] == r) {
                        c->hops->leased[i] = c->hops->leased[--c->hops->count];
                        break;
                }
        set_deinit(&h->taken);
        free(h->origin);
        free(h->text);
}
