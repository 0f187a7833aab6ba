/* Requests: members in sets, records only for those that were given to an agent. */
#include "core/better.h"
#include "core/claim.h"
#include "core/eta_play.h"
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

/* No-op when it is hidden. */
static void unlink_request(struct core *c, struct request *r)
{
        if (request_find(c, r->id) != r)
                return;
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

void request_hide(struct core *c, struct request *r)
{
        claim_members_ended(c, r, r->queued_count);
        unlink_request(c, r);
}

void request_free(struct core *c, struct request *r)
{
        void *value;

        request_buckets_free(c, r);
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
        unlink_request(c, r);
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
