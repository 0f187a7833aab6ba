/* The core thread. Every task runs within a turn; the turn ends when all tasks that were in the mailbox
 * have run. */
#include "server/daemon/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/xml.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "catalog/catalog.h"
#include "core/forecast/quote.h"
#include "ev/service.h"
#include "server/access/access.h"
#include "server/agents/agent_sessions.h"
#include "server/agents/agents.h"
#include "server/agents/attempt_location.h"
#include "server/agents/grants.h"
#include "server/agents/leases.h"
#include "server/agents/node_orders.h"
#include "server/agents/reserved.h"
#include "server/backends/backends.h"
#include "server/calls/fair.h"
#include "server/calls/waits.h"
#include "server/daemon/commands.h"
#include "server/daemon/epoch.h"
#include "server/daemon/follow.h"
#include "server/daemon/io_thread.h"
#include "server/daemon/learned.h"
#include "server/daemon/recover.h"
#include "server/files/catalog_log.h"
#include "server/files/chirps.h"
#include "server/files/launches.h"
#include "server/files/objects.h"
#include "server/files/registrations.h"
#include "server/files/scripts.h"
#include "server/files/streams.h"
#include "server/files/tails.h"
#include "server/history/keywords.h"
#include "server/history/ledger.h"
#include "server/history/past.h"
#include "server/history/prune.h"
#include "server/history/snapshot.h"
#include "server/history/usage.h"
#include "server/loop/settled.h"
#include "server/loop/thread.h"
#include "server/loop/turn.h"
#include "server/metrics/metrics.h"
#include "server/mirror/mirror.h"
#include "server/notices/notices.h"
#include "server/provision/provision.h"
#include "server/sources/sources.h"
#include "server/sssrmap/schema.h"
#include "server/userlog/userlog.h"

#define LEASE_MS     300000 /* default lease of the core */
#define RENEW_MAX_MS 30000
#define TICK_MAX_MS  1000
#define STOP_MS      10000 /* for pending work when the server is told to stop */
#define STOP_LOOK_MS 20

/* Other threads may still use earlier settings, so all are kept until the end. */
struct reread {
        struct config config;
        struct reread *older;
};

struct daemon {
        struct server *server;
        struct timer *tick, *stop;
        struct watch_signal *terminate, *interrupt, *hang_up;
        int64_t stop_by_ms;
        bool announced;
};

static void receive(void *arg, struct mail *m)
{
        struct server *s = arg;
        struct task *t = (struct task *)m;

        if (!s->following)
                turn_begin(s->turn);
        t->run(s, t);
}

static void received(void *arg)
{
        struct server *s = arg;

        if (!s->following)
                turn_end(s->turn);
}

static void drop_mail(struct mail *m)
{
        task_drop((struct task *)m);
}

static void on_tick(void *arg)
{
        struct daemon *d = arg;
        struct server *s = d->server;
        int64_t next;

        turn_begin(s->turn);
        next = core_tick(s->core);
        access_prune(s);
        agents_tick(s);
        grants_tick(s);
        objects_tick(s);
        registrations_tick(s);
        notices_tick(s);
        prune_tick(s);
        learned_tick(s);
        metrics_tick(s->metrics, s->core, clock_boot_ms(), clock_wall_ms());
        if (config_postgres(&s->config))
                turn_beat(s->turn);
        provision_tick(s);
        backends_tick(s);
        turn_end(s->turn);
        timer_start(d->tick, next < 0 ? 0 : next > TICK_MAX_MS ? TICK_MAX_MS : next);
}

/* ---- a turn */

static void on_durable(struct server *s, uint64_t seq, size_t bytes, int64_t took_ns)
{
        metrics_commit(s->metrics, bytes, took_ns);
        snapshot_poke(s, seq, bytes);
        settled_durable(s->settled, turn_durable(s->turn));
        waits_durable(s);
}

