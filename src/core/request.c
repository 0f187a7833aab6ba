/* Requests: members in sets, records only for those that were given to an agent. */
#include "core/better.h"
#include "core/claim.h"
#include "core/order.h"

#include <assert.h>
#include <errno.h>

#include "base/match_macro.h"
#include "base/mem.h"
#include "base/pack.h"

struct request *request_find(const struct core *c, uint64_t id)
{
        return idmap_get(c->requests, id);
}

/* ---- by uuid: a map by a keyed hash of it, which nobody can make collide on purpose; and a chain */

static uint64_t uuid_hash(const unsigned char uuid[16])
{
        return map_hash(uuid, 16);
}

struct request *request_by_uuid(const struct core *c, const unsigned char uuid[16])
{
        struct request *r = idmap_get(c->uuids, uuid_hash(uuid));

        while (r && memcmp(r->uuid, uuid, sizeof(r->uuid)) != 0)
                r = request_rare(r)->uuid_next;
        return r;
}

static void uuid_put(struct core *c, struct request *r)
{
        struct request *had = idmap_put(c->uuids, uuid_hash(r->uuid), r);

        if (had)
                request_rare_make(r)->uuid_next = had;
}

/* No-op when it never got there. */
static void uuid_take(struct core *c, struct request *r)
{
        struct request *next = request_rare(r)->uuid_next, *at = idmap_get(c->uuids, uuid_hash(r->uuid));

        if (at != r) {
                while (at && request_rare(at)->uuid_next != r)
                        at = request_rare(at)->uuid_next;
                if (at)
                        at->rare->uuid_next = next;
        } else if (next) {
                idmap_put(c->uuids, uuid_hash(r->uuid), next);
        } else {
                idmap_take(c->uuids, uuid_hash(r->uuid));
        }
}

/* ---- owners: one string for all requests of a user */

static struct owner *owner_ref(struct core *c, struct str name)
{
        struct owner *o = map_get(c->owners, name);

        if (!o) {
                o = mem_zalloc(sizeof(*o) + name.n + 1);
                if (name.n)
                        memcpy(o->name, name.p, name.n);
                map_put(c->owners, name, o);
        }
        o->refs++;
        return o;
}

static void owner_unref(struct core *c, struct owner *o)
{
        if (!o || --o->refs)
                return;
        map_take(c->owners, str_of(o->name));
        free(o);
}

/* ---- */

struct request *request_new(struct core *c, uint64_t id, int64_t at_ms, uint32_t count)
{
        struct request *r = mem_new(struct request);

        r->id = id;
        r->submitted_ms = at_ms;
        r->count = count;
        r->buckets = &r->only_bucket;
        r->bucket_cap = 1;
        idmap_put(c->requests, id, r);
        r->prev = c->last;
        if (c->last)
                c->last->next = r;
        else
                c->first = r;
        c->last = r;
        return r;
}

/* Copies the items to `room`; returns what is behind them. */
static char *part_load_items(struct part *p, struct str items, char *room)
{
        uint64_t row = 0;
        const char *at, *end;

        if (items.n == 0)
                return room;
        p->items = memcpy(room, items.p, items.n);
        p->items_n = (uint32_t)items.n;
        if (p->rows > ROW_STRIDE)
                p->row_at = mem_alloc((p->rows / ROW_STRIDE + 1) * sizeof(*p->row_at));
        for (at = p->items, end = at + items.n; at < end; row++) {
                if (p->row_at && row % ROW_STRIDE == 0)
                        p->row_at[row / ROW_STRIDE] = (uint32_t)(at - p->items);
                at = memchr(at, '\n', (size_t)(end - at));
                assert(at);
                at++;
        }
        return room + items.n;
}

void request_inputs_free(struct core *c, struct request *r)
{
        for (size_t i = 0; i < r->part_count; i++) {
                inputs_free(c, r->parts[i].inputs);
                r->parts[i].inputs = NULL;
        }
}

void request_data_load(struct core *c, struct request *r)
{
        request_inputs_free(c, r);
        for (size_t i = 0; i < r->part_count; i++) {
                struct part *p = &r->parts[i];

                estimate_attach(c, r, p);
                p->output_store = (uint16_t)inputs_output_store(c, r, p);
                p->inputs = inputs_new(c, r, p);
        }
}

