#include "server/api/http_api.h"

#include <stdio.h>
#include <unistd.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "server/access/access.h"
#include "server/access/job_peer.h"
#include "server/api/routes.h"
#include "server/calls/body.h"
#include "server/loop/following.h"
#include "server/page/openid.h"
#include "server/page/page.h"

#define USERS_MAX     10000
#define USER_FRESH_MS 60000

struct api_user {
        char *name; /* principal; NULL: the system has no such user */
        int64_t asked_ms;
};
struct http_api {
        struct server *server;
        struct http_server *http;
        struct map *users; /* uid, as bytes → struct api_user */
        struct bodies *bodies;
        char *tls_address; /* the address in use, or NULL */
};

/* ---- authentication */

static char *ask_user(struct http_api *a, uid_t uid)
{
        struct buf who = {0};

        if (principal_of_uid(&who, uid, str_of(a->server->config.domain), NULL) == 0)
                return buf_take(&who);
        buf_deinit(&who);
        return NULL;
}

static void forget_users(struct http_api *a)
{
        size_t at = 0;
        void *v;

        while (map_next(a->users, &at, NULL, &v)) {
                free(((struct api_user *)v)->name);
                free(v);
        }
        map_free(a->users);
        a->users = map_new();
}

/* Returns the local user's principal. It is cached for a minute, because the lookup may ask a directory
 * service. */
static const char *local_user(struct http_api *a, uid_t uid)
{
        struct str key = str_make((const char *)&uid, sizeof(uid));
        struct api_user *u = map_get(a->users, key);

        if (u && clock_boot_ms() - u->asked_ms < USER_FRESH_MS)
                return u->name;
        if (!u) {
                if (map_count(a->users) >= USERS_MAX)
                        forget_users(a);
                u = mem_new(struct api_user);
                map_put(a->users, key, u);
        }
        free(u->name);
        u->name = ask_user(a, uid);
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
                call_free(c); /* the next step would have waited for the client */
}

static void api_body_read(void *arg, struct http_request *r)
{
        struct call *c = arg;

        (void)r;
        c->waits = false;
        c->route->start(c->server, c);
}

/* The caller is known: the body may be received. */
static void start_call(struct call *c)
{
        c->waits = true;
        http_read_body(c->http, str_of(c->who), api_body_read, c);
}

static void identified(struct server *s, struct call *c)
{
        (void)s;
        if (!c->who) {
                call_fail(c, 401, "unauthorized", "this token is not valid: ask for a new one");
                return;
        }
        http_trust(c->http);
        start_call(c);
}

/* Over TLS: authenticates by the page's session cookie. A browser may open the reply. */
static void identify_session(struct call *c, struct str cookie)
{
        page_guard(c->http);
        access_session(c, cookie, identified);
}

/* Authenticates by a bearer token, which the core thread checks: over TLS, and for processes of jobs. */
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

enum peer { PEER_UNKNOWN, PEER_USER, PEER_JOB }; /* what is known of a connection on the unix socket */

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

/* A job's process has the rights of the token that it sends, and no rights without one. */
static void identify_job(struct call *c)
{
        if (http_header(c->http, "Authorization").n)
                identify_token(c);
        else
                call_fail(c, 403, "job",
                          "a job's processes do not speak for their user: give the job a user token "
                          "(drover token user), and send it (DROVER_TOKEN)");
}

static void identify_local(struct http_api *a, struct call *c, uid_t uid)
{
        struct server *s = a->server;
        const char *user = local_user(a, uid);
        bool own = uid == 0 || uid == geteuid();
        struct str as, name, domain;

        if (!user) {
                call_fail(c, 403, "forbidden",
                          "user %u of this machine has no usable name, so it cannot own jobs", (unsigned)uid);
                return;
        }
        as = http_header(c->http, "Drover-Owner");
        if (as.n && (!own || principal_split(as, &name, &domain) != 0)) {
                call_fail(c, own ? 400 : 403, own ? "bad_owner" : "forbidden",
                          own ? "Drover-Owner must be NAME@DOMAIN"
                              : "only root and the server's user may speak for another");
                return;
        }
        c->who = as.n ? str_dupz(as) : mem_dupz(user);
        c->role = own && !as.n ? ROLE_ADMIN : access_role(s, c->who);
        start_call(c);
}

