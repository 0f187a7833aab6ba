/* Requests: members in sets, records only for those that were given to an agent. */
#include "core/fairness/claim.h"
#include "core/fairness/order.h"
#include "core/forecast/eta_play.h"
#include "core/match/better.h"
#include "core/model/split.h"

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

struct request *request_new(uint64_t id, int64_t at_ms, uint32_t count)
{
        struct request *r = mem_new(struct request);

        r->id = id;
        r->submitted_ms = at_ms;
        r->count = count;
        r->buckets = &r->only_bucket;
        r->bucket_cap = 1;
        return r;
}

/* In the order of their numbers: a draft has one that is lower than those that were accepted before it. */
static void link_request(struct core *c, struct request *r)
{
        struct request *before = c->last;

        while (before && before->id > r->id)
                before = before->prev;
        r->prev = before;
        r->next = before ? before->next : c->first;
        *(r->next ? &r->next->prev : &c->last) = r;
        *(before ? &before->next : &c->first) = r;
        idmap_put(c->requests, r->id, r);
}

void request_show(struct core *c, struct request *r)
{
        link_request(c, r);
        if (!r->owner)
                return;
        uuid_put(c, r);
        claim_request(c, r, request_unended(r));
        hop_show(c, r);
}

void request_inputs_free(struct core *c, struct request *r)
{
        for (size_t i = 0; i < r->part_count; i++) {
                inputs_free(c, r->parts[i].inputs);
                r->parts[i].inputs = NULL;
        }
}

static void part_data_load(struct core *c, struct request *r, struct part *p)
{
        estimate_attach(c, r, p);
        p->output_store = (uint16_t)inputs_output_store(c, r, p);
        p->inputs = inputs_new(c, r, p);
}

void request_data_load(struct core *c, struct request *r)
{
        request_inputs_free(c, r);
        for (size_t i = 0; i < r->part_count; i++)
                part_data_load(c, r, &r->parts[i]);
}

int request_load_begin(struct core *c, struct request *r, const struct submission *s,
                       struct request_loading *ret, struct err *err)
{
        uint64_t items = 0;

        memcpy(r->uuid, s->uuid, sizeof(r->uuid));
        r->owner = owner_ref(c, s->owner);
        r->kib = submission_kib(s);
        r->digest = s->digest;
        if (submission_members(s) != r->count)
                return err_set(
                        err, CORE_DAMAGED, "request %llu has %llu jobs in its record and %u in the log",
                        (unsigned long long)r->id, (unsigned long long)submission_members(s), r->count);
        request_spooled_load(r, s);
        hop_load(r, s);
        for (size_t i = 0; i < s->part_count; i++)
                items += s->parts[i].items.n;
        r->parts = mem_zalloc(s->part_count * sizeof(*r->parts) + items);
        *ret = (struct request_loading){.from = s, .room = (char *)(r->parts + s->part_count)};
        return 0;
}

static int part_begin(struct core *c, struct request *r, struct request_loading *l, struct err *err)
{
        const struct submission_part *from = &l->from->parts[l->part];
        struct part *p = &r->parts[l->part], *before = l->part ? p - 1 : NULL;
        int e = template_get(c, from, l->from->owner, &p->template, err);

        if (e)
                return e;
        r->part_count++;
        p->first = before ? before->first + before->count : 0;
        p->count = (uint32_t)(from->rows * from->steps);
        p->rows = (uint32_t)from->rows;
        p->steps = (uint32_t)from->steps;
        r->periodic |= p->template->periodic_policy;
        r->leaves |= p->template->leaves;
        r->has_sets |= p->template->gang.size != 0;
        if (from->items.n == 0)
                return 0;
        p->items = l->room;
        p->items_n = (uint32_t)from->items.n;
        l->room += from->items.n;
        if (p->rows > ROW_STRIDE)
                p->row_at = mem_alloc((p->rows / ROW_STRIDE + 1) * sizeof(*p->row_at));
        return 0;
}

#define ROW_COSTS  24u /* so many rows take as long as a member that is put into a class */
#define PART_COSTS 10u

/* True: there are more rows. */
static bool load_rows(struct part *p, struct request_loading *l, uint32_t *budget)
{
        struct str items = l->from->parts[l->part].items;
        uint64_t left = (uint64_t)*budget * ROW_COSTS, had = left;

        for (; left > 0 && l->row_at < items.n; l->row++) {
                const char *at = items.p + l->row_at, *end = memchr(at, '\n', items.n - l->row_at);
                struct str row;

                assert(end);
                row = str_make(at, (size_t)(end - at));
                if (p->row_at && l->row % ROW_STRIDE == 0)
                        p->row_at[l->row / ROW_STRIDE] = (uint32_t)l->row_at;
                memcpy(p->items + l->row_at, row.p, row.n + 1);
                p->item_fills |= match_macro_present(row);
                l->row_at += row.n + 1;
                left -= left < 1 + row.n / 1024 ? left : 1 + row.n / 1024;
        }
        *budget -= (uint32_t)((had - left) / ROW_COSTS);
        return l->row_at < items.n;
}

int request_load_some(struct core *c, struct request *r, struct request_loading *l, uint32_t *budget,
                      bool *ret_more, struct err *err)
{
        while (*budget > 0 && l->part < l->from->part_count) {
                struct part *p = &r->parts[l->part];
                int e = p->template ? 0 : part_begin(c, r, l, err);

                if (e)
                        return e;
                if (load_rows(p, l, budget))
                        continue;
                part_data_load(c, r, p);
                *budget -= *budget < PART_COSTS ? *budget : PART_COSTS;
                l->part++;
                l->row_at = l->row = 0;
        }
        *ret_more = l->part < l->from->part_count;
        return 0;
}

int request_load(struct core *c, struct request *r, const struct submission *s, struct err *err)
{
        struct request_loading l;
        bool more = true;
        int e = request_load_begin(c, r, s, &l, err);

        while (!e && more) {
                uint32_t budget = UINT32_MAX;

                e = request_load_some(c, r, &l, &budget, &more, err);
        }
        return e;
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

void request_hide(struct core *c, struct request *r)
{
        if (request_find(c, r->id) != r)
                return;
        if (c->rekeying && split_request(c->rekeying) == r) {
                split_free(c->rekeying);
                c->rekeying = NULL;
        }
        claim_request_gone(c, r);
        uuid_take(c, r);
        idmap_take(c->requests, r->id);
        eta_play_request_gone(c, r);
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
        r->next = r->prev = NULL;
}

void request_free(struct core *c, struct request *r)
{
        void *value;

        request_buckets_free(c, r);
        request_inputs_free(c, r);
        hop_free(c, r);
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
        request_hide(c, r);
        request_rare_free(r);
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

uint64_t request_unended(const struct request *r)
{
        const struct request_rare *rare = request_rare(r);

        return r->count - set_count(&rare->completed) - set_count(&rare->removed);
}

bool request_ended(const struct request *r)
{
        return request_unended(r) == 0;
}