int request_load(struct core *c, struct request *r, const struct submission *s, struct err *err)
{
        uint64_t first = 0, items = 0;
        char *room;

        memcpy(r->uuid, s->uuid, sizeof(r->uuid));
        r->owner = owner_ref(c, s->owner);
        if (submission_members(s) != r->count)
                return err_set(
                        err, CORE_DAMAGED, "request %llu has %llu jobs in its record and %u in the log",
                        (unsigned long long)r->id, (unsigned long long)submission_members(s), r->count);
        uuid_put(c, r);
        claim_request(c, r, request_unended(r));
        request_spooled_load(r, s);
        for (size_t i = 0; i < s->part_count; i++)
                items += s->parts[i].items.n;
        r->parts = mem_zalloc(s->part_count * sizeof(*r->parts) + items);
        room = (char *)(r->parts + s->part_count);
        for (; r->part_count < s->part_count; r->part_count++) {
                const struct submission_part *from = &s->parts[r->part_count];
                struct part *p = &r->parts[r->part_count];
                int e;

                e = template_get(c, from, &p->template, err);
                if (e)
                        return e;
                p->first = (uint32_t)first;
                p->count = (uint32_t)(from->rows * from->steps);
                p->rows = (uint32_t)from->rows;
                p->steps = (uint32_t)from->steps;
                room = part_load_items(p, from->items, room);
                p->item_fills = match_macro_present(from->items);
                p->template->late_class = class_is_per_member(c, p->template);
                r->periodic |= p->template->periodic_policy;
                r->leaves |= p->template->leaves;
                r->has_sets |= p->template->gang.size != 0;
                first += p->count;
        }
        request_data_load(c, r);
        hop_load(c, r, s);
        return 0;
}

static void job_free(struct job *j)
{
        free(j->hold_reason);
        free(j->more);
        free(j->more_text);
        free(j->outputs);
        free(j->filled);
        free(j->checkpoint);
        joblog_deinit(&j->log);
        free(j);
}

static void drop_buckets(struct core *c, struct request *r)
{
        for (size_t i = 0; i < r->bucket_count; i++) {
                struct bucket *b = r->buckets[i];
                uint64_t had = set_count(&b->idle);

                set_deinit(&b->idle);
                class_bucket_drained(c, b, had);
                if (b->members)
                        set_deinit(b->members);
                free(b->members);
                class_unref(c, b->class);
                free(b);
        }
        r->bucket_count = 0;
}

void request_free(struct core *c, struct request *r)
{
        void *value;

        drop_buckets(c, r);
        request_inputs_free(c, r);
        hop_free(c, r);
        claim_members_ended(c, r, r->queued_count);
        if (r->buckets != &r->only_bucket)
                free(r->buckets);
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);) {
                claim_end(c, value, 0);
                job_free(value);
        }
        idmap_free(r->jobs);
        for (size_t i = 0; i < r->part_count; i++) {
                template_unref(c, r->parts[i].template);
                free(r->parts[i].row_at);
        }
        free(r->parts);
        better_forget(r);
        c->left -= set_count(&request_rare(r)->left);
        uuid_take(c, r);
        request_rare_free(r);
        idmap_take(c->requests, r->id);
        if (c->rekey_next == r)
                c->rekey_next = r->next;
        if (r->next)
                r->next->prev = r->prev;
        else
                c->last = r->prev;
        if (r->prev)
                r->prev->next = r->next;
        else
                c->first = r->next;
        owner_unref(c, r->owner);
        free(r);
}

struct job *request_job(const struct request *r, uint32_t member)
{
        return r->jobs ? idmap_get(r->jobs, member) : NULL;
}

struct job *request_job_make(struct core *c, struct request *r, uint32_t member)
{
        struct job *j = request_job(r, member);

        if (j)
                return j;
        if (!r->jobs)
                r->jobs = idmap_new();
        j = mem_new(struct job);
        j->request = r;
        j->member = member;
        j->state = JOB_IDLE;
        j->entered_ms = c->now_ms;
        idmap_put(r->jobs, member, j);
        return j;
}

void request_job_drop(struct request *r, struct job *j)
{
        assert(!j->queue);
        idmap_take(r->jobs, j->member);
        if (idmap_count(r->jobs) == 0) {
                idmap_free(r->jobs);
                r->jobs = NULL;
        }
        job_free(j);
}

struct part *request_part(const struct request *r, uint32_t member, uint32_t *ret_part)
{
        uint32_t i = 0;

        while (i + 1 < r->part_count && member >= r->parts[i + 1].first)
                i++;
        if (ret_part)
                *ret_part = i;
        return &r->parts[i];
}

bool request_idle_has(const struct request *r, uint32_t member)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                if (set_has(&r->buckets[i]->idle, member))
                        return true;
        return false;
}

enum job_state request_state(const struct request *r, uint32_t member)
{
        const struct request_rare *rare = request_rare(r);
        struct job *j = request_job(r, member);

        if (j)
                return j->state;
        if (set_has(&rare->completed, member))
                return JOB_COMPLETED;
        if (set_has(&rare->removed, member))
                return JOB_REMOVED;
        if (set_has(&rare->held, member))
                return JOB_HELD;
        return JOB_IDLE;
}

