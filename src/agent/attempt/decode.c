#include "agent/attempt/decode.h"

#include <stdlib.h>
#include <string.h>

#include "agent/attempt/life.h"
#include "agent/model/checkpointing.h"
#include "agent/model/expand.h"

void held_template_key(char room[32], uint64_t request, uint32_t part)
{
        memset(room, 0, 32);
        memcpy(room, &request, 8);
        memcpy(room + 8, &part, 4);
}

struct held_template *assign_template(struct agent *a, const void *p, size_t n)
{
        struct job_template *m = job_template_unpack(p, n);

        if (!m)
                return NULL;
        struct held_template *t = mem_new(struct held_template);
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
        held_template_key(key, m->request, m->part);
        held_template_unref(map_put(a->templates, str_make(key, 12), t));
        return t;
}

void assign_templates_drop(struct agent *a)
{
        void *t;

        for (size_t at = 0; map_next(a->templates, &at, NULL, &t);)
                held_template_unref(t);
        map_free(a->templates);
        a->templates = map_new();
        a->template_bytes = 0;
}

#define ATTEMPT_BYTES 256 /* memory of an attempt without texts of its own */

/* Returns the memory that is kept for this attempt alone. */
static uint64_t own_bytes(const struct attempt *at)
{
        uint64_t n = ATTEMPT_BYTES + strlen(at->iwd) + (at->gang_machines ? strlen(at->gang_machines) : 0);

        for (size_t i = 0; i < at->value_count; i++)
                n += strlen(at->values[i]);
        for (size_t i = 0; i < 2 * at->filled_count; i++)
                n += strlen(at->filled[i]) + sizeof(*at->filled);
        for (size_t i = 0; i < at->checkpoint.restore_count; i++)
                n += strlen(at->checkpoint.restore[i].name) + sizeof(*at->checkpoint.restore);
        return n;
}

static char **dup_texts(char **from, size_t count)
{
        char **to = mem_array(NULL, count + 1, sizeof(*to));

        for (size_t i = 0; i < count; i++)
                to[i] = mem_dupz(from[i]);
        return to;
}

struct attempt *assign_member(struct queue *q, struct held_template *t, const struct job_group *g,
                              uint32_t member)
{
        struct attempt *at = attempt_new(q, t, g->request, member, g->fence);
        const struct job_item *item = job_group_item(g, member);

        at->part = g->part;
        at->wait_for_go = g->wait_for_go;
        at->gang = g->gang;
        at->gang_size = g->gang_size;
        if (g->gang_machines && *g->gang_machines)
                at->gang_machines = mem_dupz(g->gang_machines);
        at->lease_ms = g->lease_ms;
        at->cpus_milli = t->m->cpus_milli ? t->m->cpus_milli : 1000;
        at->memory_bytes = t->m->memory_bytes;
        if (item) {
                at->row = item->row;
                at->step_value = item->step;
                at->value_count = item->value_count;
                at->values = dup_texts(item->values, item->value_count);
        } else {
                at->step_value = member;
        }
        if (item && item->checkpoint_count)
                checkpoint_restore(at, item->checkpoint, item->checkpoint_count);
        at->filled_count = g->filled_count;
        if (g->filled_count)
                at->filled = dup_texts(g->filled, 2 * g->filled_count);
        expand_iwd(at);
        at->bytes = own_bytes(at);
        at->a->held_bytes += at->bytes;
        return at;
}
