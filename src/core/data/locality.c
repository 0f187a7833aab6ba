#include "core/data/locality.h"

#include "base/mem.h"
#include "core/data/data_state.h"
#include "core/data/inputs_private.h"
#include "core/model/core_parts.h"

#define NEARS_MAX   500000u /* most sets of all parts; beyond that some localities are unknown */
#define LEAVE_SLICE 2000u   /* files removed in one call */
/* Entries of lists of inputs that are looked at for files that agents have received or dropped: at once,
 * after a rest, and in each millisecond. An entry takes up to 200 ns. */
#define LATE_SLICE  20000u
#define LATE_BURST  250000u
#define LATE_PER_MS 1000u
#define ROW_STEP    16u /* other files of a member that take as long to look at as an entry */

/* Members of a part of which an agent holds a file; never empty. */
struct locality {
        struct core_agent *agent;
        struct set members;
};

/* ---- wanted files: the inputs of a single part are in the map itself, those of several in a map by number
 */

static bool is_map(const void *v)
{
        return (uintptr_t)v & 1;
}
static struct idmap *inputs_map(void *v)
{
        return (struct idmap *)((uintptr_t)v - 1);
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
        struct idmap **m = map_of(c, file), *by;
        void *v;

        if (!*m)
                *m = idmap_new();
        v = idmap_get(*m, file);
        if (!v) {
                idmap_put(*m, file, in);
                return;
        }
        if (!is_map(v)) {
                by = idmap_new();
                idmap_put(by, ((struct inputs *)v)->number, v);
                idmap_put(*m, file, (char *)by + 1);
        } else {
                by = inputs_map(v);
        }
        idmap_put(by, in->number, in);
}

static void unwant(struct core *c, uint64_t file, const struct inputs *in)
{
        void *v = wanting_of(c, file);

        c->data->locality_steps++;
        if (v == in) {
                idmap_take(*map_of(c, file), file);
                return;
        }
        if (!v || !is_map(v))
                return;
        idmap_take(inputs_map(v), in->number);
        if (idmap_count(inputs_map(v)))
                return;
        idmap_take(*map_of(c, file), file);
        idmap_free(inputs_map(v));
}

/* Returns the inputs with this number, if they want the file and are not leaving; NULL: there are none. */
static struct inputs *wanting_find(struct core *c, uint64_t file, uint64_t number)
{
        void *v = wanting_of(c, file);
        struct inputs *in = v && is_map(v) ? idmap_get(inputs_map(v), number) : v;

