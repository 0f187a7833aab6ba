/* Requests hold their members in sets, and have records only for members that were given to an agent. */
#include "core/model/request.h"

#include <assert.h>
#include <errno.h>

#include "base/job/match_macro.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"
#include "core/model/core_parts.h"
#include "core/model/forgotten.h"

struct requests *requests_new(void)
{
        struct requests *all = mem_new(struct requests);

        all->by_id = idmap_new();
        all->by_uuid = idmap_new();
        all->delayed = idmap_new();
        all->forgotten = forgotten_new();
        all->owners = map_new();
        return all;
}

void requests_free(struct requests *all)
{
        if (!all)
                return;
        idmap_free(all->by_id);
        idmap_free(all->by_uuid);
        idmap_free(all->delayed);
        forgotten_free(all->forgotten);
        map_free(all->owners);
        free(all->finished);
        free(all);
}

struct request *request_find(const struct core *c, uint64_t id)
{
        struct requests *all = c->requests;
        struct request *r = all->found;

        if (!all->last || id > all->last->id)
                return NULL;
        if (r && r->id == id)
                return r;
        r = r && r->next && r->next->id == id ? r->next : idmap_get(all->by_id, id);
        if (r)
                all->found = r;
        return r;
}

/* ---- by uuid: a map by a keyed hash, with a chain for each hash. The only ones that users can make collide
 * on purpose are their own requests and others' with the same uuid. */

static uint64_t uuid_hash(const unsigned char uuid[16])
{
        return map_hash(uuid, 16);
}

struct request *request_by_uuid(const struct core *c, const unsigned char uuid[16], struct str owner)
{
        struct request *r = idmap_get(c->requests->by_uuid, uuid_hash(uuid));

        while (r && (memcmp(r->uuid, uuid, sizeof(r->uuid)) != 0 || !str_eqz(owner, request_owner(r))))
                r = request_cold(r)->uuid_next;
        return r;
}

static void uuid_put(struct core *c, struct request *r)
{
        struct request *had = idmap_put(c->requests->by_uuid, uuid_hash(r->uuid), r);

        if (had)
                request_cold_make(r)->uuid_next = had;
}

/* No-op if the request is not in the map. */
static void uuid_take(struct core *c, struct request *r)
{
        struct request *next = request_cold(r)->uuid_next,
                       *at = idmap_get(c->requests->by_uuid, uuid_hash(r->uuid));

        if (at != r) {
                while (at && request_cold(at)->uuid_next != r)
                        at = request_cold(at)->uuid_next;
                if (at)
                        at->cold->uuid_next = next;
        } else if (next) {
                idmap_put(c->requests->by_uuid, uuid_hash(r->uuid), next);
        } else {
                idmap_take(c->requests->by_uuid, uuid_hash(r->uuid));
        }
}

/* ---- owners: one struct for all requests of a user */

struct owner *owner_ref(struct core *c, struct str name)
{
        struct owner *o = map_get(c->requests->owners, name);

        if (!o) {
                o = mem_zalloc(sizeof(*o) + name.n + 1);
                if (name.n)
                        memcpy(o->name, name.p, name.n);
                map_put(c->requests->owners, name, o);
        }
        o->refs++;
        return o;
}

void owner_unref(struct core *c, struct owner *o)
{
        if (!o || --o->refs)
                return;
        map_take(c->requests->owners, str_of(o->name));
        free(o);
}

/* ---- requests */

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

/* Inserts in the order of numbers: a draft may have a lower number than requests accepted before it. */
void requests_add(struct core *c, struct request *r)
{
        struct request *before = c->requests->last;

        while (before && before->id > r->id)
                before = before->prev;
        r->prev = before;
        r->next = before ? before->next : c->requests->first;
        *(r->next ? &r->next->prev : &c->requests->last) = r;
        *(before ? &before->next : &c->requests->first) = r;
        idmap_put(c->requests->by_id, r->id, r);
        if (r->owner)
                uuid_put(c, r);
}

void requests_remove(struct core *c, struct request *r)
{
        uuid_take(c, r);
        if (c->requests->found == r)
                c->requests->found = NULL;
        idmap_take(c->requests->by_id, r->id);
        idmap_take(c->requests->delayed, r->id);
        if (r->next)
                r->next->prev = r->prev;
        else
                c->requests->last = r->prev;
        if (r->prev)
                r->prev->next = r->next;
        else
                c->requests->first = r->next;
        r->next = r->prev = NULL;
}

void job_free(struct job *j)
{
        free(j->hold_reason);
        free(j->more);
        free(j->more_text);
        free(j->outputs);
        free(j->filled);
        free(j->checkpoint);
        free(j->own);
        free(j->losses);
        joblog_deinit(&j->log);
        free(j);
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
        struct part *edited = NULL;
        uint32_t i = 0, end = r->part_count; /* parts[i].first <= member < parts[end].first */

        while (i + 1 < end) {
                uint32_t middle = i + (end - i) / 2;

                if (r->parts[middle].first <= member)
                        i = middle;
                else
                        end = middle;
        }
        if (r->cold && r->cold->edits)
                edited = request_part_of_edit(r, member, i, &i);
        if (ret_part)
                *ret_part = i;
        return edited ? edited : &r->parts[i];
}

static enum job_state idle_state(const struct request_cold *cold, uint32_t member)
{
        return set_has(&cold->authorised, member) ? JOB_AUTHORISED
               : set_has(&cold->reserved, member) ? JOB_RESERVED
                                                  : JOB_IDLE;
}

enum job_state request_state(const struct request *r, uint32_t member)
{
        const struct request_cold *cold = request_cold(r);
        struct job *j = request_job(r, member);

        if (j && j->state != JOB_IDLE)
                return j->state;
        if (set_has(&cold->completed, member))
                return JOB_COMPLETED;
        if (set_has(&cold->removed, member))
                return JOB_REMOVED;
        if (set_has(&cold->held, member))
                return JOB_HELD;
        return idle_state(cold, member);
}

void request_reserve_move(struct request *r, uint32_t member, enum job_state to)
{
        struct request_cold *cold = request_cold_make(r);

        sm_check(&job_states, request_state(r, member), to);
        if (to == JOB_IDLE)
                set_remove(&cold->reserved, member);
        else
                set_add(&cold->reserved, member);
        if (to == JOB_AUTHORISED)
                set_add(&cold->authorised, member);
        else
                set_remove(&cold->authorised, member);
}

void request_reserve_over(struct request *r, const struct set *members)
{
        if (set_count(&request_cold(r)->reserved) == 0)
                return;
        set_remove_all(&r->cold->reserved, members);
        set_remove_all(&r->cold->authorised, members);
}

uint64_t request_unended(const struct request *r)
{
        const struct request_cold *cold = request_cold(r);

        return r->count - set_count(&cold->completed) - set_count(&cold->removed);
}

bool request_ended(const struct request *r)
{
        return request_unended(r) == 0;
}

static bool bucket_has(const struct bucket *b, uint32_t member)
{
        return !b->members || set_has(b->members, member);
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
        return set_has(&request_cold(r)->waiting, member);
}

void request_idle_all(const struct request *r, struct set *to)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                set_add_all(to, &r->buckets[i]->idle);
        set_add_all(to, &request_cold(r)->waiting);
}
