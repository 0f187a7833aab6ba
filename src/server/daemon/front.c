#include "server/daemon/front.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "server/access/access.h"
#include "server/access/job_peer.h"
#include "server/agents/peers.h"
#include "server/api/body.h"
#include "server/api/route.h"

#define USERS_MAX      10000
#define USER_FRESH_MS  60000
#define FILES_RESERVED 512u /* descriptors that connections leave to the store, the spool and jobs' files */
#define AGENTS_MAX     20000u
#define API_MAX        4096u
#define CLOCK_LOOK_MS  5000

struct front_user {
        char *name; /* principal; NULL: the system knows no such user */
        int64_t asked_ms;
};

static pthread_t thread; /* there is one front in a process */
static bool thread_runs;

/* ---- who is calling */

static char *ask_user(struct front *f, uid_t uid)
{
        struct buf who = {0};

        if (principal_of_uid(&who, uid, str_of(f->server->config.domain), NULL) == 0)
                return buf_take(&who);
        buf_deinit(&who);
        return NULL;
}

static void forget_users(struct front *f)
{
        size_t at = 0;
        void *v;

        while (map_next(f->users, &at, NULL, &v)) {
                free(((struct front_user *)v)->name);
                free(v);
        }
        map_free(f->users);
        f->users = map_new();
}

/* The local user's principal, remembered for a minute: a directory service may be behind it. */
static const char *local_user(struct front *f, uid_t uid)
{
        struct str key = str_make((const char *)&uid, sizeof(uid));
        struct front_user *u = map_get(f->users, key);

        if (u && clock_boot_ms() - u->asked_ms < USER_FRESH_MS)
                return u->name;
        if (!u) {
                if (map_count(f->users) >= USERS_MAX)
                        forget_users(f);
                u = mem_new(struct front_user);
                map_put(f->users, key, u);
        }
        free(u->name);
        u->name = ask_user(f, uid);
        u->asked_ms = clock_boot_ms();
        return u->name;
}

/* ---- HTTP */

static void on_close(void *arg, struct http_request *r)
{
        struct call *c = arg;

        (void)r;
        c->http = NULL;
        if (c->waits)
                call_free(c); /* the next step would have been the client's: to take more, or to send its body
                               */
}

static void body_read(void *arg, struct http_request *r)
{
        struct call *c = arg;

        (void)r;
        c->waits = false;
        c->route->start(c->server, c);
}

/* The caller is known: the body may come. */
static void start(struct call *c)
{
        c->waits = true;
        http_read_body(c->http, str_of(c->who), body_read, c);
}

static void identified(struct server *s, struct call *c)
{
        (void)s;
        if (!c->who) {
                call_fail(c, 401, "unauthorized", "this token is not valid: ask for a new one");
                return;
        }
        http_trust(c->http);
        start(c);
}

/* A bearer token, checked by the core thread: over TLS, and of a job's process. */
static void identify_token(struct call *c)
{
        struct str header = http_header(c->http, "Authorization");

        if (!str_istarts(header, STR("Bearer "))) {
                http_add_header(c->http, "WWW-Authenticate", "Bearer");
                call_fail(c, 401, "unauthorized",
                          "send a user token: Authorization: Bearer drover-user-token.v1…");
                return;
        }
        access_bearer(c, str_trim(str_skip(header, 7)), identified);
}

enum peer { PEER_UNKNOWN, PEER_USER, PEER_JOB }; /* notes of a connection on the unix socket */

static enum peer peer_of(struct http_request *r, pid_t pid)
{
        enum peer note = http_peer_note(r);
        int fd;

        if (note != PEER_UNKNOWN)
                return note;
        fd = http_peer_pidfd(r);
        note = job_peer_is(pid, fd) ? PEER_JOB : PEER_USER;
        if (fd >= 0)
                close(fd);
        http_set_peer_note(r, note);
        return note;
}

/* A job's process has the rights of the token that it was given, and without one none. */
static void identify_job(struct call *c)
{
        if (http_header(c->http, "Authorization").n)
                identify_token(c);
        else
                call_fail(c, 403, "job",
                          "a job's processes do not speak for their user: give the job a user token "
                          "(drover token user), and send it (DROVER_TOKEN)");
}

static void identify_local(struct server *s, struct call *c, uid_t uid)
{
        const char *user = local_user(s->front, uid);

        if (!user) {
                call_fail(c, 403, "forbidden",
                          "user %u of this machine has no usable name, so it cannot own jobs", (unsigned)uid);
                return;
        }
        c->who = mem_dupz(user);
        c->role = uid == 0 || uid == geteuid() ? ROLE_ADMIN : access_role(s, c->who);
        start(c);
}

