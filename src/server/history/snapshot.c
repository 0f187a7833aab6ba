#include "server/history/snapshot.h"

#include <pthread.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "server/history/request_record.h"
#include "server/loop/expressions.h"
#include "server/mirror/mirror.h"

#define SNAPSHOT_RECORDS 200000
#define SNAPSHOT_BYTES   (64u << 20)
#define SNAPSHOT_AT_STOP 5000   /* records after which a clean stop makes a snapshot */
#define SNAPSHOT_KEEP    100000 /* records left in the log, for readers of the event feed that are behind */
#define RETRY_MS         600000

struct snapshots {
        struct server *server;
        uint64_t seq;     /* of the newest snapshot */
        uint64_t bytes;   /* of the records after it */
        uint64_t target;  /* of the snapshot in progress */
        int64_t retry_ms; /* no earlier try after a failure */
        bool runs;
        pthread_t thread;
};
struct finished {
        struct task task;
        int result;
};
struct shadow {
        struct core *core;
        uint64_t until;
};

struct snapshots *snapshots_new(struct server *s, uint64_t seq)
{
        struct snapshots *sn = mem_new(struct snapshots);

        sn->server = s;
        sn->seq = seq;
        return sn;
}

static int snapshot_on_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct shadow *x = arg;
        int r;

        if (seq > x->until)
                return -1000;
        r = core_replay(x->core, record, err);
        return r;
}

static int blob_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        return request_record_get(arg, request, ret, err);
}

/* Runs on the snapshot's thread, and only reads the store. */
static int make_snapshot(struct server *s, uint64_t until, struct err *err)
{
        BUF_CLEANUP struct buf data = {0};
        struct core_world world = {.arg = s, .load = blob_load};
        struct core_config config;
        struct shadow x = {.until = until};
        uint64_t from = 0;
        int r;

        config_core(&s->config, &config);
        config.shadow = true;
        config.eval_clock_ns = expressions_clock_ns;
        x.core = core_new(&config, &world);
        core_clock(x.core, clock_wall_ms(), clock_boot_ms());
        r = store_snapshot_get(s->store, &from, &data, err);
        if (r == STORE_NOT_FOUND)
                from = r = 0;
        else if (r == 0)
                r = core_restore(x.core, buf_view(&data), err);
        buf_reset(&data);
        if (r == 0)
                r = store_scan(s->store, from + 1, snapshot_on_record, &x, err);
        if (r == -1000)
                r = 0;
        if (r == 0) {
                core_snapshot(x.core, &data);
                r = store_snapshot_put(s->store, s->term, until, buf_view(&data),
                                       until > SNAPSHOT_KEEP ? until - SNAPSHOT_KEEP : 0, err);
        }
        core_free(x.core);
        return r;
}

static void snapshot_done(struct server *s, struct task *t)
{
        struct finished *f = (struct finished *)t;
        struct snapshots *sn = s->snapshots;

        pthread_join(sn->thread, NULL);
        sn->runs = false;
        if (f->result == 0) {
                sn->seq = sn->target;
                mirror_serves(s->mirror, s->store, sn->seq);
        } else {
                sn->retry_ms = clock_boot_ms() + RETRY_MS;
        }
        free(f);
}

static void *run_snapshot(void *arg)
{
        struct snapshots *sn = arg;
        struct finished *f = mem_new(struct finished);
        int64_t from = clock_boot_ms();
        struct err err = {0};

        f->task.run = snapshot_done;
        f->result = make_snapshot(sn->server, sn->target, &err);
        if (f->result == 0)
                log_info("msg=\"snapshot written\" seq=%llu ms=%lld", (unsigned long long)sn->target,
                         (long long)(clock_boot_ms() - from));
        else
                log_error("msg=\"no snapshot could be written\" result=%d why=\"%s\"", f->result,
                          LOG_TEXT(str_of(err.text)));
        server_to_core(sn->server, &f->task);
        return NULL;
}

static void start_snapshot(struct snapshots *sn, uint64_t seq)
{
        sn->bytes = 0;
        sn->target = seq;
        sn->runs = pthread_create(&sn->thread, NULL, run_snapshot, sn) == 0;
}

bool snapshot_covers(struct server *s, uint64_t seq)
{
        struct snapshots *sn = s->snapshots;
        uint64_t durable = atomic_load(&s->durable_seq);

        if (sn->seq >= seq)
                return true;
        if (!sn->runs && durable >= seq && clock_boot_ms() >= sn->retry_ms)
                start_snapshot(sn, durable);
        return false;
}

void snapshot_poke(struct server *s, uint64_t durable_seq, size_t bytes)
{
        struct snapshots *sn = s->snapshots;

        sn->bytes += bytes;
        if (sn->runs || clock_boot_ms() < sn->retry_ms || durable_seq == sn->seq ||
            (durable_seq < sn->seq + SNAPSHOT_RECORDS && sn->bytes < SNAPSHOT_BYTES))
                return;
        start_snapshot(sn, durable_seq);
}

void snapshots_stop(struct snapshots *sn)
{
        uint64_t last = atomic_load(&sn->server->durable_seq);
        struct err err = {0};

        if (sn->runs) {
                pthread_join(sn->thread, NULL);
                sn->runs = false;
                return;
        }
        if (last < sn->seq + SNAPSHOT_AT_STOP)
                return;
        if (make_snapshot(sn->server, last, &err) != 0)
                log_error("msg=\"no snapshot could be written\" why=\"%s\"", LOG_TEXT(str_of(err.text)));
}

void snapshots_free(struct snapshots *sn)
{
        free(sn);
}
