/* drover-agent: see model/agent.h and drover-agent(8). */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/attempt/chirp.h"
#include "agent/attempt/event.h"
#include "agent/attempt/journal.h"
#include "agent/attempt/kill.h"
#include "agent/attempt/life.h"
#include "agent/attempt/limits.h"
#include "agent/attempt/live_output.h"
#include "agent/attempt/location.h"
#include "agent/attempt/output_tail.h"
#include "agent/attempt/sandboxes.h"
#include "agent/attempt/streams.h"
#include "agent/environment/environments.h"
#include "agent/import/galaxy.h"
#include "agent/machine/energy.h"
#include "agent/metrics/metrics.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/leave.h"
#include "agent/queue/mapping.h"
#include "agent/queue/offers.h"
#include "agent/queue/queues.h"
#include "agent/queue/sensors.h"
#include "agent/queue/use.h"
#include "agent/session/connect.h"
#include "agent/transfer/inputs.h"
#include "agent/transfer/movers.h"
#include "agent/transfer/spool.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stage_work.h"
#include "agent/transfer/stores.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/secret.h"
#include "base/system/uuid.h"
#include "ev/service.h"

#define EXIT_USAGE 2
#define TICK_MS    1000
#define TICKS_AWAY 30  /* with `users`: ticks without a shepherd before the agent exits */
#define LOCK_TRIES 150 /* attempts at intervals of 20 ms */

/* Ends a turn: carries out what callbacks have gathered, in a fixed order. */
static void agent_turn(void *arg)
{
        struct agent *a = arg;

        a->turn_set = false;
        if (a->stopping)
                return;
        attempt_schedule(a);
        journal_flush(a);
        sandbox_remove_left(a);
        for (size_t i = 0; i < a->backend_count; i++)
                a->backends[i]->runner->kind->flush(a->backends[i]->runner);
        stores_turn(a); /* first: what is given back for a silent store must not be given again */
        outbox_flush(a);
        offers_update(a, false);
        int64_t end = lease_clock_end(&a->lease);
        if (end != LEASE_CLOCK_NEVER && queues_count(a, ATTEMPT_WAITING) == 0 &&
            queues_count(a, ATTEMPT_STAGING) == 0 && queues_count(a, ATTEMPT_RUNNING) == 0) {
                lease_clock_release_all(&a->lease);
                timer_stop(a->lease_timer);
        }
}

static void on_lease(void *arg)
{
        struct agent *a = arg;
        int64_t left = lease_clock_end(&a->lease) - clock_boot_ms();

        if (lease_clock_end(&a->lease) == LEASE_CLOCK_NEVER)
                return;
        if (left > 0) {
                timer_start(a->lease_timer, left);
                return;
        }
        log_warn("msg=\"the lease has ended without the server; ending its jobs\" jobs=%zu",
                 queues_count(a, ATTEMPT_WAITING) + queues_count(a, ATTEMPT_STAGING) +
                         queues_count(a, ATTEMPT_RUNNING));
        for (size_t i = 0; i < a->queue_count; i++)
                for (int s = ATTEMPT_WAITING; s < ATTEMPT_DONE; s++)
                        for (struct attempt *at = a->queues[i]->lists[s], *next; at; at = next) {
                                next = at->next;
                                attempt_abandon(at);
                        }
        lease_clock_release_all(&a->lease);
        /* after a stop of the server or the agent: the server may not have noticed the end of the lease, and
         * would wait for given-up attempts while renewals go on. A new session begins with the present state
         */
        connect_anew(a);
        agent_turn_later(a);
}

static void on_tick(void *arg)
{
        static unsigned ticks_away; /* ticks without the shepherd */
        struct agent *a = arg;

        if (timer_running(a->lease_timer)) /* the timer did not run while the machine was suspended */
                on_lease(a);
        limits_sample(a);
        attempt_kill_tick(a);
        queue_use_tick(a);
        stage_tick(a);
        attempt_tick(a);
        output_tails_tick(a);
        chirp_tick(a);
        live_output_tick(a);
        leave_tick(a);
        offers_update(a, true);
        stores_tick(a);
        attempt_location_tell(a);
        ticks_away = a->backends[0]->ready ? 0 : ticks_away + 1;
        if (a->users_path && ticks_away == TICKS_AWAY) {
                log_error("msg=\"no shepherd answers, and only root can start one\"");
                a->exit_code = 1;
                loop_stop(a->loop);
        }
        agent_turn_later(a);
        timer_start(a->tick, TICK_MS);
}

static void on_stop(void *arg)
{
        struct agent *a = arg;

        if (!leave_told(a))
                loop_stop(a->loop);
}

static void on_interrupt(void *arg)
{
        struct agent *a = arg;

        a->config.kill_on_stop = true;
        loop_stop(a->loop);
}

/* Ignores SIGHUP: its sender means a daemon that reads its file again, or has closed the terminal it was
 * started at; neither is a reason to stop. */
