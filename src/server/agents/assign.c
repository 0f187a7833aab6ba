#include "server/agents/assign.h"

#include "base/pack.h"
#include "base/system/log.h"
#include "core/classes/fill.h"
#include "core/query.h"
#include "server/agents/message.h"
#include "server/agents/templates.h"

struct answer { /* the assignments to one offer, sent as one Assign */
        struct answer *next;
        char *queue;
        uint64_t serial;
        struct message *m;
        Drover__Template **templates;
        size_t template_count, template_cap;
        Drover__Group **groups;
        size_t group_count, group_cap;
};
struct pending {
        struct answer *first;
};
struct sent { /* the parts of a request whose templates the agent has */
        struct set parts, late;
};

struct pending *pending_new(void)
{
        return mem_new(struct pending);
}

static void answer_free(struct answer *n)
{
        if (n->m)
                message_free(n->m);
        free(n->templates);
        free(n->groups);
        free(n->queue);
        free(n);
}

void pending_free(struct pending *p)
{
        if (!p)
                return;
        while (p->first) {
                struct answer *n = p->first;

                p->first = n->next;
                answer_free(n);
        }
        free(p);
}

static void sent_deinit(struct sent *s)
{
        if (!s)
                return;
        set_deinit(&s->parts);
        set_deinit(&s->late);
        free(s);
}

void sent_free(struct idmap *sent)
{
        size_t at = 0;
        void *v;

        if (!sent)
                return;
        while (idmap_next(sent, &at, NULL, &v))
                sent_deinit(v);
        idmap_free(sent);
}

void sent_forget(struct idmap *sent, uint64_t request)
{
        sent_deinit(idmap_take(sent, request));
}

static struct answer *answer_get(struct agent *a, const struct core_assignment *as)
{
        struct answer **at = &a->pending->first;

        for (; *at; at = &(*at)->next)
                if ((*at)->serial == as->serial && strcmp((*at)->queue, as->queue) == 0)
                        return *at;
        *at = mem_new(struct answer);
        (*at)->queue = mem_dupz(as->queue);
        (*at)->serial = as->serial;
        (*at)->m = message_new(a->session, DROVER__TO_AGENT__KIND_ASSIGN);
        return *at;
}

/* Adds the template if the agent does not have it. *ret_late: its members need items. */
static void add_template(struct server *s, struct agent *a, struct answer *n,
                         const struct core_assignment *as, bool *ret_late)
{
        struct sent *sent = idmap_get(a->sent, as->request);
        Drover__Template *t;
        bool late = false;

        if (!sent) {
                sent = mem_new(struct sent);
                idmap_put(a->sent, as->request, sent);
        }
        if (set_add(&sent->parts, as->part)) {
                t = templates_make(s, n->m, as->request, as->part, a->hands_on, &late);
                if (late)
                        set_add(&sent->late, as->part);
                if (t) {
                        MEM_GROW(n->templates, n->template_cap, n->template_count + 1);
                        n->templates[n->template_count++] = t;
                }
        }
        *ret_late = set_has(&sent->late, as->part);
}

static Drover__Item *make_item(struct server *s, struct message *m, uint64_t request, uint32_t member)
{
        struct str values[SUBMISSION_VARIABLES_MAX];
        Drover__Item *item = message_alloc(m, sizeof(*item));
        uint32_t part;
        size_t count;

        drover__item__init(item);
        item->member = member;
        if (core_member_item(s->core, request, member, &part, &item->row, &item->step, values,
                             SUBMISSION_VARIABLES_MAX, &count) != 0)
                return item;
        item->values = message_alloc(m, (count + 1) * sizeof(*item->values));
        for (size_t i = 0; i < count; i++)
                item->values[i] = message_text(m, values[i]);
        item->n_values = count;
        return item;
}

