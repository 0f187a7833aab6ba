#include "server/mirror/standing.h"

#include <unistd.h>

#include "base/mem.h"
#include "ev/http.h"
#include "server/access/job_peer.h"

struct standing {
        const struct paths *paths;
        const struct standing_ops *ops;
        void *arg;
        struct http_server *http;
};

static void answer_error(struct http_request *r, int status, const char *code, const char *text)
{
        BUF_CLEANUP struct buf body = {0};
        struct json j = {.out = &body};

        json_open(&j, '{');
        json_key(&j, "error");
        json_open(&j, '{');
        json_kstrz(&j, "code", code);
        json_kstrz(&j, "message", text);
        json_close(&j, '}');
        json_close(&j, '}');
        http_reply(r, status, NULL, &body);
}

static void answer_status(struct standing *s, struct http_request *r)
{
        BUF_CLEANUP struct buf body = {0};
        struct json j = {.out = &body};

        json_open(&j, '{');
        s->ops->write(s->arg, &j);
        json_close(&j, '}');
        http_reply(r, 200, NULL, &body);
}

/* A job's processes do not speak for their user. */
static bool may_promote(struct http_request *r)
{
        uid_t uid = (uid_t)-1;
        pid_t pid = 0;
        bool is_job;
        int fd;

        if (http_peer_uid(r, &uid, &pid) != 0 || (uid != 0 && uid != geteuid()))
                return false;
        fd = http_peer_pidfd(r);
        is_job = job_peer_is(pid, fd);
        if (fd >= 0)
                close(fd);
        return !is_job;
}

static void promote(struct standing *s, struct http_request *r)
{
        struct err err = {0};
        struct str force;

        if (!may_promote(r))
                answer_error(r, 403, "forbidden", "only root and the server's user may promote it");
        else if (s->ops->promote(s->arg, http_query(r, "force", &force), &err) != 0)
                answer_error(r, 409, "conflict", err.text);
        else
                answer_status(s, r);
}

static void on_request(void *arg, struct http_request *r)
{
        struct standing *s = arg;
        BUF_CLEANUP struct buf text = {0};

        if (http_method(r) == HTTP_GET && str_eqz(http_path(r), "/v1/server/status")) {
                answer_status(s, r);
        } else if (http_method(r) == HTTP_POST && str_eqz(http_path(r), "/v1/server/promote")) {
                promote(s, r);
        } else {
                buf_printf(&text, "this server does not lead: ask %s, or see drover server status",
                           s->ops->leader);
                answer_error(r, 503, "standby", buf_z(&text));
        }
}

int standing_new(struct loop *l, const struct paths *paths, const struct standing_ops *ops, void *arg,
                 struct standing **ret, struct err *err)
{
        struct standing *s = mem_new(struct standing);
        int r;

        *s = (struct standing){.paths = paths, .ops = ops, .arg = arg};
        s->http = http_server_new(l, on_request, s);
        r = http_server_listen(s->http, paths->api, 0666, NULL, NULL, err);
        if (r == 0)
                r = paths_write_standby(paths, err);
        if (r != 0)
                standing_free(s);
        else
                *ret = s;
        return r;
}

void standing_free(struct standing *s)
{
        if (!s)
                return;
        paths_remove_standby(s->paths);
        http_server_free(s->http);
        free(s);
}
