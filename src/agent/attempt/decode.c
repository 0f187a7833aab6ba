#include "agent/attempt/decode.h"

#include <stdlib.h>
#include <string.h>

#include "agent/attempt/life.h"
#include "agent/model/checkpointing.h"
#include "agent/model/expand.h"

void template_key(char room[32], uint64_t request, uint32_t part)
{
        memset(room, 0, 32);
        memcpy(room, &request, 8);
        memcpy(room + 8, &part, 4);
}

struct template *assign_template(struct agent *a, const void *p, size_t n)
{
        struct job_template *m = job_template_unpack(p, n);

        if (!m)
                return NULL;
        struct template *t = mem_new(struct template);
        t->m = m;
        t->refs = 1;
        t->a = a;
        t->bytes = n;
        a->held_bytes += n;
        a->template_bytes += n;
        t->same_domain = !strcmp(m->filesystem_domain, a->config.filesystem_domain);
        if (t->same_domain && m->transfer == TRANSFER_IN_PLACE)
                job_template_set_transfer(m, TRANSFER_NO);
        t->own_cwd = m->transfer != TRANSFER_NO;
        struct err err = {""};
        if (a->users_path && users_find(&a->config, m->owner, &t->user, &err) < 0)
                t->not_mapped = mem_dupz(err.text);
        char key[32];
        template_key(key, m->request, m->part);
        template_unref(map_put(a->templates, str_make(key, 12), t));
        return t;
}

void assign_templates_drop(struct agent *a)
{
        void *t;

        for (size_t at = 0; map_next(a->templates, &at, NULL, &t);)
                template_unref(t);
        map_free(a->templates);
        a->templates = map_new();
        a->template_bytes = 0;
}

static const Drover__Item *assign_item(const Drover__Group *g, uint32_t member)
{
        size_t low = 0, high = g->n_items;

        while (low < high) {
                size_t mid = (low + high) / 2;

                if (g->items[mid]->member == member)
                        return g->items[mid];
                if (g->items[mid]->member < member)
                        low = mid + 1;
                else
                        high = mid;
        }
        return NULL;
}

#define ATTEMPT_BYTES 256 /* memory of an attempt without texts of its own */

/* Returns the memory that is kept for this attempt alone. */
static uint64_t own_bytes(const struct attempt *at)
{
        uint64_t n = ATTEMPT_BYTES + strlen(at->iwd) + (at->set_machines ? strlen(at->set_machines) : 0);

        for (size_t i = 0; i < at->value_count; i++)
                n += strlen(at->values[i]);
        for (size_t i = 0; i < 2 * at->filled_count; i++)
                n += strlen(at->filled[i]) + sizeof(*at->filled);
        for (size_t i = 0; i < at->checkpoint.restore_count; i++)
                n += strlen(at->checkpoint.restore[i].name) + sizeof(*at->checkpoint.restore);
        return n;
}

static void restore(struct attempt *at, const Drover__Item *item)
{
        MEM_CLEANUP struct spool_ref *files = mem_array(NULL, item->n_checkpoint, sizeof(*files));

        for (size_t i = 0; i < item->n_checkpoint; i++) {
                const Drover__SpoolRef *f = item->checkpoint[i];

                files[i] = (struct spool_ref){f->name, f->sha256.len == 32 ? f->sha256.data : NULL, f->size,
                                              f->executable};
        }
        checkpoint_restore(at, files, item->n_checkpoint);
}

struct attempt *assign_member(struct queue *q, struct template *t, const Drover__Group *g, uint32_t member)
{
        struct attempt *at = attempt_new(q, t, g->request, member, g->fence);
        const Drover__Item *item = assign_item(g, member);

        at->part = g->part;
        at->wait_for_go = g->wait_for_go;
        at->set = g->set;
        at->set_size = g->set_size;
        if (*g->set_machines)
                at->set_machines = mem_dupz(g->set_machines);
        at->lease_ms = g->lease_ms;
        at->cpus_milli = t->m->cpus_milli ? t->m->cpus_milli : 1000;
        at->memory_bytes = t->m->memory_bytes;
        if (item) {
                at->row = item->row;
                at->step_value = item->step;
                at->value_count = item->n_values;
                at->values = mem_array(NULL, item->n_values + 1, sizeof(char *));
                for (size_t i = 0; i < item->n_values; i++)
                        at->values[i] = mem_dupz(item->values[i]);
        } else {
                at->step_value = member;
        }
        if (item && item->n_checkpoint)
                restore(at, item);
        at->filled_count = g->n_filled;
        if (g->n_filled)
                at->filled = mem_array(NULL, 2 * g->n_filled, sizeof(char *));
        for (size_t i = 0; i < g->n_filled; i++) {
                at->filled[2 * i] = mem_dupz(g->filled[i]->inside);
                at->filled[2 * i + 1] = mem_dupz(g->filled[i]->value);
        }
        expand_iwd(at);
        at->bytes = own_bytes(at);
        at->a->held_bytes += at->bytes;
        return at;
}
