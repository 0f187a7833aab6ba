#include "server/daemon/follow.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/format/json_read.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "ev/http_client.h"
#include "server/access/access.h"
#include "server/daemon/daemon.h"
#include "server/daemon/io_thread.h"
#include "server/daemon/recover.h"
#include "server/history/past.h"
#include "server/loop/following.h"
#include "server/loop/thread.h"
#include "server/loop/turn.h"

#define LEADER_BLOB STR("server/leader")
#define LOOK_MS     200
#define ASK_MS      1000 /* between two questions to the server that stands by, and looks for a new leader */
#define ANSWER_MAX  (64u << 10)

struct follow {
        struct server *server;
        struct timer *look;
        struct stat store; /* the SQLite file as it was opened */
        int64_t asked_ms;
        /* of a mirror: the server that stands by knows when its leader was heard */
        struct http_client *standing;
        struct http_call *call;
        int64_t heard_ms; /* boot clock; 0: not known */
        int exit_code;
};

/* ---- the leader's record */

void follow_record_leader(struct server *s, const char *api_tls)
{
        const struct config *c = &s->config;
        BUF_CLEANUP struct buf text = {0};
        struct str address = str_of(api_tls ? api_tls : "");
        char host[65] = "";

        gethostname(host, sizeof(host) - 1);
        if (!api_tls)
                buf_printf(&text, "the server of %s", host);
        else if (c->names.count)
                buf_printf(&text, "https://%s" STR_FMT, c->names.items[0],
                           STR_ARG(str_skip(address, (size_t)str_rfind(address, ':'))));
        else
                buf_printf(&text, "https://" STR_FMT, STR_ARG(address));
        store_batch_blob_put(turn_batch(s->turn), LEADER_BLOB, buf_view(&text));
}

/* A leader of an older version has no record. */
static int read_leader(struct server *s, struct buf *ret, struct err *err)
{
        int r = store_blob_get(s->store, LEADER_BLOB, ret, err);

        if (r != STORE_NOT_FOUND)
                return r;
        buf_printf(ret, "the server that leads");
        return 0;
}

/* ---- following */

static void leave(struct follow *f, const char *why)
{
        log_info("msg=\"reads of the standby begin anew\" why=\"%s\"", LOG_TEXT(str_of(why)));
        f->exit_code = 1;
        loop_stop(f->server->loop);
}

/* Returns why this process cannot go on; NULL: it can. */
static const char *is_over(struct follow *f)
{
        struct server *s = f->server;
        BUF_CLEANUP struct buf leader = {0};
        struct stat now;

        if (!config_postgres(&s->config) && (stat(s->paths.store, &now) < 0 ||
                                             now.st_ino != f->store.st_ino || now.st_dev != f->store.st_dev))
                return "the store was replaced";
        if (read_leader(s, &leader, NULL) == 0 && !str_eqz(buf_view(&leader), s->following->leader))
                return "another server leads";
        return NULL;
}

static void on_status(void *arg, int status, struct str body, const struct err *err)
{
        struct follow *f = arg;
        json_t *doc = status == 200 ? json_loadb(body.p, body.n, 0, NULL) : NULL;
        const json_t *heard = json_object_get(doc, "heard_ms");

        (void)err;
        f->call = NULL;
        if (json_is_integer(heard) && json_integer_value(heard) >= 0)
                f->heard_ms = clock_boot_ms() - json_integer_value(heard);
        json_decref(doc);
}

static void ask_standing(struct follow *f)
{
        if (f->standing && !f->call)
                f->call = http_client_call(f->standing,
                                           &(struct http_call_spec){.path = "/v1/server/status",
                                                                    .method = "GET",
                                                                    .timeout_ms = 5000,
                                                                    .max = ANSWER_MAX},
                                           on_status, f);
}

/* Sets as of when answers are current: a database has all that its leader has acknowledged, and a mirror's
 * copy is as new as the leader's last message. */
static void set_current(struct follow *f, int64_t looked_ms)
{
        int64_t at = f->standing && f->heard_ms < looked_ms ? f->heard_ms : looked_ms;

        atomic_store(&f->server->following->current_ms, at);
}

static void on_look(void *arg)
{
        struct follow *f = arg;
        struct server *s = f->server;
        int64_t now = clock_boot_ms();
        const char *over = NULL;
        struct err err = {0};
        int r;

        core_clock(s->core, clock_wall_ms(), now);
        r = recover_more(s, &err);
        if (r == 0)
                set_current(f, now);
        else if (r != -ENOTCONN) /* else the database is away: the answers grow older */
                over = err.text;
        if (!over && now - f->asked_ms >= ASK_MS) {
                f->asked_ms = now;
                ask_standing(f);
                over = r == 0 ? is_over(f) : NULL;
        }
        if (over)
                leave(f, over);
        else
                timer_start(f->look, LOOK_MS);
}

static int follow_start(struct follow *f, struct err *err)
{
        struct server *s = f->server;
        BUF_CLEANUP struct buf leader = {0};
        int r = read_leader(s, &leader, err);

        if (r != 0)
                return r;
        s->following->leader = str_dupz(buf_view(&leader));
        if (!config_postgres(&s->config) && stat(s->paths.store, &f->store) < 0)
                return err_set(err, -errno, "%s: %s", s->paths.store, strerror(errno));
        if (s->config.mirror.peer)
                f->standing = http_client_new(s->loop, &(struct http_client_config){.address = s->paths.api});
        r = access_open(s, &s->access, err);
        if (r != 0)
                return r;
        s->past = past_new(s);
        s->reader = thread_new(s);
        s->reader_mail = thread_mail(s->reader);
        r = thread_start(s->reader, err);
        if (r == 0)
                r = io_thread_new(s, &s->io_thread, err);
        return r == 0 ? io_thread_start(s->io_thread, err) : r;
}

/* A mirror's copy comes from its leader: there is no store before that. */
static void wait_for_store(const struct server *s)
{
        while (!config_postgres(&s->config) && access(s->paths.store, F_OK) != 0)
                nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
}

int follow_serve(struct server *s)
{
        struct follow f = {.server = s};
        struct recovered recovered;
        struct err err = {0};
        int r = paths_init(&s->paths, s->config.dir, &err);

        s->following = mem_new(struct following);
        s->config.page = false;
        if (r == 0) {
                wait_for_store(s);
                r = server_open(s, &recovered, &err);
        }
        if (r == 0)
                r = follow_start(&f, &err);
        if (r == 0) {
                log_info("msg=\"reads are answered\" api=\"%s\" records=%llu", s->paths.reads,
                         (unsigned long long)recovered.records);
                f.look = timer_new(s->loop, on_look, &f);
                timer_start(f.look, 0);
                loop_run(s->loop);
                timer_free(f.look);
        }
        http_call_cancel(f.call);
        http_client_free(f.standing);
        server_close(s);
        paths_deinit(&s->paths);
        free(s->following->leader);
        free(s->following);
        s->following = NULL;
        if (r != 0)
                log_warn("msg=\"reads of the standby are not answered\" why=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
        return r == 0 ? f.exit_code : 1;
}