static void handle(void *arg, struct http_request *r)
{
        struct front *f = arg;
        struct call *c = mem_new(struct call);
        bool path_known;
        uid_t uid;
        pid_t pid;

        f->calls++;
        c->server = f->server;
        c->http = r;
        c->when = TURN_READ;
        c->status = 200;
        c->path = str_dupz(http_path(r));
        http_on_close(r, on_close, c);
        if (atomic_load(&f->server->stopping)) {
                call_fail(c, 503, "stopping", "the server is stopping: try again when it is back");
                return;
        }
        c->route = route_find(http_method(r), str_of(c->path), c->param, &path_known);
        if (!c->route) {
                if (path_known)
                        call_fail(c, 405, "bad_method", "this method does not work on %s", c->path);
                else
                        call_fail(c, 404, "not_found", "there is nothing at %s", c->path);
                return;
        }
        if (http_peer_uid(r, &uid, &pid) != 0)
                identify_token(c);
        else if (peer_of(r, pid) == PEER_JOB)
                identify_job(c);
        else
                identify_local(f->server, c, uid);
}

/* ---- the thread */

static void receive(void *arg, struct mail *m)
{
        struct front *f = arg;
        struct task *t = (struct task *)m;

        t->run(f->server, t);
}

static size_t least(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* However many come, files can still be opened. */
static void limit_connections(struct front *f)
{
        struct rlimit files = {.rlim_cur = RLIM_INFINITY};
        struct http_limits limits = {0};
        size_t room;

        getrlimit(RLIMIT_NOFILE, &files);
        room = files.rlim_cur < 2 * FILES_RESERVED ? files.rlim_cur / 2 : files.rlim_cur - FILES_RESERVED;
        limits.connections = least(API_MAX, room / 3);
        f->agents_max = least(AGENTS_MAX, room - limits.connections);
        http_server_limits(f->http, &limits);
}

static void on_clock(void *arg);

int front_new(struct server *s, struct front **ret, struct err *err)
{
        struct front *f = mem_new(struct front);
        const char *address;
        int r;

        f->server = s;
        f->loop = loop_new();
        f->users = map_new();
        f->bodies = bodies_new();
        f->clock = timer_new(f->loop, on_clock, f);
        f->mail = mailbox_new(f->loop, receive, NULL, f);
        f->http = http_server_new(f->loop, handle, f);
        limit_connections(f);
        *ret = f;
        r = access_tls(s->access, &s->config, &f->tls, err);
        if (r == 0)
                r = http_server_listen(f->http, s->paths.api, 0666, NULL, NULL, err);
        if (r == 0 && s->config.api_listen) {
                r = http_server_listen(f->http, s->config.api_listen, 0, f->tls, &address, err);
                if (r == 0)
                        f->api_tls = mem_dupz(address);
        }
        if (r == 0)
                r = peers_new(f, &f->peers, err);
        return r;
}

/* The wall clock may have been set. */
static void on_clock(void *arg)
{
        struct front *f = arg;
        struct err err = {0};
        int r = access_tls_renew(f->server->access, &f->server->config, f->tls, &err);

        if (r > 0)
                log_info("msg=\"the clock was set: the server has a new certificate\"");
        else if (r < 0)
                log_warn("msg=\"the server's certificate cannot be made anew\" why=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
        timer_start(f->clock, CLOCK_LOOK_MS);
}

static void *run(void *arg)
{
        struct front *f = arg;

        timer_start(f->clock, CLOCK_LOOK_MS);
        loop_run(f->loop);
        return NULL;
}

int front_start(struct front *f, struct err *err)
{
        int r = pthread_create(&thread, NULL, run, f);

        if (r != 0)
                return err_set(err, -r, "cannot start a thread");
        thread_runs = true;
        return 0;
}

void front_stop(struct front *f)
{
        if (!thread_runs)
                return;
        loop_stop(f->loop);
        pthread_join(thread, NULL);
        thread_runs = false;
}

static void drop(struct mail *m)
{
        task_drop((struct task *)m);
}

void front_free(struct front *f)
{
        if (!f)
                return;
        peers_free(f->peers);
        mailbox_free(f->mail, drop);
        http_server_free(f->http);
        tls_unref(f->tls);
        forget_users(f);
        map_free(f->users);
        bodies_free(f->bodies);
        timer_free(f->clock);
        loop_free(f->loop);
        free(f->api_tls);
        free(f);
}