/* Notes what the turn has made of the requests that are read. */
static void settle(struct server *s)
{
        struct core_request r;

        for (uint64_t id; (id = settled_next(s->settled));)
                if (core_request_get(s->core, id, &r) == 0)
                        settled_keep(s->settled, &r, turn_durable(s->turn));
}

static void on_turn_ending(struct server *s)
{
        reserved_flush(s);
        agents_flush(s);
        waits_flush(s);
        userlog_flush(s);
        notices_flush(s);
        ledger_flush(s);
        usage_flush(s);
        registrations_flush(s);
        settle(s);
}

static bool on_awaited(struct server *s)
{
        return waits_any_durable(s) || userlog_waits(s);
}

static const struct turn_hooks turn_hooks = {
        .slept = agents_reconnect, .ending = on_turn_ending, .durable = on_durable, .awaited = on_awaited};

/* ---- stopping */

static void on_stop_look(void *arg)
{
        struct daemon *d = arg;

        if (turn_idle(d->server->turn) || clock_boot_ms() >= d->stop_by_ms)
                loop_stop(d->server->loop);
        else
                timer_start(d->stop, STOP_LOOK_MS);
}

static void on_signal(void *arg)
{
        struct daemon *d = arg;

        if (atomic_exchange(&d->server->stopping, true))
                return;
        log_info("msg=\"stopping\"");
        service_stopping();
        paths_remove_ready(&d->server->paths);
        turn_begin(d->server->turn);
        learned_keep(d->server);
        turn_end(d->server->turn);
        d->stop_by_ms = clock_boot_ms() + STOP_MS;
        timer_start(d->stop, 0);
}

/* ---- SIGHUP */

static void on_hang_up(void *arg)
{
        struct server *s = ((struct daemon *)arg)->server;
        struct reread *x = mem_new(struct reread);
        BUF_CLEANUP struct buf changed = {0}, waiting = {0};
        struct err err = {0};

        service_reloading();
        if (config_read(&x->config, s->config.argc, s->config.argv, &err) != 0) {
                log_error("msg=\"the settings cannot be read again, and stay as they are\" error=\"%s\"",
                          LOG_TEXT(str_of(err.text)));
                config_deinit(&x->config);
                free(x);
                service_reloaded();
                return;
        }
        config_changes(server_settings(s), &x->config, true, &changed);
        config_changes(&s->config, &x->config, false, &waiting);
        x->older = s->rereads;
        s->rereads = x;
        atomic_store(&s->settings, &x->config);
        log_level_set(x->config.log_level);
        backends_reload(s);
        log_info("msg=\"the settings were read again\" changed=\"%s\"", buf_z(&changed));
        if (waiting.n)
                log_warn("msg=\"these settings differ from those that the server started with, and hold from "
                         "its "
                         "next start\" settings=\"%s\"",
                         buf_z(&waiting));
        service_reloaded();
}

static void drop_rereads(struct server *s)
{
        for (struct reread *x = s->rereads, *older; x; x = older) {
                older = x->older;
                config_deinit(&x->config);
                free(x);
        }
        s->rereads = NULL;
}

/* ---- starting */

static int read_uuid(struct server *s, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        int r = store_blob_get(s->store, STR("server/uuid"), &text, err);

        if (r == 0 && uuid_valid(buf_view(&text))) {
                snprintf(s->uuid, sizeof(s->uuid), "%s", buf_z(&text));
                return 0;
        }
        if (r != 0 && r != STORE_NOT_FOUND)
                return r;
        uuid_new(s->uuid);
        store_batch_blob_put(turn_batch(s->turn), STR("server/uuid"), str_of(s->uuid));
        return 0;
}

