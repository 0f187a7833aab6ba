#include "core/data/locality.h"

#include "base/mem.h"
#include "core/data/data_state.h"
#include "core/data/inputs_private.h"
#include "core/model/core_parts.h"

#define NEARS_MAX   500000u /* most sets of all parts; beyond that some localities are unknown */
#define LEAVE_SLICE 2000u   /* files removed in one call */

/* Members of a part of which an agent holds a file; never empty. */
struct locality {
        struct core_agent *agent;
        struct set members;
};

/* ---- wanted files: a single part is in the map itself, several in a list */

struct wanting {
        uint32_t count, cap;
        struct inputs **by;
};

static bool is_list(const void *v)
{
        return (uintptr_t)v & 1;
}
static struct wanting *list_of(void *v)
{
        return (struct wanting *)((uintptr_t)v - 1);
}

static void list_add(struct wanting *w, struct inputs *in)
{
        MEM_GROW(w->by, w->cap, w->count + 1);
        w->by[w->count++] = in;
}

/* Returns one of many small maps, none of which takes long to grow. */
static struct idmap **map_of(struct core *c, uint64_t file)
{
        return &c->data->wanted[file >> 56];
}

static void *wanting_of(struct core *c, uint64_t file)
{
        struct idmap *m = *map_of(c, file);

        return m ? idmap_get(m, file) : NULL;
}

static void file_want(struct core *c, uint64_t file, struct inputs *in)
{
        struct idmap **m = map_of(c, file);
        struct wanting *w;
        void *v;

        if (!*m)
                *m = idmap_new();
        v = idmap_get(*m, file);
        if (!v) {
                idmap_put(*m, file, in);
                return;
        }
        if (!is_list(v)) {
                w = mem_new(struct wanting);
                list_add(w, v);
                idmap_put(*m, file, (char *)w + 1);
        } else {
                w = list_of(v);
        }
        list_add(w, in);
}

static void unwant(struct core *c, uint64_t file, const struct inputs *in)
{
        void *v = wanting_of(c, file);
        struct wanting *w;

        if (v == in) {
                idmap_take(*map_of(c, file), file);
                return;
        }
        if (!v || !is_list(v))
                return;
        w = list_of(v);
        for (uint32_t i = 0; i < w->count; i++)
                if (w->by[i] == in) {
                        w->by[i] = w->by[--w->count];
                        break;
                }
        if (w->count)
                return;
        idmap_take(*map_of(c, file), file);
        free(w->by);
        free(w);
}

/* Calls fn for each part that wants a file and is not leaving. */
static void each_wanting(struct core *c, uint64_t file, struct core_agent *a,
                         void (*fn)(struct core *c, struct inputs *in, struct core_agent *a, uint64_t file))
{
        void *v = wanting_of(c, file);
        struct inputs *one = v;
        struct inputs **by = &one;
        uint32_t count = v != NULL;

        if (v && is_list(v)) {
                by = list_of(v)->by;
                count = list_of(v)->count;
        }
        for (uint32_t i = 0; i < count; i++)
                if (!by[i]->leaves)
                        fn(c, by[i], a, file);
}

/* ---- sets */

static struct locality *locality_find(const struct inputs *in, const struct core_agent *a)
{
        return in && in->localities ? idmap_get(in->localities, a->number) : NULL;
}

static struct locality *locality_get(struct core *c, struct inputs *in, struct core_agent *a)
{
        struct locality *n = locality_find(in, a);

        if (n || c->data->locality_count == NEARS_MAX)
                return n;
        n = mem_new(struct locality);
        n->agent = a;
        if (!in->localities)
                in->localities = idmap_new();
        idmap_put(in->localities, a->number, n);
        c->data->locality_count++;
        return n;
}

static void locality_free(struct core *c, struct locality *n)
{
        set_deinit(&n->members);
        free(n);
        c->data->locality_count--;
}

static void add_wanting(const struct inputs *in, uint64_t file, struct set *to)
{
        for (uint32_t at = in->heads[inputs_head(in, file)]; at != INPUTS_NONE; at = in->after[at - 1])
                if (in->ids[at - 1] == file)
                        set_add(to, in->part->first + (at - 1) / in->width);
}

static bool wants_already(const struct inputs *in, uint64_t file)
{
        for (uint32_t at = in->heads[inputs_head(in, file)]; at != INPUTS_NONE; at = in->after[at - 1])
                if (in->ids[at - 1] == file)
                        return true;
        return false;
}

uint32_t locality_wanted(struct core *c, struct inputs *in, uint32_t member, uint64_t file)
{
        const struct file *f = c->data->files ? idmap_get(c->data->files, file) : NULL;

        if (!wants_already(in, file))
                file_want(c, file, in);
        for (uint32_t i = 0; f && i < f->count; i++) {
                struct locality *n = locality_get(c, in, f->holders[i]);

                if (n)
                        set_add(&n->members, member);
        }
        return f ? f->count : 0;
}

