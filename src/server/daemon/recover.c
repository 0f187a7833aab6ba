#include "server/daemon/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "ev/service.h"
#include "server/daemon/world.h"
#include "server/loop/expressions.h"
#include "server/loop/thread.h"
#include "server/mirror/mirror.h"
#include "server/mirror/standing.h"
#include "server/userlog/userlog.h"

struct replay {
        struct server *server;
        uint64_t count, next;
};

static const char *store_words(const struct server *s)
{
        return config_postgres(&s->config) ? "PostgreSQL" : s->paths.store;
}

static int on_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct replay *x = arg;
        int r;

        if (x->server->following && seq != x->next)
                return err_set(err, -ESTALE, "the records before %" PRIu64 " were cut", seq);
        x->next = seq + 1;
        if (!x->server->following)
                userlog_record(x->server, seq);
        r = core_replay(x->server->core, record, err);

        x->count++;
        if (r == 0)
                return 0;
        return err_prefix(err, r, "%s: record %" PRIu64 " cannot be replayed", store_words(x->server), seq);
}

/* A core that follows has nothing to decide. */
static void on_decided(void *arg, const struct event *e)
{
        server_fatal(arg, "msg=\"a server that follows has decided something\" event=%u", (unsigned)e->type);
}

static int restore_snapshot(struct server *s, uint64_t *ret_seq, struct err *err)
{
        BUF_CLEANUP struct buf data = {0};
        int r = store_snapshot_get(s->store, ret_seq, &data, err);

        *ret_seq = r == STORE_NOT_FOUND ? 0 : *ret_seq;
        if (r != 0)
                return r == STORE_NOT_FOUND ? 0 : r;
        r = core_restore(s->core, buf_view(&data), err);
        return r == 0 ? 0
                      : err_prefix(err, r, "%s: the snapshot after record %" PRIu64, store_words(s),
                                   *ret_seq);
}

static void on_trouble(void *arg, const char *text)
{
        (void)arg;
        log_warn("msg=\"%s\"", LOG_TEXT(str_of(text)));
}

/* A server that waits for the lead of a PostgreSQL database. */
struct waiting {
        struct server *server;
        struct thread *thread;
        struct standing *standing;
};

static void write_waiting(void *arg, struct json *j)
{
        struct waiting *w = arg;

        json_kstrz(j, "kind", "standby");
        json_kstrz(j, "role", "follower");
        json_kint(j, "standby_ms", w->server->config.standby_ms);
}

static int promote_waiting(void *arg, bool force, struct err *err)
{
        (void)arg;
        (void)force;
        return err_set(
                err, -EALREADY,
                "this server leads by itself as soon as the leader of its database has gone: drover server "
                "drain makes that one hand over");
}

static const struct standing_ops waiting_ops = {write_waiting, promote_waiting, "the leader of its database"};

