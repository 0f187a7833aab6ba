#include "server/loop/settled.h"

#include "base/map.h"
#include "base/mem.h"

#define FAILURES_MAX 4096u /* of a request whose graph handles failures, which takes time for each */

struct change { /* a request that has changed in a commit */
        uint64_t request, commit;
};
struct version { /* what a request is when all commits up to this one are durable */
        uint64_t commit;
        int64_t finished_ms;
        struct core_counts counts;
};
struct read_request {                      /* a request whose counts are kept */
        struct read_request *next, *prev;  /* in the order of their last reads */
        struct read_request *next_touched; /* of those with an event in this turn */
        uint64_t id;
        bool touched;
        uint64_t other;           /* the last commit that changed more than the versions have */
        struct version *versions; /* by commit; all but the first are later than the last durable commit */
        size_t count, room;
};
struct settled {
        struct idmap *changed; /* request → number of the last commit in which it has changed, as a pointer */
        struct change *changes; /* the same in the order of the commits: a ring */
        size_t first, count, room;
        struct idmap *read; /* id → struct read_request */
        struct read_request *latest, *oldest;
        struct read_request *touched;
};

/* Returns whether such an event changes nothing of a request but its counts and the time of its end. */
static bool only_counts(enum event_type type)
{
        switch (type) {
        case EVENT_MATCHED:
        case EVENT_ACCEPTED:
        case EVENT_REFUSED:
        case EVENT_STARTED:
        case EVENT_EXITED:
        case EVENT_LOST:
        case EVENT_HELD:
        case EVENT_RELEASED:
        case EVENT_REMOVED:
        case EVENT_VACATING:
        case EVENT_SUSPENDED:
        case EVENT_RESUMED:
        case EVENT_FILED:
        case EVENT_GANG:
        case EVENT_GO:
        case EVENT_CHECKPOINTED:
        case EVENT_READY:
        case EVENT_SKIPPED: return true;
        default: return false;
        }
}

struct settled *settled_new(void)
{
        struct settled *x = mem_new(struct settled);

        x->changed = idmap_new();
        x->read = idmap_new();
        return x;
}

/* ---- requests that are read */

static void read_unlink(struct settled *x, struct read_request *r)
{
        *(r->prev ? &r->prev->next : &x->latest) = r->next;
        *(r->next ? &r->next->prev : &x->oldest) = r->prev;
        r->next = r->prev = NULL;
}

static void read_link(struct settled *x, struct read_request *r)
{
        r->next = x->latest;
        *(r->next ? &r->next->prev : &x->oldest) = r;
        x->latest = r;
}

static void read_touch(struct settled *x, struct read_request *r)
{
        if (r->touched)
                return;
        r->touched = true;
        r->next_touched = x->touched;
        x->touched = r;
}

static void read_free(struct settled *x, struct read_request *r)
{
        struct read_request **at = &x->touched;

        while (r->touched && *at != r)
                at = &(*at)->next_touched;
        if (r->touched)
                *at = r->next_touched;
        read_unlink(x, r);
        idmap_take(x->read, r->id);
        free(r->versions);
        free(r);
}

static struct read_request *read_new(struct settled *x, uint64_t id, uint64_t changed)
{
        struct read_request *r = mem_new(struct read_request);

        if (idmap_count(x->read) >= SETTLED_READ_MAX)
                read_free(x, x->oldest);
        r->id = id;
        r->other = changed;
        idmap_put(x->read, id, r);
        read_link(x, r);
        read_touch(x, r);
        return r;
}

void settled_free(struct settled *x)
{
        if (!x)
                return;
        while (x->oldest)
                read_free(x, x->oldest);
        idmap_free(x->read);
        idmap_free(x->changed);
        free(x->changes);
        free(x);
}

/* ---- changes */

static uint64_t changed_in(const struct settled *x, uint64_t request)
{
        return (uint64_t)(uintptr_t)idmap_get(x->changed, request);
}

static void change_push(struct settled *x, struct change c)
{
        if (x->count == x->room) {
                size_t room = x->room ? 2 * x->room : 64;
                struct change *to = mem_array(NULL, room, sizeof(*to));

                for (size_t i = 0; i < x->count; i++)
                        to[i] = x->changes[(x->first + i) % x->room];
                free(x->changes);
                x->changes = to;
                x->first = 0;
                x->room = room;
        }
        x->changes[(x->first + x->count++) % x->room] = c;
}

void settled_durable(struct settled *x, uint64_t durable)
{
        while (x->count && x->changes[x->first].commit <= durable) {
                struct change c = x->changes[x->first];

                if (changed_in(x, c.request) == c.commit)
                        idmap_take(x->changed, c.request);
                x->first = (x->first + 1) % x->room;
                x->count--;
        }
}

void settled_event(struct settled *x, const struct event *e, uint64_t commit, bool informs)
{
        struct read_request *r;

        if (!e->request)
                return;
        r = idmap_count(x->read) ? idmap_get(x->read, e->request) : NULL;
        if (!informs &&
            (uint64_t)(uintptr_t)idmap_put(x->changed, e->request, (void *)(uintptr_t)commit) != commit)
                change_push(x, (struct change){e->request, commit});
        if (!r)
                return;
        read_touch(x, r);
        if (!only_counts(e->type))
                r->other = commit;
}

uint64_t settled_next(struct settled *x)
{
        struct read_request *r = x->touched;

        if (!r)
                return 0;
        x->touched = r->next_touched;
        r->next_touched = NULL;
        r->touched = false;
        return r->id;
}

/* Forgets the versions before the last one that is durable. */
static void forget_versions(struct read_request *r, uint64_t durable)
{
        size_t n = 0;

        while (n + 1 < r->count && r->versions[n + 1].commit <= durable)
                n++;
        if (n == 0)
                return;
        r->count -= n;
        memmove(r->versions, r->versions + n, r->count * sizeof(*r->versions));
}

void settled_keep(struct settled *x, const struct core_request *now, uint64_t durable)
{
        struct read_request *r = idmap_get(x->read, now->id);
        uint64_t commit;

        if (!r)
                return;
        if (now->handles && now->counts.failed + now->counts.removed > FAILURES_MAX) {
                read_free(x, r);
                return;
        }
        commit = changed_in(x, now->id);
        if (commit == 0)
                commit = durable; /* only informing events, or all is durable by now */
        forget_versions(r, durable);
        if (r->count && r->versions[r->count - 1].commit >= commit)
                r->count--;
        MEM_GROW(r->versions, r->room, r->count + 1);
        r->versions[r->count++] = (struct version){commit, now->finished_ms, now->counts};
}

bool settled_get(struct settled *x, struct core_request *now, uint64_t durable)
{
        uint64_t changed;
        struct read_request *r;

        settled_durable(x, durable);
        changed = changed_in(x, now->id);
        r = idmap_get(x->read, now->id);
        if (r) {
                read_unlink(x, r);
                read_link(x, r);
        }
        if (!changed)
                return true;
        if (!r)
                r = read_new(x, now->id, changed);
        forget_versions(r, durable);
        if (!r->count || r->versions[0].commit > durable || r->other > durable)
                return false;
        now->counts = r->versions[0].counts;
        now->finished_ms = r->versions[0].finished_ms;
        return true;
}