static void on_hang_up(void *arg)
{
        (void)arg;
        log_info("msg=\"SIGHUP changes nothing: the agent reads its file when it starts\"");
}

static int open_state(struct agent *a, struct err *err)
{
        a->dir = open(a->config.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int lock = a->dir < 0 ? -1 : openat(a->dir, "agent.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (lock < 0)
                return err_set(err, -errno, "cannot use the folder %s: %s", a->config.dir, strerror(errno));
        /* an agent that was just killed may not have exited yet */
        int busy = -1;
        for (int i = 0; i < LOCK_TRIES && (busy = flock(lock, LOCK_EX | LOCK_NB)) < 0; i++)
                usleep(20000);
        if (busy < 0)
                return err_set(err, -EBUSY, "another agent uses the folder %s", a->config.dir);
        fs_sweep(a->dir, fs_is_left);
        if (a->users_path)
                return 0;
        if (mkdirat(a->dir, "jobs", 0700) < 0 && errno != EEXIST)
                return err_set(err, -errno, "cannot make %s/jobs: %s", a->config.dir, strerror(errno));
        a->jobs = openat(a->dir, "jobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (a->jobs < 0)
                return err_set(err, -errno, "cannot open %s/jobs: %s", a->config.dir, strerror(errno));
        struct buf path = {0};
        buf_printf(&path, "%s/jobs", a->config.dir);
        a->jobs_path = buf_take(&path);
        BUF_CLEANUP struct buf id = {0};
        if (fs_read(a->dir, "instance", 64, &id, NULL) == 0 && uuid_valid(str_trim(buf_view(&id)))) {
                snprintf(a->instance, sizeof(a->instance), STR_FMT, STR_ARG(str_trim(buf_view(&id))));
                return 0;
        }
        uuid_new(a->instance);
        return fs_write(a->dir, "instance", str_of(a->instance), 0600, true, err);
}

/* Hides the same folders that the shepherd hides from jobs. */
static void hide_folders(struct agent *a)
{
        const struct config *c = &a->config;
        const char *folders[CONFIG_LIST_MAX + 1];
        size_t n = 0;

        for (; c->paths && n < c->hide.n; n++)
                folders[n] = c->hide.v[n];
        folders[n++] = c->paths ? c->dir : "/";
        if (!a->users_path)
                a->hidden = hidden_new(folders, n);
}

static void who_are_we(struct agent *a)
{
        fs_boot_id(a->boot_id, sizeof(a->boot_id));
        gethostname(a->hostname, sizeof(a->hostname) - 1);
        const struct passwd *pw = getpwuid(getuid());
        snprintf(a->user, sizeof(a->user), "%s", pw ? pw->pw_name : "");
        snprintf(a->home, sizeof(a->home), "%s", pw && pw->pw_dir ? pw->pw_dir : "/");
}

static int open_all(struct agent *a, struct err *err)
{
        const char *powercap = a->config.powercap ? a->config.powercap : ENERGY_FOLDER;
        int r;

        if (strcmp(powercap, "none") != 0)
                a->energy = energy_open(powercap); /* while the agent is root, if it was started so */
        r = machine_check_kernel(err);
        if (r == 0 && a->config.users.n)
                r = mapping_begin(a, err);
        if (r == 0)
                r = open_state(a, err);
        if (r < 0)
                return r;
        hide_folders(a);
        who_are_we(a);
        if (a->config.cgroups && !a->users_path) {
                char name[64];

                snprintf(name, sizeof(name), "drover-%.13s", a->instance);
                struct err why;
                if (cgroups_open(name, NULL, NULL, &a->cgroups, &why) < 0)
                        log_warn("msg=\"no control groups\" error=\"%s\"", LOG_TEXT(str_of(why.text)));
        }
        outbox_open(a);
        leave_open(a);
        streams_open(a);
        output_tails_open(a);
        chirps_open(a);
        a->attempts = map_new();
        a->templates = map_new();
        a->credentials = map_new();
        struct buf cache = {0};
        buf_printf(&cache, "%s/cache", a->config.dir);
        MEM_CLEANUP char *cache_path = buf_take(&cache);
        a->cache = cache_open(a->dir, "cache", cache_path, a->config.cache_bytes, err);
        if (!a->cache)
                return -EIO;
        stores_open(a);
        movers_open(a);
        inputs_open(a);
        spool_open(a);
        stage_workers_open(a);
        machine_init(&a->machine);
        machine_measure(&a->machine, a->dir);
        a->lease_timer = timer_new(a->loop, on_lease, a);
        a->tick = timer_new(a->loop, on_tick, a);
        timer_start(a->tick, TICK_MS);
        r = queues_open(a, &attempt_observer, err);
        if (r == 0)
                environments_open(a);
        if (r == 0)
                sensors_open(a);
        if (r == 0)
                r = journal_open(a, err);
        if (r == 0)
                r = metrics_open(a, err);
        if (r == 0)
                connect_open(a);
        return r;
}

/* The jobs that run here end with the agent: the journal says so, for the next agent to tell when its runner
 * knows no more of these jobs. */
static void note_stopped(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++) {
                struct queue *q = a->queues[i];
                struct attempt *at = queue_is_local(q) ? q->lists[ATTEMPT_RUNNING] : NULL;

                for (; at; at = at->next)
                        journal_stopped(at);
        }
}

static void close_all(struct agent *a)
{
        a->stopping = true;
        metrics_close(a);
        sensors_close(a);
        connect_close(a);
        if (a->journal && a->config.kill_on_stop)
                note_stopped(a);
        if (a->journal)
                journal_flush(a);
        movers_close(a);
        queues_stop(a);
        stage_workers_close(a);
        loop_defer_cancel(a->loop, agent_turn, a);
        struct str key;
        void *value;
        while (map_count(a->attempts)) {
                size_t at = 0;

                map_next(a->attempts, &at, &key, &value);
                attempt_free(value);
        }
        streams_close(a);
        output_tails_close(a);
        chirps_close(a);
        spool_close(a);
        inputs_close(a);
        cache_close(a->cache);
        stores_close(a);
        for (size_t at = 0; map_next(a->templates, &at, &key, &value);)
                held_template_unref(value);
        journal_close(a);
        queues_close(a);
        machine_deinit(&a->machine);
        map_free(a->attempts);
        map_free(a->templates);
        map_free(a->credentials);
        outbox_close(a);
        leave_close(a);
        if (a->cgroups && a->config.kill_on_stop)
                cgroups_sweep(a->cgroups);
        cgroups_free(a->cgroups);
        energy_close(a->energy);
        timer_free(a->lease_timer);
        timer_free(a->tick);
        free(a->jobs_path);
        free(a->empty_owner);
        free(a->shepherd_dir);
        free(a->users_path);
        hidden_free(a->hidden);
        close(a->jobs);
        close(a->dir);
}

/* Overwrites the token in the arguments, which all users of the machine can see. */
static void hide_token(int argc, char **argv)
{
        for (int i = 1; i < argc; i++) {
                char *token = NULL;

                if (str_starts(str_of(argv[i]), STR("--token=")))
                        token = strchr(argv[i], '=') + 1;
                else if (!strcmp(argv[i], "--token") && i + 1 < argc)
                        token = argv[++i];
                if (token)
                        memset(token, '*', strlen(token));
        }
}

int main(int argc, char **argv)
{
        static struct agent a = {
                .magic = AGENT_MAGIC, .turn = agent_turn, .news = &attempt_news, .dir = -1, .jobs = -1};
        struct err err = {""};
        bool done;

        secret_no_dumps();
        /* the agent's own child, as a job's user: see stage_work.h */
        if (argc == 2 && !strcmp(argv[1], "--stage"))
                return stage_work_child();
        if (argc >= 2 && !strcmp(argv[1], "import-galaxy"))
                return galaxy_import(argc - 2, argv + 2);
        config_init(&a.config);
        int r = config_options(&a.config, argc, argv, &done, &err);
        hide_token(argc, argv);
        if (r == 0 && done)
                return 0;
        if (r == 0)
                r = config_finish(&a.config, &err);
        enum log_level level = LOG_INFO;
        if (r == 0 && a.config.log_level && (r = log_level_parse(a.config.log_level, &level)) < 0)
                config_where(&a.config, "log_level",
                             err_set(&err, r, "log_level is one of error, warn, info and debug"), &err);
        if (r < 0) {
                fprintf(stderr, "drover-agent: %s\n", err.text);
                return EXIT_USAGE;
        }
        log_init("drover-agent", level);
        signal(SIGPIPE, SIG_IGN);
        service_open();
        umask(022);
        a.loop = loop_new();
        struct watch_signal *term = watch_signal_new(a.loop, SIGTERM, on_stop, &a);
        struct watch_signal *interrupt = watch_signal_new(a.loop, SIGINT, on_interrupt, &a);
        struct watch_signal *hang_up = watch_signal_new(a.loop, SIGHUP, on_hang_up, &a);
        r = open_all(&a, &err);
        if (r < 0) {
                fprintf(stderr, "drover-agent: %s\n", err.text);
                return r == -EINVAL ? EXIT_USAGE : 1;
        }
        log_info("msg=started name=%s dir=\"%s\"", a.config.name, LOG_TEXT(str_of(a.config.dir)));
        service_ready(a.loop);
        loop_run(a.loop);
        service_stopping();
        service_close();
        log_info("msg=stopping jobs=%zu kill=%d", queues_count(&a, ATTEMPT_RUNNING), a.config.kill_on_stop);
        close_all(&a);
        watch_signal_free(term);
        watch_signal_free(interrupt);
        watch_signal_free(hang_up);
        loop_free(a.loop);
        config_deinit(&a.config);
        return a.exit_code;
}
