#include "core/classes/bucket.h"

#include "base/mem.h"
#include "core/classes/job_class.h"
#include "core/model/pending_match.h"
#include "core/model/place_wait.h"
#include "core/model/precedence.h"

void bucket_free(struct core *c, struct bucket *b)
{
        uint64_t had = set_count(&b->idle);

        c->listeners.bucket_gone(c, b);
        set_deinit(&b->idle);
        job_class_bucket_drained(c, b, had);
        if (b->members)
                set_deinit(b->members);
        free(b->members);
        job_class_unref(c, b->job_class);
        free(b);
}

void request_buckets_free(struct core *c, struct request *r)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                bucket_free(c, r->buckets[i]);
        r->bucket_count = 0;
}

void request_buckets_set(struct core *c, struct request *r, struct bucket **buckets, uint32_t count)
{
        request_buckets_free(c, r);
        if (count > r->bucket_cap) {
                r->buckets = mem_array(r->buckets == &r->only_bucket ? NULL : r->buckets, count,
                                       sizeof(*r->buckets));
                r->bucket_cap = count;
        }
        if (count)
                memcpy(r->buckets, buckets, count * sizeof(*buckets));
        r->bucket_count = count;
}

/* Returns the intersection with the bucket's members; the caller frees it. */
static struct set bucket_mine(const struct bucket *b, const struct set *members)
{
        struct set mine;

        set_copy(&mine, members);
        if (b->members)
                set_keep_all(&mine, b->members);
        return mine;
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
                job_class_bucket_filled(c, b, has - had);
        } else if (has < had) {
                r->idle -= (uint32_t)(had - has);
                job_class_bucket_drained(c, b, had - has);
        }
}

static void add_to_buckets(struct core *c, struct request *r, const struct set *members)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                bucket_change(c, r, r->buckets[i], members, true);
}

void request_idle_add(struct core *c, struct request *r, const struct set *members)
{
        const struct request_cold *cold = request_cold(r);
        struct set wait = {0}, free_now = {0};

        if (set_count(&cold->blocked) == 0 && set_count(&cold->delayed) == 0) {
                add_to_buckets(c, r, members);
                return;
        }
        set_copy(&wait, &cold->blocked);
        set_add_all(&wait, &cold->delayed);
        set_keep_all(&wait, members);
        set_copy(&free_now, members);
        set_remove_all(&free_now, &wait);
        set_add_all(&r->cold->waiting, &wait);
        if (set_count(&free_now))
                add_to_buckets(c, r, &free_now);
        set_deinit(&wait);
        set_deinit(&free_now);
}

void request_idle_remove(struct core *c, struct request *r, const struct set *members)
{
        for (size_t i = 0; i < r->bucket_count; i++)
                bucket_change(c, r, r->buckets[i], members, false);
        if (set_count(&request_cold(r)->waiting))
                set_remove_all(&r->cold->waiting, members);
        place_wait_left(r, members);
}

struct bucket *bucket_new(struct core *c, struct request *r, struct job_class *k, uint32_t part,
                          int64_t priority)
{
        struct bucket *b = mem_new(struct bucket);

        b->request = r;
        b->job_class = k;
        b->part = part;
        b->priority = priority;
        b->points = order_bucket_points(c, b);
        return b;
}

static void append_bucket(struct request *r, struct bucket *b)
{
        struct bucket **had = r->buckets;

        if (r->bucket_count == r->bucket_cap) {
                r->bucket_cap *= 2;
                r->buckets = mem_array(had == &r->only_bucket ? NULL : had, r->bucket_cap, sizeof(*had));
                if (had == &r->only_bucket)
                        r->buckets[0] = r->only_bucket;
        }
        r->buckets[r->bucket_count++] = b;
}

/* Adds a bucket whose members request_set_priority sets. */
static struct bucket *bucket_append(struct core *c, struct request *r, struct job_class *k, uint32_t part,
                                    int64_t priority)
{
        struct bucket *b = bucket_new(c, r, k, part, priority);

        append_bucket(r, b);
        return b;
}

void request_buckets_add(struct request *r, struct bucket **buckets, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                append_bucket(r, buckets[i]);
}

void request_buckets_leave(struct core *c, struct request *r, const struct set *members)
{
        uint32_t kept = 0;

        request_idle_remove(c, r, members);
        for (uint32_t i = 0; i < r->bucket_count; i++) {
                struct bucket *b = r->buckets[i];

                if (!b->members) {
                        b->members = mem_new(struct set);
                        set_add_range(b->members, 0, r->count);
                }
                set_remove_all(b->members, members);
                if (set_count(b->members))
                        r->buckets[kept++] = b;
                else
                        bucket_free(c, b);
        }
        r->bucket_count = kept;
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
                        job_class_bucket_moved(c, b);
                        set_deinit(&mine);
                        continue;
                }
                if (b->job_class)
                        b->job_class->users++;
                other = bucket_append(c, r, b->job_class, b->part, priority);
                if (!b->members) {
                        b->members = mem_new(struct set);
                        set_add_range(b->members, 0, r->count);
                }
                set_remove_all(b->members, &mine);
                other->members = mem_new(struct set);
                *other->members = mine;
                /* Idle members move along. */
                struct set idle = {0};
                set_copy(&idle, &b->idle);
                set_keep_all(&idle, other->members);
                uint64_t moved = set_count(&idle);
                set_remove_all(&b->idle, &idle);
                job_class_bucket_drained(c, b, moved);
                other->idle = idle;
                job_class_bucket_filled(c, other, moved);
        }
}

void request_room_made(struct core *c, struct request *r)
{
        for (size_t i = 0; !c->config.shadow && i < r->bucket_count; i++) {
                const struct part *p = request_part_at(r, r->buckets[i]->part);

                if (p->job_template && p->job_template->jobs_max != INT64_MAX)
                        job_class_look_again(c, r->buckets[i]->job_class);
        }
}
