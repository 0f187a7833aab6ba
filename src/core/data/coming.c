#include "core/data/coming.h"

#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/data/profile.h"
#include "core/model/core_parts.h"

#define FILES_MAX  32u        /* of one job, in the order in which it names them */
#define BYTES_MIN  (1u << 20) /* smaller ones are quickly there */

#define STORE_BITS 8

struct walk {
        struct core *core;
        struct core_agent *agent;
        unsigned files;
        void (*fn)(struct core *c, struct core_agent *a, const struct input *f);
};

static bool on_file(void *arg, const struct input *f)
{
        struct walk *w = arg;

        if (f->bytes < BYTES_MIN)
                return true;
        w->fn(w->core, w->agent, f);
        return ++w->files < FILES_MAX;
}

static void each_file(struct core *c, const struct job *j,
                      void (*fn)(struct core *c, struct core_agent *a, const struct input *f))
{
        struct walk w = {.core = c, .agent = j->queue->agent, .fn = fn};

        inputs_each(c, request_part(j->request, j->member, NULL)->inputs, j->member, on_file, &w);
}

/* The number of attempts that it comes for, and that of its store, are kept in the place of a pointer to it.
 */
static uintptr_t users_of(const struct core_agent *a, uint64_t file)
{
        return a->data && a->data->coming ? (uintptr_t)idmap_get(a->data->coming, file) >> STORE_BITS : 0;
}

static void set_users(struct core_agent *a, uint64_t file, uintptr_t users, uintptr_t store)
{
        idmap_put(a->data->coming, file, (void *)(users << STORE_BITS | store));
}

static uintptr_t store_of(const void *value)
{
        return (uintptr_t)value & ((1u << STORE_BITS) - 1);
}

/* Of one file all have the same size, whatever their jobs say: what was added is taken off. */
static void begins(struct core *c, struct core_agent *a, const struct input *f)
{
        const struct file *known = c->data->coming ? idmap_get(c->data->coming, f->id) : NULL;
        uint64_t bytes = known ? known->bytes : f->bytes;

        file_add_holder(&c->data->coming, f->id, bytes, a);
        profile_load(c, a, f->store, bytes, true);
}

static void ceases(struct core *c, struct core_agent *a, uint64_t file, const void *value)
{
        const struct file *f = idmap_get(c->data->coming, file);

        profile_load(c, a, store_of(value), f->bytes, false);
        file_drop_holder(c->data->coming, file, a);
}

static void expect(struct core *c, struct core_agent *a, const struct input *f)
{
        uintptr_t users = users_of(a, f->id);

        if (agent_holds(a, f->id))
                return;
        if (!users)
                begins(c, a, f);
        set_users(a, f->id, users + 1, users ? store_of(idmap_get(a->data->coming, f->id)) : f->store);
}

bool coming_counts(const struct core *c)
{
        return !c->config.shadow &&
               (c->config.placement == CORE_PLACE_COST || c->config.placement == CORE_PLACE_FIFO);
}

void coming_begin(struct core *c, const struct job *j)
{
        struct core_agent *a = j->queue->agent;

        if (!coming_counts(c) || !a->data)
                return;
        if (!a->data->coming)
                a->data->coming = idmap_new();
        each_file(c, j, expect);
}

void coming_arrived(struct core *c, struct core_agent *a, uint64_t file)
{
        if (!users_of(a, file))
                return;
        ceases(c, a, file, idmap_take(a->data->coming, file));
}

static void expect_no_more(struct core *c, struct core_agent *a, const struct input *f)
{
        uintptr_t users = users_of(a, f->id);

        if (users > 1)
                set_users(a, f->id, users - 1, store_of(idmap_get(a->data->coming, f->id)));
        else if (users)
                coming_arrived(c, a, f->id);
}

/* What a job reads may have been read anew in between, by other names: with the last attempt all is over. */
static void end_all(struct core *c, struct core_agent *a)
{
        struct idmap *had = a->data->coming;
        uint64_t id;
        void *value;

        a->data->coming = NULL;
        for (size_t at = 0; idmap_next(had, &at, &id, &value);)
                ceases(c, a, id, value);
        idmap_free(had);
}

void coming_end(struct core *c, const struct job *j)
{
        struct core_agent *a = j->queue->agent;
        uint64_t attempts = 0;

        if (!a->data || !a->data->coming || idmap_count(a->data->coming) == 0)
                return;
        each_file(c, j, expect_no_more);
        for (const struct queue *q = a->queues; q; q = q->next)
                attempts += q->attempt_count;
        if (attempts == 1)
                end_all(c, a);
}

void coming_forget(struct core *c, struct core_agent *a)
{
        if (a->data && a->data->coming)
                end_all(c, a);
}

bool coming_to(const struct core_agent *a, uint64_t file)
{
        return users_of(a, file) != 0;
}

void coming_deinit(struct core *c)
{
        files_free(c->data->coming);
}

bool coming_ok(const struct core *c)
{
        uint64_t named = 0, all = 0, id;
        void *value;

        for (size_t at = 0; c->data->coming && idmap_next(c->data->coming, &at, &id, &value);) {
                const struct file *f = value;

                named += f->count;
                for (uint32_t i = 0; i < f->count; i++)
                        if (!coming_to(f->holders[i], id) || agent_holds(f->holders[i], id))
                                return false;
        }
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                const struct agent_data *d = ((struct core_agent *)value)->data;

                all += d && d->coming ? idmap_count(d->coming) : 0;
        }
        return named == all && profile_loads_ok(c);
}