/* Without the socket it waits all the same. */
static void on_standing_by(void *arg)
{
        struct waiting *w = arg;
        struct err err = {0};
        int r;

        log_info("msg=\"standing by: another server leads\"");
        service_waiting("another server leads");
        w->thread = thread_new(w->server);
        r = standing_new(thread_loop(w->thread), w->server, &waiting_ops, w, &w->standing, &err);
        if (r == 0)
                r = thread_start(w->thread, &err);
        if (r != 0)
                log_warn("msg=\"nobody can ask this server while it stands by\" why=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
}

static void stop_waiting(struct waiting *w)
{
        thread_stop(w->thread);
        standing_free(w->standing);
        thread_free(w->thread);
}

/* Refuses an instance that used another kind of store, because it would start with an empty queue. */
static int check_kind(const struct server *s, struct err *err)
{
        bool postgres = config_postgres(&s->config);

        if (postgres && access(s->paths.store, F_OK) == 0)
                return err_set(err, -EEXIST,
                               "the instance keeps its queue in %s, and its settings name PostgreSQL: see "
                               "POSTGRESQL in droverd(8) for how to move it there",
                               s->paths.store);
        if (!postgres && access(s->paths.postgres_id, F_OK) == 0)
                return err_set(err, -EEXIST,
                               "the instance keeps its queue in PostgreSQL, as %s shows, and its settings do "
                               "not say so: write store: postgresql://… into droverd.yaml, or see POSTGRESQL "
                               "in droverd(8) for how to move it to SQLite",
                               s->paths.postgres_id);
        return 0;
}

static void on_not_leading(void)
{
        log_info("msg=\"standing by: the other server of the mirror leads, or must be asked first\"");
        service_waiting("the other server of the mirror leads");
}

static int open_store(struct server *s, struct err *err)
{
        struct waiting waiting = {.server = s};
        struct store_place place = {.beside = s->paths.postgres,
                                    .trouble = on_trouble,
                                    .standby_ms = s->config.check ? 0 : s->config.standby_ms,
                                    .standing_by = on_standing_by,
                                    .standing_arg = &waiting,
                                    .mirror = mirror_store(s->mirror)};
        BUF_CLEANUP struct buf address = {0};
        bool network = false;
        int r;

        r = check_kind(s, err);
        if (r == 0 && s->mirror)
                r = mirror_lead(s->mirror, on_not_leading, err);
        if (r != 0)
                return r;
        if (config_postgres(&s->config))
                buf_addz(&address, config_postgres(&s->config));
        else
                buf_printf(&address, "sqlite:%s", s->paths.store);
        r = store_open_at(buf_z(&address), &place, &s->store, &network, err);
        stop_waiting(&waiting);
        if (r != 0)
                return r;
        if (network)
                log_warn("msg=\"the instance is on a network filesystem: it is slower there, and only one "
                         "machine "
                         "may use it\" dir=\"%s\"",
                         s->paths.dir);
        return 0;
}

static int follow_store(struct server *s, struct err *err)
{
        struct store_place place = {.beside = s->paths.postgres};
        BUF_CLEANUP struct buf address = {0};

        if (config_postgres(&s->config))
                buf_addz(&address, config_postgres(&s->config));
        else
                buf_printf(&address, "sqlite:%s", s->paths.store);
        return store_follow(buf_z(&address), &place, &s->store, err);
}

static uint64_t memory_bytes(void)
{
        return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void warn_unclear(void *arg, struct str label, struct str store)
{
        (void)arg;
        log_warn("msg=\"no agent is cleared for this label: nothing that reads from the store will run\" "
                 "label=\"" STR_FMT "\" store=\"" STR_FMT "\"",
                 STR_ARG(label), STR_ARG(store));
}

static void warn_unregistered(const char *place)
{
        log_warn("msg=\"a charge rate is for a place that the bank's register of machines does not have\" "
                 "place=\"%s\"",
                 LOG_TEXT(str_of(place)));
}

int recover(struct server *s, struct recovered *ret, struct err *err)
{
        struct core_config config;
        struct core_data data = config_stores_data(&s->config.stores);
        struct core_world world;
        struct replay x = {.server = s};
        int64_t from = clock_boot_ms();
        int r = s->following ? follow_store(s, err) : open_store(s, err);

        *ret = (struct recovered){0};
        if (r != 0)
                return r;
        world_init(&world, s);
        if (s->following) { /* logs and agents are the leader's */
                world.replayed = NULL;
                world.event = on_decided;
        }
        config_core(&s->config, &config);
        config.eval_clock_ns = expressions_clock_ns;
        s->core = core_new(&config, &world);
        config_limits_apply(&s->config.limits, memory_bytes(), s->core);
        r = config_order_apply(&s->config.order, s->core, err);
        if (r == 0)
                r = config_bank_apply(&s->config.bank, s->core, err);
        if (r != 0)
                return r;
        core_clock(s->core, clock_wall_ms(), clock_boot_ms());
        config_stores_unclear(&s->config.stores, warn_unclear, NULL);
        r = core_data_set(s->core, &data, err);
        store_blobs_begin(s->store);
        if (r == 0)
                r = restore_snapshot(s, &ret->snapshot_seq, err);
        if (r == 0 && !s->following)
                r = userlog_restore(s, ret->snapshot_seq, err);
        x.next = ret->snapshot_seq + 1;
        if (r == 0)
                r = store_scan(s->store, ret->snapshot_seq + 1, on_record, &x, err);
        store_blobs_end(s->store);
        if (r != 0)
                return r;
        ret->last_seq = s->following ? x.next - 1 : store_last_seq(s->store);
        if (!s->following)
                userlog_recovered(s, ret->last_seq + 1);
        config_bank_unknown_places(&s->config.bank, s->core, warn_unregistered);
        ret->records = x.count;
        ret->took_ms = clock_boot_ms() - from;
        atomic_store(&s->durable_seq, ret->last_seq);
        return 0;
}

int recover_more(struct server *s, struct err *err)
{
        uint64_t from = atomic_load(&s->durable_seq) + 1;
        struct replay x = {.server = s, .next = from};
        uint64_t last;
        int r = store_follow_last(s->store, &last, err);

        if (r != 0 || last < from)
                return r;
        r = store_scan(s->store, from, on_record, &x, err);
        atomic_store(&s->durable_seq, x.next - 1);
        if (r == 0 && x.next <= last)
                r = err_set(err, -ESTALE, "the records up to %" PRIu64 " were cut", last);
        return r;
}