int server_open(struct server *s, struct recovered *ret, struct err *err)
{
        int r;

        s->lease_ms = s->config.lease_ms ? s->config.lease_ms : LEASE_MS;
        s->renew_ms = s->lease_ms / 3 < RENEW_MAX_MS ? s->lease_ms / 3 : RENEW_MAX_MS;
        s->remote_agents = s->config.listen.count > 0;
        s->loop = loop_new();
        s->core_mail = mailbox_new(s->loop, receive, received, s);
        s->core_fair = fair_new(s, server_to_core_priority);
        s->reader_fair = fair_new(s, server_to_reader);
        s->catalog_fair = fair_new(s, server_to_catalog);
        s->catalog_log = catalog_log_new();
        s->agents = agents_new(s, command_handlers);
        s->leases = leases_new();
        s->turn = turn_new(s, &turn_hooks);
        s->settled = settled_new();
        s->userlog = userlog_new();
        s->notices = notices_new();
        s->metrics = metrics_new(clock_wall_ms());
        s->prune = prune_new(s);
        s->ledger = ledger_new();
        s->usage = usage_new();
        r = s->following ? 0 : mirror_open(s, &s->mirror, err);
        if (r == 0)
                r = recover(s, ret, err);
        if (r != 0)
                return r;
        mirror_serves(s->mirror, s->store, ret->snapshot_seq);
        learned_restore(s);
        if (!s->following) /* snapshots are the leader's */
                s->snapshots = snapshots_new(s, ret->snapshot_seq);
        s->waits = waits_new(s);
        s->attempt_locations = attempt_locations_new();
        s->scripts = scripts_new();
        s->streams = streams_new();
        s->chirps = chirps_new();
        s->launches = launches_new();
        return 0;
}

/* The order matters: pending calls hold HTTP requests, so they are freed before the I/O thread. */
void server_close(struct server *s)
{
        atomic_store(&s->stopping, true);
        io_thread_stop(s->io_thread);
        thread_finish(s->reader);
        if (s->catalog_log)
                catalog_log_stop(s->catalog_log);
        thread_finish(s->catalog_thread);
        notices_stop(s->notices);
        provision_free(s->provision);
        sources_free(s->sources);
        backends_free(s->backends);
        if (s->snapshots)
                snapshots_stop(s->snapshots);
        mirror_serves(s->mirror, NULL, 0);
        store_close(s->store);
        mirror_close(s->mirror, s->exit_code == 0);
        if (s->core_mail)
                mailbox_free(s->core_mail, drop_mail);
        agents_drop_all(s->agents); /* returns their counted bytes to the I/O thread */
        waits_free(s->waits);
        attempt_locations_free(s->attempt_locations);
        scripts_free(s->scripts);
        streams_free(s->streams);
        chirps_free(s->chirps);
        launches_free(s->launches);
        tails_free(s->tails);
        userlog_free(s->userlog);
        notices_free(s->notices);
        metrics_free(s->metrics);
        prune_free(s->prune);
        ledger_free(s->ledger);
        usage_free(s->usage);
        keywords_free(s->keywords);
        turn_free(s->turn);
        settled_free(s->settled);
        thread_free(s->reader);
        thread_free(s->catalog_thread);
        fair_free(s->core_fair);
        fair_free(s->reader_fair);
        fair_free(s->catalog_fair);
        past_free(s->past);
        xml_schema_free(s->sssrmap);
        catalog_close(s->catalog);
        io_thread_free(s->io_thread);
        snapshots_free(s->snapshots);
        leases_free(s->leases);
        objects_free(s->objects);
        registrations_free(s->registrations);
        catalog_log_free(s->catalog_log);
        access_free(s->access);
        core_quote_free(s->quoting);
        core_free(s->core);
        loop_free(s->loop);
        atomic_store(&s->settings, NULL);
        drop_rereads(s);
}

static int announce(struct server *s, struct err *err)
{
        size_t count = agent_sessions_count_addresses(s->agent_sessions);
        const char **agents = mem_array(NULL, count, sizeof(*agents));
        struct paths_ready ready = {.uuid = s->uuid,
                                    .api_tls = io_thread_api_tls(s->io_thread),
                                    .agents = agents,
                                    .agent_count = count};
        int r;

        for (size_t i = 0; i < count; i++)
                agents[i] = agent_sessions_address(s->agent_sessions, i);
        r = paths_write_ready(&s->paths, &ready, err);
        free(agents);
        return r;
}