static bool bucket_has(const struct bucket *b, uint32_t member)
{
        return !b->members || set_has(b->members, member);
}

/* Those of them that are the bucket's; the caller frees. */
static struct set bucket_mine(const struct bucket *b, const struct set *members)
{
        struct set mine;

        set_copy(&mine, members);
        if (b->members)
                set_keep_all(&mine, b->members);
        return mine;
}

struct bucket *request_bucket(struct core *c, const struct request *r, uint32_t member)
{
        (void)c;
        for (size_t i = 0; i < r->bucket_count; i++)
                if (bucket_has(r->buckets[i], member))
                        return r->buckets[i];
        return NULL;
}

void request_idle_all(const struct request *r, struct set *to)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                set_add_all(to, &r->buckets[i]->idle);
}

static void bucket_change(struct core *c, struct request *r, struct bucket *b, const struct set *members,
                          bool add)
{
        uint64_t had = set_count(&b->idle), has;
        struct set mine = bucket_mine(b, members);

        if (add)
                set_add_all(&b->idle, &mine);
        else
                set_remove_all(&b->idle, &mine);
        set_deinit(&mine);
        has = set_count(&b->idle);
        if (has > had) {
                r->idle += (uint32_t)(has - had);
                class_bucket_filled(c, b, has - had);
        } else if (has < had) {
                r->idle -= (uint32_t)(had - has);
                class_bucket_drained(c, b, had - has);
        }
}

void request_idle_add(struct core *c, struct request *r, const struct set *members)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                bucket_change(c, r, r->buckets[i], members, true);
}

void request_idle_remove(struct core *c, struct request *r, const struct set *members)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                bucket_change(c, r, r->buckets[i], members, false);
        better_left(r, members);
}

/* Of the whole request; split_part and request_set_priority give it members. */
static struct bucket *add_bucket(struct core *c, struct request *r, struct class *k, uint32_t part,
                                 int64_t priority)
{
        struct bucket *b = mem_new(struct bucket), **had = r->buckets;

        b->request = r;
        b->class = k;
        b->part = part;
        b->priority = priority;
        b->points = order_bucket_points(c, b);
        if (r->bucket_count == r->bucket_cap) {
                r->bucket_cap *= 2;
                r->buckets = mem_array(had == &r->only_bucket ? NULL : had, r->bucket_cap, sizeof(*had));
                if (had == &r->only_bucket)
                        r->buckets[0] = r->only_bucket;
        }
        r->buckets[r->bucket_count++] = b;
        return b;
}

static int64_t member_priority(struct core *c, const struct request *r, const struct part *p, uint32_t member)
{
        struct ad *ad = NULL;
        int64_t priority = 0;

        for (size_t i = 0; i < p->template->late_count && !ad; i++)
                if (p->template->late[i].name == c->attr.JobPrio)
                        ad = member_ad(c, r, member, NULL);
        eval_integer(&c->eval, ad ? ad : p->template->ad, NULL, c->attr.JobPrio, &priority);
        eval_reset(&c->eval);
        ad_free(ad);
        return priority;
}

/* Members whose late attributes that matter come to the same text are in one bucket: what an earlier one was
 * found to be in. Which of them matter is seen from the classes that were made. */
struct alike {
        struct map *buckets; /* by the texts */
        bool *matters;       /* of each late attribute of the template */
        bool none;           /* it depends on the member's number, or on what it reads: no two are alike */
        struct buf key, text;
};

static void alike_begin(struct core *c, const struct part *p, bool late_priority, struct alike *a)
{
        *a = (struct alike){.buckets = map_new(),
                            .matters = mem_zalloc(p->template->late_count + 1),
                            .none = label_differs(c, p)};
        for (size_t i = 0; i < p->template->late_count; i++)
                a->matters[i] = late_priority; /* it may look at any of them */
}

static void alike_end(struct alike *a)
{
        map_free(a->buckets);
        free(a->matters);
        buf_deinit(&a->key);
        buf_deinit(&a->text);
}

/* The bucket of members like this one; NULL: there was none yet, or that is not known. */
static struct bucket *alike_find(const struct request *r, const struct part *p, uint32_t member,
                                 struct alike *a)
{
        buf_reset(&a->key);
        for (size_t i = 0; !a->none && i < p->template->late_count; i++) {
                if (!a->matters[i])
                        continue;
                buf_reset(&a->text);
                if (part_expand(r, p, member, p->template->late[i].text, &a->text, NULL) != 0)
                        return NULL;
                pack_str(&a->key, buf_view(&a->text));
        }
        return a->none ? NULL : map_get(a->buckets, buf_view(&a->key));
}

