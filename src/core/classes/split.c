#include "core/classes/split.h"

#include "base/mem.h"
#include "base/pack.h"
#include "core/classes/bucket.h"
#include "core/classes/job_class.h"
#include "core/classes/member_ad.h"
#include "core/data/label.h"
#include "core/model/edit.h"
#include "core/model/item.h"

static int64_t member_priority(struct core *c, const struct request *r, const struct part *p, uint32_t member)
{
        struct ad *ad = NULL;
        int64_t priority = 0;

        for (size_t i = 0; i < p->job_template->late_count && !ad; i++)
                if (p->job_template->late[i].name == c->attr.JobPrio)
                        ad = member_ad(c, r, member, NULL);
        item_integer(c, ad ? ad : p->job_template->ad, c->attr.JobPrio, &priority);
        eval_reset(&c->eval);
        ad_free(ad);
        return priority;
}

/* Cache of buckets: members whose significant late attributes expand to the same texts are in one bucket. The
 * classes found so far show which late attributes are
 * significant. */
struct alike {
        struct map *buckets; /* by the texts */
        bool *matters;       /* whether each late attribute of the template is significant */
        bool none; /* the class depends on the member's number or its inputs: no two members are alike */
        struct buf key, text;
};

static void alike_begin(struct core *c, const struct part *p, bool late_priority, struct alike *a)
{
        *a = (struct alike){.buckets = map_new(),
                            .matters = mem_zalloc(p->job_template->late_count + 1),
                            .none = label_differs(c, p)};
        for (size_t i = 0; i < p->job_template->late_count; i++)
                a->matters[i] = late_priority; /* the priority may refer to any of them */
}

static void alike_end(struct alike *a)
{
        map_free(a->buckets);
        free(a->matters);
        buf_deinit(&a->key);
        buf_deinit(&a->text);
}

/* Returns the bucket of earlier members that are like this one; NULL: none is known. */
static struct bucket *alike_find(struct core *c, const struct request *r, const struct part *p,
                                 uint32_t member, struct alike *a)
{
        size_t left = LATE_TEXT_MAX;

        buf_reset(&a->key);
        for (size_t i = 0; !a->none && i < p->job_template->late_count; i++) {
                if (!a->matters[i])
                        continue;
                buf_reset(&a->text);
                if (part_expand(c, r, p, member, p->job_template->late[i].text, &left, &a->text, NULL) != 0)
                        return NULL;
                pack_str(&a->key, buf_view(&a->text));
        }
        return a->none ? NULL : map_get(a->buckets, buf_view(&a->key));
}

/* Stores the bucket of the member that alike_find was last called for. */
static void alike_learn(struct core *c, const struct part *p, struct bucket *b, struct alike *a)
{
        bool more = false;

        a->none |= ad_find(b->job_class->ad, c->attr.ProcId) != NULL;
        for (size_t i = 0; i < p->job_template->late_count; i++)
                if (!a->matters[i] && ad_find(b->job_class->ad, p->job_template->late[i].name))
                        a->matters[i] = more = true;
        if (!more) {
                map_put(a->buckets, buf_view(&a->key), b);
                return;
        }
        map_free(a->buckets);
        a->buckets = map_new();
}

struct split {
        struct core *core;
        struct request *request;
        uint64_t keyed; /* classes.keyed at the begin */
        uint32_t classes_max;
        const struct set *only;           /* members to be split; NULL: all */
        struct bucket **buckets, *few[4]; /* few: the first array */
        uint32_t count, cap;
        uint32_t at; /* index of the next or present piece */
        struct piece piece;
        bool under_way;
        /* state of the present piece: */
        uint64_t member;
        uint32_t first_bucket;
        bool late_priority, late_class;
        struct alike alike;
};

struct split *split_new(struct core *c, struct request *r, uint32_t classes_max)
{
        struct split *s = mem_new(struct split);

        s->core = c;
        s->request = r;
        s->buckets = s->few;
        s->cap = sizeof(s->few) / sizeof(s->few[0]);
        s->keyed = c->classes->keyed;
        s->classes_max = classes_max ? classes_max : UINT32_MAX;
        return s;
}

static struct bucket *split_append(struct split *s, struct job_class *k, int64_t priority)
{
        if (s->count == s->cap) {
                bool first = s->buckets == s->few;

                s->cap *= 2;
                s->buckets = mem_array(first ? NULL : s->buckets, s->cap, sizeof(*s->buckets));
                if (first)
                        memcpy(s->buckets, s->few, sizeof(s->few));
        }
        return s->buckets[s->count++] = bucket_new(s->core, s->request, k, s->piece.number, priority);
}

static void part_end(struct split *s)
{
        if (s->under_way)
                alike_end(&s->alike);
        s->under_way = false;
        s->at++;
}

static void drop_split(struct split *s)
{
        part_end(s);
        for (uint32_t i = 0; i < s->count; i++)
                bucket_free(s->core, s->buckets[i]);
        s->count = s->at = 0;
}

static void spend(uint32_t *budget, uint32_t cost)
{
        *budget -= *budget < cost ? *budget : cost;
}

/* Returns the first member to be split of the piece from `from` on; SET_END: none. */
static uint64_t next_member(const struct split *s, uint64_t from)
{
        uint64_t m = piece_next(s->request, &s->piece, from);

        while (s->only && m != SET_END && !set_has(s->only, (uint32_t)m)) {
                m = set_next(s->only, m);
                if (m != SET_END)
                        m = piece_next(s->request, &s->piece, m);
        }
        return m;
}