static Drover__Filled **make_filled(struct message *m, struct str values, size_t *ret_count)
{
        struct str rest = values;
        struct fill one;
        Drover__Filled **all;
        size_t n = 0;

        while (fill_next(&rest, &one))
                n++;
        *ret_count = n;
        all = message_alloc(m, (n + 1) * sizeof(*all));
        for (rest = values, n = 0; fill_next(&rest, &one); n++) {
                all[n] = message_alloc(m, sizeof(*all[n]));
                drover__filled__init(all[n]);
                all[n]->inside = message_text(m, one.inside);
                all[n]->value = message_text(m, one.value);
        }
        return all;
}

/* Adds the files of the last checkpoint, from which the job continues. */
static void add_checkpoint(struct message *m, Drover__Item *item, struct str files)
{
        struct unpack u = unpack_from(files);
        uint64_t n = unpack_max(&u, files.n);

        item->checkpoint = message_alloc(m, (n + 1) * sizeof(*item->checkpoint));
        for (; n > 0 && !u.bad; n--) {
                Drover__SpoolRef *r = message_alloc(m, sizeof(*r));

                drover__spool_ref__init(r);
                r->name = message_text(m, unpack_str(&u));
                if (u.bad || u.end - u.p < 32)
                        break;
                r->sha256.data = (uint8_t *)arena_dup(&m->arena, (const char *)u.p, 32);
                r->sha256.len = 32;
                u.p += 32;
                r->size = unpack_u64(&u);
                r->executable = unpack_u64(&u) & 0100;
                item->checkpoint[item->n_checkpoint++] = r;
        }
}

static void add_items(struct server *s, struct message *m, Drover__Group *g, const struct core_assignment *as,
                      bool all)
{
        g->items = message_alloc(m, set_count(as->members) * sizeof(*g->items));
        SET_FOREACH (as->members, member) {
                struct core_job j = {0};

                core_job_get(s->core, as->request, (uint32_t)member, &j);
                if (!all && !j.checkpoint.n)
                        continue;
                Drover__Item *item = make_item(s, m, as->request, (uint32_t)member);
                if (j.checkpoint.n)
                        add_checkpoint(m, item, j.checkpoint);
                g->items[g->n_items++] = item;
        }
}

void pending_add(struct server *s, struct agent *a, const struct core_assignment *as)
{
        struct answer *n = answer_get(a, as);
        Drover__Group *g = message_alloc(n->m, sizeof(*g));
        bool late;

        drover__group__init(g);
        add_template(s, a, n, as, &late);
        g->request = as->request;
        g->part = as->part;
        g->fence = as->fence;
        g->lease_ms = as->lease_ms;
        g->wait_for_go = as->gang_size > 0;
        g->gang = as->gang_first;
        g->gang_size = as->gang_size;
        if (as->gang_machines.n)
                g->gang_machines = message_text(n->m, as->gang_machines);
        g->members = message_ranges(n->m, as->members, &g->n_members);
        g->filled = make_filled(n->m, as->values, &g->n_filled);
        if (late || as->restarts)
                add_items(s, n->m, g, as, late);
        MEM_GROW(n->groups, n->group_cap, n->group_count + 1);
        n->groups[n->group_count++] = g;
}

void pending_flush(struct server *s, struct agent *a)
{
        for (struct answer *n = a->pending->first; n; n = n->next) {
                Drover__Assign *as = message_alloc(n->m, sizeof(*as));

                drover__assign__init(as);
                as->queue = message_text(n->m, str_of(n->queue));
                as->serial = n->serial;
                as->n_templates = n->template_count;
                as->templates = message_alloc(n->m, (n->template_count + 1) * sizeof(*as->templates));
                if (n->template_count)
                        memcpy(as->templates, n->templates, n->template_count * sizeof(*as->templates));
                as->n_groups = n->group_count;
                as->groups = message_alloc(n->m, n->group_count * sizeof(*as->groups));
                memcpy(as->groups, n->groups, n->group_count * sizeof(*as->groups));
                n->m->to_agent.assign = as;
                message_send(s, n->m, TURN_DURABLE);
                n->m = NULL;
        }
}