static int start_readers(struct server *s, struct err *err)
{
        int r = 0;

        if (s->config.sssrmap.on)
                r = xml_schema_new("sssrmap.xsd", str_make(sssrmap_schema_text, sssrmap_schema_size),
                                   &s->sssrmap, err);
        if (r != 0)
                return r;
        s->past = past_new(s);
        s->reader = thread_new(s);
        s->reader_mail = thread_mail(s->reader);
        s->catalog_thread = thread_new(s);
        s->catalog_mail = thread_mail(s->catalog_thread);
        r = thread_start(s->reader, err);
        return r == 0 ? thread_start(s->catalog_thread, err) : r;
}

static int start_parts(struct server *s, struct err *err)
{
        int r;

        r = store_term_take(s->store, &s->term, err);
        if (r != 0)
                return r;
        turn_begin(s->turn);
        core_ready(s->core);
        node_orders_take_over(s);
        r = read_uuid(s, err);
        if (r == 0)
                r = epoch_open(s, err);
        if (r == 0)
                r = access_open(s, &s->access, err);
        if (r == 0)
                grants_open(s);
        if (r == 0)
                r = provision_open(s, err);
        if (r == 0)
                r = objects_open(s, &s->objects, err);
        if (r == 0)
                r = tails_open(s, &s->tails, err);
        if (r == 0)
                r = notices_open(s, err);
        if (r == 0)
                r = start_readers(s, err);
        if (r == 0)
                catalog_log_start(s);
        if (r == 0)
                r = registrations_open(s, err);
        if (r == 0)
                r = io_thread_new(s, &s->io_thread, err);
        if (r == 0)
                r = io_thread_start(s->io_thread, err);
        if (r == 0)
                follow_record_leader(s, io_thread_api_tls(s->io_thread));
        turn_end(s->turn);
        return r;
}

static void watch(struct daemon *d)
{
        struct server *s = d->server;

        d->tick = timer_new(s->loop, on_tick, d);
        d->stop = timer_new(s->loop, on_stop_look, d);
        d->terminate = watch_signal_new(s->loop, SIGTERM, on_signal, d);
        d->interrupt = watch_signal_new(s->loop, SIGINT, on_signal, d);
        d->hang_up = watch_signal_new(s->loop, SIGHUP, on_hang_up, d);
        timer_start(d->tick, 0);
}

static void unwatch(struct daemon *d)
{
        timer_free(d->tick);
        timer_free(d->stop);
        watch_signal_free(d->terminate);
        watch_signal_free(d->interrupt);
        watch_signal_free(d->hang_up);
}

int server_run(struct server *s, struct err *err)
{
        struct daemon d = {.server = s};
        int r = start_parts(s, err);

        if (r == 0)
                r = announce(s, err);
        if (r == 0)
                r = sources_open(s, &s->sources, err);
        if (r == 0)
                r = backends_open(s, err);
        if (r == 0) {
                BUF_CLEANUP struct buf tls = {0};

                if (io_thread_api_tls(s->io_thread))
                        buf_printf(&tls, s->config.page ? " page=\"https://%s/\"" : " api_tls=\"%s\"",
                                   io_thread_api_tls(s->io_thread));
                log_info("msg=ready pid=%ld dir=\"%s\" api=\"%s\"%s", (long)getpid(), s->paths.dir,
                         s->paths.api, buf_z(&tls));
                watch(&d);
                service_ready(s->loop);
                if (atomic_load(&s->hung_up))
                        on_hang_up(&d);
                loop_run(s->loop);
                service_close();
                unwatch(&d);
        }
        paths_remove_ready(&s->paths);
        if (r == 0)
                log_info("msg=stopped code=%d", s->exit_code);
        return r;
}