        return in && in->number == number && !in->leaves ? in : NULL;
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

/* Returns whether `test` is true of the agent and any file of the member's own. */
static bool own_any(const struct inputs *in, uint32_t member, const struct core_agent *a,
                    bool (*test)(const struct core_agent *a, uint64_t file))
{
        size_t at = (size_t)(member - in->part->first) * in->width;

        for (size_t i = 0; i < in->width; i++)
                if (in->ids[at + i] && test(a, in->ids[at + i]))
                        return true;
        return false;
}

/* ---- files that agents have received or dropped
 *
 * A file may be wanted by millions of members, and an agent may report it again and again. Therefore the sets
 * follow in slices: at once if there is little to do, otherwise with the core's ticks, agents in turn. A file
 * that changes while it waits is handled once, by whether the agent holds it then. Until then the sets may
 * have members that are not near, or lack some that are. */

struct locality_late {
        struct core_agent *agent;
        struct locality_late *next; /* in data.late */
        bool queued;
        uint64_t *files; /* that wait, oldest first: from `first` on */
        size_t first, count, cap;
        struct idmap *waits; /* the same files, for looking up */
        /* The file whose members are being handled, while `busy`: the numbers of the inputs that wanted it at
         * the beginning, the present one, and the next entry of its chain. */
        bool busy, in_chain;
        uint64_t file, *numbers;
        size_t number_count, at_number;
        uint32_t entry;
};

static bool is_late(const struct core_agent *a, uint64_t file)
{
        const struct locality_late *l = a->data ? a->data->late : NULL;

        return l && ((l->busy && l->file == file) || idmap_get(l->waits, file));
}

static void late_queue(struct core *c, struct locality_late *l)
{
        struct locality_late **at = &c->data->late;

        if (l->queued)
                return;
        while (*at)
                at = &(*at)->next;
        l->queued = true;
        l->next = NULL;
        *at = l;
}

static void late_unqueue(struct core *c, struct locality_late *l)
{
        struct locality_late **at = &c->data->late;

        while (*at && *at != l)
                at = &(*at)->next;
        if (*at)
                *at = l->next;
        l->queued = false;
}

static void late_end(struct locality_late *l)
{
        free(l->numbers);
        l->numbers = NULL;
        l->number_count = l->at_number = 0;
        l->busy = l->in_chain = false;
}

void locality_late_free(struct locality_late *l)
{
        if (!l)
                return;
        late_end(l);
        idmap_free(l->waits);
        free(l->files);
        free(l);
}

void locality_changed(struct core *c, struct core_agent *a, uint64_t file)
{
        struct locality_late *l = a->data->late;

        if (!wanting_of(c, file))
                return;
        if (!l) {
                l = a->data->late = mem_new(struct locality_late);
                l->agent = a;
                l->waits = idmap_new();
        }
        if (l->busy && l->file == file)
                late_end(l);
        if (idmap_put(l->waits, file, l))
                return;
        MEM_GROW(l->files, l->cap, l->count + 1);
        l->files[l->count++] = file;
        late_queue(c, l);
}

/* Takes the next file. Returns false if there is none. */
static bool late_begin(struct core *c, struct locality_late *l)
{
        void *v, *in;

        if (l->first == l->count) {
                free(l->files);
                l->files = NULL;
                l->first = l->count = l->cap = 0;
                return false;
        }
        l->file = l->files[l->first++];
        idmap_take(l->waits, l->file);
        l->busy = true;
        v = wanting_of(c, l->file);
        if (!v)
                return true;
        l->numbers = mem_array(NULL, is_map(v) ? idmap_count(inputs_map(v)) : 1, sizeof(*l->numbers));
        if (!is_map(v))
                l->numbers[l->number_count++] = ((struct inputs *)v)->number;
        for (size_t at = 0; is_map(v) && idmap_next(inputs_map(v), &at, NULL, &in);)
                l->numbers[l->number_count++] = ((struct inputs *)in)->number;
        return true;
}

static void drop_empty(struct core *c, struct inputs *in, struct locality *n)
{
        if (!n || set_count(&n->members))
                return;
        idmap_take(in->localities, n->agent->number);
        locality_free(c, n);
}

/* Handles members of the present inputs, at most `budget` entries of their chain. Returns how many it was. */
static uint64_t late_chain(struct core *c, struct locality_late *l, struct inputs *in, uint64_t budget)
{
        bool holds = agent_holds(l->agent, l->file);
        struct locality *n = locality_find(in, l->agent);
        uint64_t steps = 1;

        if (!l->in_chain)
                l->entry = holds || n ? in->heads[inputs_head(in, l->file)] : INPUTS_NONE;
        l->in_chain = true;
        for (; steps < budget && l->entry != INPUTS_NONE; l->entry = in->after[l->entry - 1], steps++) {
                uint32_t member = in->part->first + (l->entry - 1) / in->width;

                if (in->ids[l->entry - 1] != l->file)
                        continue;
                if (holds && (n || (n = locality_get(c, in, l->agent))))
                        set_add(&n->members, member);
                else if (!holds && n && !own_any(in, member, l->agent, agent_holds))
                        set_remove(&n->members, member);
                steps += holds ? 0 : in->width / ROW_STEP;
        }
        drop_empty(c, in, n);
        if (l->entry == INPUTS_NONE) {
                l->in_chain = false;
                l->at_number++;
        }
        return steps;
}

/* Handles an agent's files, for about `budget` steps. Returns how many it were. */
static uint64_t late_some(struct core *c, struct locality_late *l, uint64_t budget)
{
        uint64_t steps = 0;

        while (steps < budget && (l->busy || late_begin(c, l))) {
                struct inputs *in;

                steps++;
                if (l->at_number == l->number_count) {
                        late_end(l);
                        continue;
                }
                in = wanting_find(c, l->file, l->numbers[l->at_number]);
                if (in) {
                        steps += late_chain(c, l, in, budget - steps + 2);
                } else {
                        l->in_chain = false;
                        l->at_number++;
                }
        }
        if (!l->busy && l->first == l->count)
                late_unqueue(c, l);
        c->data->locality_steps += steps;
        return steps;
}

static uint64_t late_allowance(struct core *c)
{
        struct data *d = c->data;
        int64_t passed = c->steady_ms - d->late_ms;

        d->late_ms = c->steady_ms;
        if (passed > 0)
                d->late_left += passed > 1000 ? LATE_BURST : (uint64_t)passed * LATE_PER_MS;
        if (d->late_left > LATE_BURST)
                d->late_left = LATE_BURST;
        return d->late_left < LATE_SLICE ? d->late_left : LATE_SLICE;
}

static void late_slice(struct core *c, struct locality_late *l)
{
        uint64_t steps = late_some(c, l, late_allowance(c));

        c->data->late_left -= steps < c->data->late_left ? steps : c->data->late_left;
}

void locality_follow(struct core *c, struct core_agent *a)
{
        if (a->data->late && a->data->late->queued)
                late_slice(c, a->data->late);
}

int64_t locality_tick(struct core *c)
{
        struct locality_late *l = c->data->late;

        if (!l)
                return INT64_MAX;
        late_slice(c, l);
        if (l->queued) { /* behind the others */
                late_unqueue(c, l);
                late_queue(c, l);
        }
        return c->data->late ? 1 : INT64_MAX;
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

void locality_init(struct core *c)
{
        c->data->late_left = LATE_BURST;
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

                        if (!is_late(f->holders[k], in->ids[i]) &&
                            (n ? !set_has(&n->members, member) : c->data->locality_count < NEARS_MAX))
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
                        if (!own_any(in, (uint32_t)m, n->agent, agent_holds) &&
                            !own_any(in, (uint32_t)m, n->agent, is_late))
                                return false;
        }
        return true;
}