static void came(struct core *c, struct inputs *in, struct core_agent *a, uint64_t file)
{
        struct locality *n = locality_get(c, in, a);

        if (n)
                add_wanting(in, file, &n->members);
}

static bool has_any(const struct inputs *in, uint32_t member, const struct core_agent *a)
{
        size_t at = (size_t)(member - in->part->first) * in->width;

        for (size_t i = 0; i < in->width; i++)
                if (in->ids[at + i] && agent_holds(a, in->ids[at + i]))
                        return true;
        return false;
}

static void went(struct core *c, struct inputs *in, struct core_agent *a, uint64_t file)
{
        struct locality *n = locality_find(in, a);
        struct set some = {0};

        if (!n)
                return;
        add_wanting(in, file, &some);
        SET_FOREACH (&some, m) {
                if (!has_any(in, (uint32_t)m, a))
                        set_remove(&n->members, (uint32_t)m);
        }
        set_deinit(&some);
        if (set_count(&n->members))
                return;
        idmap_take(in->localities, a->number);
        locality_free(c, n);
}

void locality_came(struct core *c, struct core_agent *a, uint64_t file)
{
        each_wanting(c, file, a, came);
}

void locality_went(struct core *c, struct core_agent *a, uint64_t file)
{
        each_wanting(c, file, a, went);
}

/* ---- the end of a part */

/* Removes a part's files from `wanted`. Returns true if all are removed. */
static bool leave(struct core *c, struct inputs *in, size_t budget)
{
        for (; budget && in->left < in->entries; budget--, in->left++)
                if (in->ids[in->left])
                        unwant(c, in->ids[in->left], in);
        return in->left == in->entries;
}

void locality_leave(struct core *c, struct inputs *in)
{
        void *near;

        for (size_t at = 0; in->localities && idmap_next(in->localities, &at, NULL, &near);)
                locality_free(c, near);
        idmap_free(in->localities);
        in->localities = NULL;
        in->leaves = true;
        in->entries = (size_t)in->filled * in->width;
        if (leave(c, in, LEAVE_SLICE)) {
                inputs_destroy(in);
                return;
        }
        in->next = c->data->leaving;
        c->data->leaving = in;
}

bool locality_leave_slice(struct core *c)
{
        struct inputs *in = c->data->leaving;

        if (in && leave(c, in, LEAVE_SLICE)) {
                c->data->leaving = in->next;
                inputs_destroy(in);
        }
        return c->data->leaving;
}

void locality_deinit(struct core *c)
{
        while (locality_leave_slice(c))
                ;
        for (size_t i = 0; i < sizeof(c->data->wanted) / sizeof(c->data->wanted[0]); i++)
                idmap_free(c->data->wanted[i]);
}

/* ---- looking */

const struct set *locality_members(const struct inputs *in, const struct core_agent *a)
{
        const struct locality *n = locality_find(in, a);

        return n ? &n->members : NULL;
}

const struct set *locality_next(const struct inputs *in, size_t *at, struct core_agent **ret_agent)
{
        void *v;

        if (!in || !in->localities || !idmap_next(in->localities, at, NULL, &v))
                return NULL;
        *ret_agent = ((struct locality *)v)->agent;
        return &((struct locality *)v)->members;
}

size_t locality_bytes(const struct locality *n)
{
        return sizeof(*n) + set_bytes(&n->members);
}

static bool member_ok(const struct core *c, const struct inputs *in, uint32_t member)
{
        size_t from = (size_t)(member - in->part->first) * in->width;

        for (size_t i = from; i < from + in->width; i++) {
                const struct file *f =
                        in->ids[i] && c->data->files ? idmap_get(c->data->files, in->ids[i]) : NULL;

                for (uint32_t k = 0; f && k < f->count; k++) {
                        const struct locality *n = locality_find(in, f->holders[k]);

                        if (n ? !set_has(&n->members, member) : c->data->locality_count < NEARS_MAX)
                                return false;
                }
        }
        return true;
}

bool locality_ok(const struct core *c, const struct inputs *in)
{
        void *value;

        if (!in)
                return true;
        for (uint32_t m = 0; m < in->filled; m++)
                if (!member_ok(c, in, in->part->first + m))
                        return false;
        for (size_t at = 0; in->localities && idmap_next(in->localities, &at, NULL, &value);) {
                const struct locality *n = value;

                if (set_count(&n->members) == 0)
                        return false;
                SET_FOREACH (&n->members, m)
                        if (!has_any(in, (uint32_t)m, n->agent))
                                return false;
        }
        return true;
}
