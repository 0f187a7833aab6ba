/* Requests continue at a multiple of a million that is at least a million after the newest known one, plus
 * a thousand for each second since that one. Two servers that start from the same copy at different times
 * therefore use different numbers, too. Fences continue at the Unix time in seconds, which no job's count
 * of attempts reaches. */
#include "server/daemon/epoch.h"

#include <errno.h>
#include <inttypes.h>

#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/loop/turn.h"

#define NAME          STR("server/epoch")
#define NAME_BYTES    64
#define REQUESTS_STEP 1000000u
#define REQUESTS_S    1000u /* more requests in a second than a server accepts for long */
#define AGE_MAX_S     (10 * 365 * 86400LL)
#define AGE_UNKNOWN_S (30 * 86400LL)
#define FENCES_STEP   1000000u
/* added to a lease: the time that the agent adds, and the time that its jobs have to end */
#define LEASE_MARGIN_MS 10000

struct epoch {
        uint64_t request;
        uint32_t fence;
        /* the newest request known when the epoch began; 0: it began in an earlier version */
        uint64_t lost_last;
        int64_t lost_until_ms; /* Unix time at which the leases of the lost time have ended */
};

/* Returns the seconds since the newest known request was submitted. */
static int64_t age_s(struct server *s, int64_t now_ms)
{
        struct core_request r = {0};
        int64_t age = AGE_UNKNOWN_S;

        if (core_request_get(s->core, core_request_last(s->core), &r) == 0)
                age = (now_ms - r.submitted_ms) / 1000;
        return age < 0 ? AGE_UNKNOWN_S : age > AGE_MAX_S ? AGE_MAX_S : age;
}

static void begin_epoch(struct server *s, struct epoch *e)
{
        uint64_t last = core_request_last(s->core);
        int64_t now_ms = clock_wall_ms(), now_s = now_ms / 1000;

        if (last < e->request)
                last = e->request;
        last += REQUESTS_STEP + REQUESTS_S * (uint64_t)age_s(s, now_ms);
        e->lost_last = core_request_last(s->core);
        e->lost_until_ms = now_ms + s->lease_ms + LEASE_MARGIN_MS;
        e->request = (last + REQUESTS_STEP - 1) / REQUESTS_STEP * REQUESTS_STEP + 1;
        e->fence = e->fence ? e->fence + FENCES_STEP : FENCES_STEP;
        if (now_s > e->fence && now_s < UINT32_MAX / 2)
                e->fence = (uint32_t)now_s;
}

static int epoch_load(struct server *s, struct epoch *ret, struct err *err)
{
        BUF_CLEANUP struct buf data = {.max = NAME_BYTES};
        struct unpack u;
        int r = store_blob_get(s->store, NAME, &data, err);

        *ret = (struct epoch){0};
        if (r != 0)
                return r == STORE_NOT_FOUND ? 0 : r;
        u = unpack_from(buf_view(&data));
        ret->request = unpack_u64(&u);
        ret->fence = (uint32_t)unpack_max(&u, UINT32_MAX);
        if (!unpack_done(&u)) {
                ret->lost_last = unpack_u64(&u);
                ret->lost_until_ms = (int64_t)unpack_max(&u, INT64_MAX);
        }
        return u.bad ? err_set(err, -EBADMSG, "the numbers of the store's epoch are damaged") : 0;
}

static void keep_epoch(struct server *s, const struct epoch *e)
{
        BUF_CLEANUP struct buf data = {0};

        pack_u64(&data, e->request);
        pack_u64(&data, e->fence);
        pack_u64(&data, e->lost_last);
        pack_u64(&data, (uint64_t)e->lost_until_ms);
        store_batch_blob_put(turn_batch(s->turn), NAME, buf_view(&data));
}

int epoch_open(struct server *s, struct err *err)
{
        struct epoch e;
        int r = epoch_load(s, &e, err);

        if (r != 0)
                return r;
        if (store_lost(s->store)) {
                begin_epoch(s, &e);
                keep_epoch(s, &e);
                log_warn("msg=\"the database is a copy, or lost its mark: what was newer is lost, and what "
                         "agents still have "
                         "of it is ended; jobs that waited in it wait until no agent has them any more\" "
                         "last_request=%" PRIu64 " next_request=%" PRIu64,
                         core_request_last(s->core), e.request);
        }
        core_numbers_from(s->core, e.request, e.fence);
        int64_t wait_ms = e.lost_until_ms - clock_wall_ms(), most_ms = s->lease_ms + LEASE_MARGIN_MS;
        if (wait_ms > 0)
                core_lost(s->core, e.lost_last, wait_ms < most_ms ? wait_ms : most_ms);
        return 0;
}