/* Begins a piece; one whose members are all alike is finished at once. */
static void split_part_begin(struct split *s, uint32_t *budget)
{
        struct core *c = s->core;
        struct request *r = s->request;
        struct part *p;
        uint64_t first, steps = core_steps(c);
        struct bucket *b;

        s->piece = request_piece(r, s->at);
        p = s->piece.part;
        first = next_member(s, p->first);

        s->late_priority = false;
        s->late_class = job_class_is_per_member(c, p->job_template) || label_differs(c, p);
        p->job_template->late_class = s->late_class;
        for (size_t i = 0; i < p->job_template->late_count; i++)
                s->late_priority |= p->job_template->late[i].name == c->attr.JobPrio;
        if (first != SET_END && (s->late_class || s->late_priority)) {
                s->under_way = true;
                s->member = first;
                s->first_bucket = s->count;
                alike_begin(c, p, s->late_priority, &s->alike);
                return;
        }
        if (first != SET_END) {
                b = split_append(s, job_class_get(c, r, p, (uint32_t)first),
                                 member_priority(c, r, p, (uint32_t)first));
                if (s->only || request_piece_count(r) > 1) {
                        b->members = mem_new(struct set);
                        set_add_range(b->members, p->first, (uint64_t)p->first + p->count);
                        piece_keep(r, &s->piece, b->members);
                        if (s->only)
                                set_keep_all(b->members, s->only);
                }
        }
        spend(budget, SPLIT_CLASS + (uint32_t)((core_steps(c) - steps) / SPLIT_STEPS));
        part_end(s);
}

/* Finds or adds the bucket of a member that is unlike all before it. */
static struct bucket *find_bucket(struct split *s, const struct part *p, uint32_t m)
{
        struct core *c = s->core;
        struct job_class *k = job_class_get(c, s->request, p, m);
        int64_t priority = member_priority(c, s->request, p, m);
        struct bucket *b = NULL;

        for (uint32_t i = s->first_bucket; i < s->count && !b; i++)
                if (s->buckets[i]->job_class == k && s->buckets[i]->priority == priority)
                        b = s->buckets[i];
        if (b) {
                job_class_unref(c, k);
        } else {
                b = split_append(s, k, priority);
                b->members = mem_new(struct set);
        }
        alike_learn(c, p, b, &s->alike);
        return b;
}

static void part_some(struct split *s, uint32_t *budget)
{
        struct part *p = s->piece.part;

        p->job_template->late_class = s->late_class; /* other parts may share the template */
        for (; *budget > 0 && s->member != SET_END && !split_too_many(s);
             s->member = next_member(s, s->member + 1)) {
                uint64_t steps = core_steps(s->core);
                uint32_t m = (uint32_t)s->member;
                struct bucket *b = alike_find(s->core, s->request, p, m, &s->alike);

                spend(budget, b ? 1 : SPLIT_CLASS);
                if (!b)
                        b = find_bucket(s, p, m);
                spend(budget, (uint32_t)((core_steps(s->core) - steps) / SPLIT_STEPS));
                set_add(b->members, m);
        }
        if (s->member == SET_END)
                part_end(s);
}

bool split_some(struct split *s, uint32_t *budget)
{
        const struct request *r = s->request;

        if (s->core->config.shadow) {
                if (s->count == 0)
                        split_append(s, NULL, 0);
                return false;
        }
        if (s->keyed != s->core->classes->keyed)
                drop_split(s);
        s->keyed = s->core->classes->keyed;
        while (*budget > 0 && s->at < request_piece_count(r) && !split_too_many(s)) {
                if (s->under_way)
                        part_some(s, budget);
                else
                        split_part_begin(s, budget);
        }
        return s->at < request_piece_count(r) && !split_too_many(s);
}

bool split_too_many(const struct split *s)
{
        return s->count > s->classes_max;
}

struct request *split_request(const struct split *s)
{
        return s->request;
}

void split_end(struct split *s)
{
        struct request *r = s->request;
        const struct request_cold *cold = request_cold(r);
        struct set idle = {0};

        request_idle_all(r, &idle);
        r->idle = 0;
        request_buckets_set(s->core, r, s->buckets, s->count);
        s->count = 0;
        for (size_t i = 0; i < cold->priority_count && !s->core->config.shadow; i++)
                request_set_priority(s->core, r, &cold->priorities[i].members, cold->priorities[i].priority);
        request_idle_add(s->core, r, &idle);
        set_deinit(&idle);
        split_free(s);
}

void split_free(struct split *s)
{
        if (!s)
                return;
        drop_split(s);
        if (s->buckets != s->few)
                free(s->buckets);
        free(s);
}

void split_again(struct split *s)
{
        drop_split(s);
        s->at = 0;
}

void request_split_some(struct core *c, struct request *r, const struct set *members)
{
        const struct request_cold *cold = request_cold(r);
        struct split *s = split_new(c, r, 0);
        uint32_t budget = UINT32_MAX;
        struct set idle = {0};

        request_idle_all(r, &idle);
        set_keep_all(&idle, members);
        request_buckets_leave(c, r, members);
        s->only = members;
        while (split_some(s, &budget))
                budget = UINT32_MAX;
        request_buckets_add(r, s->buckets, s->count);
        s->count = 0;
        for (size_t i = 0; i < cold->priority_count; i++)
                request_set_priority(c, r, &cold->priorities[i].members, cold->priorities[i].priority);
        request_idle_add(c, r, &idle);
        set_deinit(&idle);
        split_free(s);
}

void request_split(struct core *c, struct request *r)
{
        struct split *s = split_new(c, r, 0);
        uint32_t budget = UINT32_MAX;

        while (split_some(s, &budget))
                budget = UINT32_MAX;
        split_end(s);
}
