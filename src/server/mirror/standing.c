#include "server/mirror/standing.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/mem.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "ev/http.h"
#include "ev/kept_child.h"
#include "server/access/job_peer.h"

struct standing {
        const struct paths *paths;
        const struct standing_ops *ops;
        void *arg;
        struct http_server *http;
        struct server *server;
        struct args argv;
        struct kept_child *reads; /* NULL: reads are not answered */
        struct watch_signal *hang_up;
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

/* ---- reads: the same program with the same options, and --follow */

static void reads_due(void *arg)
{
        kept_child_run(((struct standing *)arg)->reads);
}

static void reads_ended(void *arg, int status, const struct err *why)
{
        (void)arg;
        (void)status; /* it has said why */
        if (why)
                log_warn("msg=\"reads of the standby are not answered\" why=\"%s\"",
                         LOG_TEXT(str_of(why->text)));
}

static const struct kept_child_ops reads_ops = {reads_due, reads_ended};

static void reads_start(struct standing *s, struct loop *l, const struct config *c)
{
        if (!c->standby_reads || !*program_self())
                return;
        args_add(&s->argv, str_of(program_self()));
        for (int i = 1; i < c->argc; i++)
                args_add(&s->argv, str_of(c->argv[i]));
        args_add(&s->argv, STR("--follow"));
        s->reads = kept_child_new(l, s->argv.v, &reads_ops, s);
        kept_child_start(s->reads);
}

/* ---- SIGHUP */

/* The process that answers reads begins anew with the settings, for it decides by them who is an admin; and
 * so does this one when it leads. A file with a mistake changes nothing. */
static void on_hang_up(void *arg)
{
        struct standing *s = arg;
        struct config *c = mem_new(struct config);
        struct err err = {0};

        if (config_read(c, s->server->config.argc, s->server->config.argv, &err) != 0) {
                log_error("msg=\"the settings cannot be read again, and stay as they are\" error=\"%s\"",
                          LOG_TEXT(str_of(err.text)));
        } else {
                log_info("msg=\"the settings are read again by who answers reads, and when this server "
                         "leads\"");
                atomic_store(&s->server->hung_up, true);
                if (s->reads) {
                        kept_child_stop(s->reads);
                        kept_child_start(s->reads);
                }
        }
        config_deinit(c);
        free(c);
}

int standing_new(struct loop *l, struct server *server, const struct standing_ops *ops, void *arg,
                 struct standing **ret, struct err *err)
{
        struct standing *s = mem_new(struct standing);
        int r;

        *s = (struct standing){.paths = &server->paths, .ops = ops, .arg = arg, .server = server};
        s->hang_up = watch_signal_new(l, SIGHUP, on_hang_up, s);
        s->http = http_server_new(l, on_request, s);
        r = http_server_listen(s->http, s->paths->api, 0666, NULL, NULL, err);
        if (r == 0)
                reads_start(s, l, &server->config);
        if (r == 0)
                r = paths_write_standby(s->paths, s->reads, err);
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
        watch_signal_free(s->hang_up);
        if (s->reads)
                kept_child_kill(s->reads);
        kept_child_free(s->reads);
        args_deinit(&s->argv);
        http_server_free(s->http);
        free(s);
}
