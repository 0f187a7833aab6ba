#include "core/model/delegation.h"
#include "base/mem.h"
#include "core/model/core_parts.h"

static char *copy_text(char *to, struct str *s)
{
        if (s->n)
                memcpy(to, s->p, s->n);
        s->p = to;
        return to + s->n;
}

static void keep_origin(struct delegation *h, const struct submission_origin *from)
{
        struct submission_origin *o;
        char *at;

        if (from->servers.n == 0)
                return;
        o = h->origin = mem_new(struct submission_origin);
        *o = *from;
        at = h->text = mem_alloc(o->servers.n + o->owner.n + o->label.n + o->path.n + o->job.n + 1);
        at = copy_text(at, &o->servers);
        at = copy_text(at, &o->owner);
        at = copy_text(at, &o->label);
        at = copy_text(at, &o->path);
        copy_text(at, &o->job);
}

void delegation_load(struct request *r, const struct submission *s)
{
        struct delegation *h;

        if (!s->hold_results && !s->lease_ms && s->origin.servers.n == 0)
                return;
        h = &request_cold_make(r)->delegation;
        h->hold_results = s->hold_results;
        keep_origin(h, &s->origin);
        h->lease_ms = s->lease_ms;
}

void delegation_show(struct core *c, struct request *r)
{
        struct delegation *h;

        if (!request_cold(r)->delegation.lease_ms)
                return;
        h = &r->cold->delegation;
        h->renewed_steady_ms = c->steady_ms;
        MEM_GROW(c->delegations->leased, c->delegations->cap, c->delegations->count + 1);
        c->delegations->leased[c->delegations->count++] = r;
}

void delegation_free(struct core *c, struct request *r)
{
        struct delegation *h;

        if (!r->cold)
                return;
        h = &r->cold->delegation;
        for (size_t i = 0; h->lease_ms && i < c->delegations->count; i++)
                if (c->delegations->leased[i] == r) {
                        c->delegations->leased[i] = c->delegations->leased[--c->delegations->count];
                        break;
                }
        set_deinit(&h->taken);
        free(h->origin);
        free(h->text);
}