/* The member that alike_find was asked about is in this bucket. */
static void alike_learn(struct core *c, const struct part *p, struct bucket *b, struct alike *a)
{
        bool more = false;

        a->none |= ad_find(b->class->ad, c->attr.ProcId) != NULL;
        for (size_t i = 0; i < p->template->late_count; i++)
                if (!a->matters[i] && ad_find(b->class->ad, p->template->late[i].name))
                        a->matters[i] = more = true;
        if (!more) {
                map_put(a->buckets, buf_view(&a->key), b);
                return;
        }
        map_free(a->buckets);
        a->buckets = map_new();
}

static void split_part(struct core *c, struct request *r, uint32_t index)
{
        struct part *p = &r->parts[index];
        size_t from = r->bucket_count;
        bool late_priority = false;
        struct alike alike;

        p->template->late_class = class_is_per_member(c, p->template) || label_differs(c, p);
        for (size_t i = 0; i < p->template->late_count; i++)
                late_priority |= p->template->late[i].name == c->attr.JobPrio;
        if (p->count == 0)
                return;
        if (!p->template->late_class && !late_priority) {
                struct bucket *b = add_bucket(c, r, class_get(c, r, p, p->first), index,
                                              member_priority(c, r, p, p->first));

                if (r->part_count > 1) {
                        b->members = mem_new(struct set);
                        set_add_range(b->members, p->first, (uint64_t)p->first + p->count);
                }
                return;
        }
        alike_begin(c, p, late_priority, &alike);
        for (uint32_t m = p->first; m < p->first + p->count; m++) {
                struct bucket *b = alike_find(r, p, m, &alike);

                if (b) {
                        set_add(b->members, m);
                        continue;
                }
                /* Too many already: the submit is about to be refused. */
                if (c->submitting && r->bucket_count > c->config.classes_max)
                        break;
                struct class *k = class_get(c, r, p, m);
                int64_t priority = member_priority(c, r, p, m);

                for (size_t i = from; i < r->bucket_count && !b; i++)
                        if (r->buckets[i]->class == k && r->buckets[i]->priority == priority)
                                b = r->buckets[i];
                if (b) {
                        class_unref(c, k);
                } else {
                        b = add_bucket(c, r, k, index, priority);
                        b->members = mem_new(struct set);
                }
                set_add(b->members, m);
                alike_learn(c, p, b, &alike);
        }
        alike_end(&alike);
}

void request_split(struct core *c, struct request *r)
{
        const struct request_rare *rare = request_rare(r);
        struct set idle = {0};

        request_idle_all(r, &idle);
        r->idle = 0;
        drop_buckets(c, r);
        if (c->config.shadow) {
                add_bucket(c, r, NULL, 0, 0);
        } else {
                for (uint32_t i = 0; i < r->part_count; i++)
                        split_part(c, r, i);
                for (size_t i = 0; i < rare->priority_count; i++)
                        request_set_priority(c, r, &rare->priorities[i].members,
                                             rare->priorities[i].priority);
        }
        request_idle_add(c, r, &idle);
        set_deinit(&idle);
}

void request_set_priority(struct core *c, struct request *r, const struct set *members, int64_t priority)
{
        size_t count = r->bucket_count;

        for (size_t i = 0; i < count; i++) {
                struct bucket *b = r->buckets[i], *other;
                struct set mine = bucket_mine(b, members);
                uint64_t all = b->members ? set_count(b->members) : r->count;

                if (b->priority == priority || set_count(&mine) == 0) {
                        set_deinit(&mine);
                        continue;
                }
                if (set_count(&mine) == all) {
                        b->priority = priority;
                        b->points = order_bucket_points(c, b);
                        class_bucket_moved(c, b);
                        set_deinit(&mine);
                        continue;
                }
                if (b->class)
                        b->class->users++;
                other = add_bucket(c, r, b->class, b->part, priority);
                if (!b->members) {
                        b->members = mem_new(struct set);
                        set_add_range(b->members, 0, r->count);
                }
                set_remove_all(b->members, &mine);
                other->members = mem_new(struct set);
                *other->members = mine;
                /* What is idle of them moves along. */
                struct set idle = {0};
                set_copy(&idle, &b->idle);
                set_keep_all(&idle, other->members);
                uint64_t moved = set_count(&idle);
                set_remove_all(&b->idle, &idle);
                class_bucket_drained(c, b, moved);
                other->idle = idle;
                class_bucket_filled(c, other, moved);
        }
}

uint64_t request_unended(const struct request *r)
{
        const struct request_rare *rare = request_rare(r);

        return r->count - set_count(&rare->completed) - set_count(&rare->removed);
}

bool request_ended(const struct request *r)
{
        return request_unended(r) == 0;
}
