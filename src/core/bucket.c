/* The buckets of a request: its idle members by class and priority. */
#include "core/better.h"
#include "core/eta_play.h"
#include "core/order.h"

#include "base/mem.h"
#include "base/pack.h"

void request_buckets_free(struct core *c, struct request *r)
{
        for (size_t i = 0; i < r->bucket_count; i++) {
                struct bucket *b = r->buckets[i];
                uint64_t had = set_count(&b->idle);

                eta_play_bucket_gone(c, b);
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

bool request_idle_has(const struct request *r, uint32_t member)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                if (set_has(&r->buckets[i]->idle, member))
                        return true;
        return false;
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
        request_buckets_free(c, r);
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