/* Says how old the answer is, by the header Drover-Standby, in milliseconds. Returns whether the call is one
 * that a server that follows answers; otherwise it has failed. */
static bool may_follow(struct http_api *a, struct call *c)
{
        const struct following *f = a->server->following;
        int64_t current_ms = atomic_load(&f->current_ms);
        char age[24];

        if (!c->route->standby) {
                call_fail(
                        c, 503, "standby",
                        "this server stands by, and answers only reads of requests, jobs and history: ask %s",
                        f->leader);
                return false;
        }
        if (!current_ms) {
                call_fail(c, 503, "standby",
                          "this server stands by, and does not know yet what is current: "
                          "ask %s",
                          f->leader);
                return false;
        }
        snprintf(age, sizeof(age), "%lld", (long long)(clock_boot_ms() - current_ms));
        http_add_header(c->http, "Drover-Standby", age);
        return true;
}

static void request_handle(void *arg, struct http_request *r)
{
        struct http_api *a = arg;
        struct call *c = mem_new(struct call);
        uid_t uid;
        pid_t pid;
        bool path_known, remote = http_peer_uid(r, &uid, &pid) != 0, with_page = a->server->config.page;

        c->server = a->server;
        c->bodies = a->bodies;
        c->http = r;
        c->when = TURN_READ;
        c->status = 200;
        c->begun_ns = clock_mono_ns();
        c->path = str_dupz(http_path(r));
        http_on_close(r, on_close, c);
        if (atomic_load(&a->server->stopping)) {
                call_fail(c, 503, "stopping", "the server is stopping: try again when it is back");
                return;
        }
        c->route = routes_find(http_method(r), str_of(c->path), c->param, &path_known);
        if (!c->route && !path_known && remote && with_page)
                c->route = page_find(http_method(r), str_of(c->path), c->param, &path_known);
        if (!c->route) {
                if (path_known)
                        call_fail(c, 405, "bad_method", "this method does not work on %s", c->path);
                else if (strcmp(c->path, "/") == 0 && !with_page)
                        call_fail(c, 404, "not_found",
                                  "the web page is off: `page: yes` in droverd.yaml turns it on, see "
                                  "droverd(8)");
                else
                        call_fail(c, 404, "not_found", "there is nothing at %s", c->path);
                return;
        }
        if (a->server->following && !may_follow(a, c))
                return;
        if (c->route->anybody)
                c->route->start(c->server, c);
        else if (remote && with_page && !http_header(r, "Authorization").n && page_cookie(r).n)
                identify_session(c, page_cookie(r));
        else if (remote)
                identify_token(c);
        else if (peer_of(r, pid) == PEER_JOB)
                identify_job(c);
        else
                identify_local(a, c, uid);
}

/* ---- opening */

int http_api_new(struct server *s, struct loop *loop, struct tls_context *tls, size_t connections,
                 struct http_api **ret, struct err *err)
{
        struct http_api *a = mem_new(struct http_api);
        const char *address;
        int r;

        a->server = s;
        a->users = map_new();
        a->bodies = routes_bodies();
        a->http = http_server_new(loop, request_handle, a);
        http_server_limits(a->http, &(struct http_limits){.connections = connections});
        *ret = a;
        r = openid_new(s, loop, &s->openid, err);
        if (r == 0)
                r = http_server_listen(a->http, s->following ? s->paths.reads : s->paths.api, 0666, NULL,
                                       NULL, err);
        if (r == 0 && s->config.api_listen) {
                r = http_server_listen(a->http, s->config.api_listen, 0, tls, &address, err);
                if (r == 0)
                        a->tls_address = mem_dupz(address);
        }
        return r;
}

const char *http_api_tls_address(const struct http_api *a)
{
        return a->tls_address;
}

void http_api_free(struct http_api *a)
{
        if (!a)
                return;
        openid_free(a->server->openid);
        http_server_free(a->http);
        forget_users(a);
        map_free(a->users);
        bodies_free(a->bodies);
        free(a->tls_address);
        free(a);
}
