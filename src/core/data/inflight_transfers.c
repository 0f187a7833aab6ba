#include "core/data/inflight_transfers.h"

#include "core/data/cost_class.h"
#include "core/data/data_state.h"
#include "core/data/inputs.h"
#include "core/model/core_parts.h"

#define FILES_MAX  32u        /* most files of a job that are counted, in the order of its list */
#define LOOKED_MAX 320u       /* most that are looked at: ten thousand jobs may begin at once */
#define BYTES_MIN  (1u << 20) /* smaller files are ignored, since they arrive quickly */

#define STORE_BITS 8

struct walk {
        struct core *core;
        struct core_agent *agent;
        unsigned files, looked;
        void (*fn)(struct core *c, struct core_agent *a, const struct input *f);
};

static bool on_file(void *arg, const struct input *f)
{
        struct walk *w = arg;

        if (++w->looked > LOOKED_MAX)
                return false;
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

/* The map's value has the number of attempts that wait for the file, and the number of its store. */
static uintptr_t users_of(const struct core_agent *a, uint64_t file)
{
        return a->data && a->data->inflight ? (uintptr_t)idmap_get(a->data->inflight, file) >> STORE_BITS : 0;
}

static void set_users(struct core_agent *a, uint64_t file, uintptr_t users, uintptr_t store)
{
        idmap_put(a->data->inflight, file, (void *)(users << STORE_BITS | store));
}

static uintptr_t store_of(const void *value)
{
        return (uintptr_t)value & ((1u << STORE_BITS) - 1);
}

/* Starts a transfer. The size of its first job is kept, so that the same amount is subtracted at the end. */
static void begins(struct core *c, struct core_agent *a, const struct input *f)
{
        const struct file *known = c->data->inflight ? idmap_get(c->data->inflight, f->id) : NULL;
        uint64_t bytes = known ? known->bytes : f->bytes;

        file_add_holder(&c->data->inflight, f->id, bytes, a);
        cost_class_load(c, a, f->store, bytes, true);
}

static void ceases(struct core *c, struct core_agent *a, uint64_t file, const void *value)
{
        const struct file *f = idmap_get(c->data->inflight, file);

        cost_class_load(c, a, store_of(value), f->bytes, false);
        file_drop_holder(c->data->inflight, file, a);
}

static void expect(struct core *c, struct core_agent *a, const struct input *f)
{
        uintptr_t users = users_of(a, f->id);

        if (agent_holds(a, f->id))
                return;
        if (!users)
                begins(c, a, f);
        set_users(a, f->id, users + 1, users ? store_of(idmap_get(a->data->inflight, f->id)) : f->store);
}

void inflight_begin(struct core *c, const struct job *j)
{
        struct core_agent *a = j->queue->agent;

        if (c->config.shadow || !a->data)
                return;
        if (!a->data->inflight)
                a->data->inflight = idmap_new();
        each_file(c, j, expect);
}

void inflight_arrived(struct core *c, struct core_agent *a, uint64_t file)
{
        if (!users_of(a, file))
                return;
        ceases(c, a, file, idmap_take(a->data->inflight, file));
}

static void expect_no_more(struct core *c, struct core_agent *a, const struct input *f)
{
        uintptr_t users = users_of(a, f->id);

        if (users > 1)
                set_users(a, f->id, users - 1, store_of(idmap_get(a->data->inflight, f->id)));
        else if (users)
                inflight_arrived(c, a, f->id);
}

/* Ends all transfers of an agent with its last attempt, since a job's files may have been numbered anew
 * meanwhile. */
static void end_all(struct core *c, struct core_agent *a)
{
        struct idmap *had = a->data->inflight;
        uint64_t id;
        void *value;

        a->data->inflight = NULL;
        for (size_t at = 0; idmap_next(had, &at, &id, &value);)
                ceases(c, a, id, value);
        idmap_free(had);
}

void inflight_end(struct core *c, const struct job *j)
{
        struct core_agent *a = j->queue->agent;
        uint64_t attempts = 0;

        if (!a->data || !a->data->inflight || idmap_count(a->data->inflight) == 0)
                return;
        each_file(c, j, expect_no_more);
        for (const struct queue *q = a->queues; q; q = q->next)
                attempts += q->attempt_count;
        if (attempts == 1)
                end_all(c, a);
}

void inflight_forget(struct core *c, struct core_agent *a)
{
        if (a->data && a->data->inflight)
                end_all(c, a);
}

bool inflight_to(const struct core_agent *a, uint64_t file)
{
        return users_of(a, file) != 0;
}

void inflight_deinit(struct core *c)
{
        files_free(c->data->inflight);
}

bool inflight_ok(const struct core *c)
{
        uint64_t named = 0, all = 0, id;
        void *value;

        for (size_t at = 0; c->data->inflight && idmap_next(c->data->inflight, &at, &id, &value);) {
                const struct file *f = value;

                named += f->count;
                for (uint32_t i = 0; i < f->count; i++)
                        if (!inflight_to(f->holders[i], id) || agent_holds(f->holders[i], id))
                                return false;
        }
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                const struct agent_data *d = ((struct core_agent *)value)->data;

                all += d && d->inflight ? idmap_count(d->inflight) : 0;
        }
        return named == all && cost_class_loads_ok(c);
}
