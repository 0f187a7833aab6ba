/* Each server has one client with a few connections. Answers are parsed as they arrive, so the list of all
 * jobs of a large cluster is never in memory, nor parsed at once.
 *
 * A request that works with any version of the API is made in the version that was answered last, at first
 * in the newest; if the server has no such path, in the next version, until all have been tried. So a server
 * that is replaced by a newer or older one is supported from the next such request on.
 */
#include "run/call/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/format/base64.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "ev/http_client.h"

#define TOKEN_MAX   16384
#define ERRORS_MAX  4096
#define HEAD_KEPT   200 /* bytes kept of an answer that is not JSON */
#define CONNECTIONS 4
/* What an answer may have, also of what is not kept. The jobs of a large cluster are some hundred MiB. */
#define BYTES_MAX (1u << 30)
#define ROWS_MAX  1000000u

struct requests {
        struct loop *loop;
        struct request_server server;
        struct http_client *client;
        size_t version; /* index of the version to try first */
        bool answered;  /* the server has answered in that version */
};

struct request {
        struct command base;
        struct requests *all;
        char *method, *user, *type;
        struct args paths;
        size_t at, errors_at; /* index of the current path; start of its errors */
        struct buf body, out, errors, head;
        bool once, first;
        request_next_fn *next;
        const void *next_arg;
        enum request_kind kind;
        int fd;
        uint64_t size;
        const char *fixed;     /* required version, or NULL */
        size_t version, tried; /* otherwise: the version in use; number tried for this path */
        size_t bytes, rows;    /* read of the present answer */
        int status;
        int64_t timeout_ms;
        command_done_fn *done;
        void *arg;
        struct http_call *call;
        struct timer *end; /* finishes the request from the loop */
        struct json_skim skim;
};

int request_check(const char *address, bool tls, struct err *err)
{
        struct str s = str_of(address), host, scheme = tls ? STR("https://") : STR("http://");
        uint64_t port;

        if (str_starts(s, STR("unix:/")))
                return 0;
        if (str_starts(s, STR("http://")))
                scheme = STR("http://");
        if (str_starts(s, scheme)) {
                s = str_skip(s, scheme.n);
                ptrdiff_t colon = str_rfind(s, ':');
                host = str_head(s, colon < 0 ? 0 : (size_t)colon);
                if (host.n && str_find(s, '/') < 0 && str_to_u64(str_skip(s, host.n + 1), &port) == 0 &&
                    port > 0 && port < 65536)
                        return 0;
        }
        return err_set(err, -EINVAL, "'%.200s' is not unix:/PATH or %s://HOST:PORT", address,
                       tls ? "https" : "http");
}

struct requests *requests_new(struct loop *l, const struct request_server *s)
{
        struct requests *r = mem_new(struct requests);
        struct str address = str_of(s->address);
        bool tls = str_starts(address, STR("https://"));

        if (tls || str_starts(address, STR("http://")))
                address = str_skip(address, tls ? strlen("https://") : strlen("http://"));
        MEM_CLEANUP char *z = str_dupz(address);
        r->loop = l;
        r->server = *s;
        r->server.address = NULL;
        r->client = http_client_new(
                l, &(struct http_client_config){.address = z,
                                                .ca_file = tls ? s->ca_file : NULL,
                                                .certificate_file = tls ? s->certificate_file : NULL,
                                                .key_file = tls ? s->key_file : NULL,
                                                .connections = CONNECTIONS});
        return r;
}

void requests_free(struct requests *r)
{
        if (r)
                http_client_free(r->client);
        free(r);
}

static void request_free(struct request *q)
{
        json_skim_deinit(&q->skim);
        timer_free(q->end);
        args_deinit(&q->paths);
        buf_deinit(&q->body);
        buf_deinit(&q->out);
        buf_deinit(&q->errors);
        buf_deinit(&q->head);
        free(q->method);
        free(q->user);
        free(q->type);
        free(q);
}

static void request_cancel(struct command *c)
{
        struct request *q = (struct request *)(void *)c;

        http_call_cancel(q->call);
        request_free(q);
}

static void finish(struct request *q)
{
        q->done(q->arg, q->status, buf_view(&q->out), buf_view(&q->errors));
        request_free(q);
}

/* ---- the token */

struct claims {
        struct buf user;
        uint64_t until_s; /* 0: no expiry given */
};

static void take_claims(void *arg, const struct json_skim_rows *rows, const struct str *values)
{
        struct claims *c = arg;

        (void)rows;
        str_to_u64(values[0], &c->until_s);
        buf_str(&c->user, values[1]);
}

/* Reads the token's claims, which follow its first dot. */
static void read_claims(struct str token, struct claims *ret)
{
        static const char *const fields[] = {"exp", "sun", NULL};
        static const struct json_skim_rows rows[] = {{NULL, fields}, {NULL, NULL}};
        BUF_CLEANUP struct buf text = {0};
        struct json_skim skim;
        struct str part;

        str_cut(&token, '.', &part);
        str_cut(&token, '.', &part);
        base64url_decode(&text, part);
        json_skim_init(&skim, rows, take_claims, ret);
        json_skim_take(&skim, buf_view(&text));
        json_skim_deinit(&skim);
}

/* Reads a token, alone or as `scontrol token` prints it. Returns 0, or -errno with err. */
static int read_token(const struct requests *r, struct buf *out, struct err *err)
{
        static const char before[] = "SLURM_JWT=";
        const char *file = r->server.token_file;
        BUF_CLEANUP struct buf text = {0};
        int e = fs_read_secret(AT_FDCWD, file, TOKEN_MAX, &text, err);

        if (e < 0)
                return err_prefix(err, e, "no token: %s", file);
        struct str token = str_trim(buf_view(&text));
        if (str_starts(token, str_of(before)))
                token = str_skip(token, sizeof(before) - 1);
        size_t dots = 0, n = 0;
        for (; n < token.n && token.p[n] > ' ' && token.p[n] < 127; n++)
                dots += token.p[n] == '.';
        if (n != token.n || !n || (dots != 2 && !r->server.service->any_token))
                return err_set(err, -EINVAL, "%s holds no %s", file,
                               r->server.service->any_token ? "token" : "JSON Web Token");
        buf_str(out, token);
        return 0;
}

/* Appends what is known here about the token, since the server's error does not say it. */
static void suspect_token(struct request *q)
{
        const struct request_server *s = &q->all->server;
        BUF_CLEANUP struct buf token = {0};
        struct claims c = {{0}, 0};
        struct err err;
        const char *user = q->user ? q->user : s->user;

        if (!s->token_file || read_token(q->all, &token, &err) < 0)
                return;
        read_claims(buf_view(&token), &c);
        if (c.until_s && c.until_s * 1000 <= (uint64_t)clock_wall_ms())
                buf_printf(&q->errors, " (the token in %s is outdated)", s->token_file);
        else if (c.user.n && !str_eqz(buf_view(&c.user), user))
                buf_printf(&q->errors, " (the token in %s is of " STR_FMT "; may that one ask for %s?)",
                           s->token_file, STR_ARG(buf_view(&c.user)), user);
        else
                buf_printf(&q->errors, " (is the token in %s accepted?)", s->token_file);
        buf_deinit(&c.user);
}

/* ---- requests */

static void ask_server(struct request *q);

static void on_row(void *arg, const struct json_skim_rows *rows, const struct str *values)
{
        struct request *q = arg;
        const struct request_server *s = &q->all->server;

        q->rows++;
        if (q->rows <= ROWS_MAX && !q->out.overflow)
                s->service->take(s->arg, rows, values, &q->out, &q->errors);
}

/* Returns whether the answer is larger than any that is read; the request then ends. */
static bool is_too_large(struct request *q)
{
        const char *name = q->all->server.service->name;

        if (q->bytes <= BYTES_MAX && q->rows <= ROWS_MAX && !q->out.overflow)
                return false;
        q->status = -1;
        buf_truncate(&q->errors, q->errors_at);
        q->errors.overflow = false;
        if (q->rows > ROWS_MAX)
                buf_printf(&q->errors, "%s answered with more than %u objects", name, ROWS_MAX);
        else
                buf_printf(&q->errors, "%s answered with more than %u MiB", name,
                           (q->out.overflow ? COMMAND_OUTPUT_MAX : BYTES_MAX) >> 20);
        timer_start(q->end, 0);
        return true;
}

static void on_part(void *arg, int status, struct str part)
{
        struct request *q = arg;

        if (q->status < 0)
                return;
        q->bytes += part.n;
        if (q->head.n < HEAD_KEPT)
                buf_str(&q->head, str_head(part, HEAD_KEPT - q->head.n));
        if (q->kind != REQUEST_ROWS && q->out.n < REQUEST_TEXT_MAX)
                buf_str(&q->out, str_head(part, REQUEST_TEXT_MAX - q->out.n));
        else if (q->kind == REQUEST_ROWS)
                json_skim_take(&q->skim, part);
        if (is_too_large(q))
                return;
        if (q->first && status / 100 == 2 && json_skim_done(&q->skim))
                timer_start(q->end, 0);
}

/* ---- versions of the API */

const char *requests_version(const struct requests *r)
{
        return r->answered ? r->server.service->versions[r->version] : NULL;
}

static void write_path(const struct request *q, struct buf *out)
{
        struct str path = str_of(q->paths.v[q->at]);
        const char *const *versions = q->all->server.service->versions;
        ptrdiff_t at = str_search(path, STR(REQUEST_VERSION));

        if (at >= 0) {
                buf_str(out, str_head(path, (size_t)at));
                buf_addz(out, q->fixed ? q->fixed : versions[q->version]);
                path = str_skip(path, (size_t)at + strlen(REQUEST_VERSION));
        }
        buf_str(out, path);
}

/* Chooses the next API version. Returns true if the server has no such path and another version is left.
 * Such an answer is not JSON, unlike that for an unknown job. */
static bool next_version(struct request *q, int status)
{
        const char *const *versions = q->all->server.service->versions;
        size_t n = 0;

        if (!versions || q->fixed)
                return false;
        if (json_skim_done(&q->skim)) {
                q->all->version = q->version;
                q->all->answered = true;
        }
        if (status != 404 || json_skim_done(&q->skim))
                return false;
        while (versions[n])
                n++;
        q->version = (q->version + 1) % n;
        return ++q->tried < n;
}

/* Handles an answer with a status other than success. */
static void request_failed(struct request *q, int status)
{
        const struct request_service *service = q->all->server.service;

        q->status = q->kind != REQUEST_ROWS && status == 404 ? REQUEST_ABSENT : 1 << 8;
        if (q->errors.n == q->errors_at) {
                buf_printf(&q->errors, "%s%s answers with HTTP status %d", q->errors.n ? "; " : "",
                           service->name, status);
                if (q->head.n && !json_skim_done(&q->skim))
                        buf_printf(&q->errors, ": " STR_FMT, STR_ARG(str_trim(buf_view(&q->head))));
        }
        if (status == 401 || (service->doubt && service->doubt(str_skip(buf_view(&q->errors), q->errors_at))))
                suspect_token(q);
}

/* Returns whether the answer is complete. */
static bool is_whole(const struct request *q)
{
        return q->kind != REQUEST_ROWS || json_skim_done(&q->skim) ||
               ((q->first || q->all->server.service->empty_is_none) && !q->head.n);
}

/* Makes the body of the next path. Returns false: it need not be requested. */
static bool has_next(struct request *q)
{
        if (!q->next)
                return true;
        buf_reset(&q->body);
        if (q->status != 0 || !q->next(q->next_arg, buf_view(&q->out), &q->body))
                return false;
        free(q->method);
        q->method = mem_dupz("POST");
        return true;
}

static void on_answer(void *arg, int status, struct str body, const struct err *err)
{
        struct request *q = arg;
        const struct request_service *service = q->all->server.service;

        q->call = NULL;
        if (body.n) /* of a failed download */
                on_part(q, status, body);
        if (q->status < 0)
                return; /* it ends by the timer */
        if (status > 0 && next_version(q, status)) {
                ask_server(q);
                return;
        }
        q->tried = 0;
        if (status <= 0) {
                q->status = -1;
                buf_addz(&q->errors, err->text);
        } else if (status / 100 != 2) {
                request_failed(q, status);
        } else if (!is_whole(q)) {
                q->status = -1;
                buf_printf(&q->errors, "what came is not an answer of %s", service->name);
        } else if (service->fault && service->fault(str_skip(buf_view(&q->errors), q->errors_at))) {
                request_failed(q, status);
        } else {
                buf_truncate(&q->errors, q->errors_at); /* these errors are no failure */
        }
        if (q->status < 0 || ++q->at == q->paths.n || !has_next(q))
                finish(q);
        else
                ask_server(q);
}

static void on_end(void *arg)
{
        struct request *q = arg;

        http_call_cancel(q->call);
        finish(q);
}

static void ask_server(struct request *q)
{
        const struct request_server *s = &q->all->server;
        BUF_CLEANUP struct buf fields = {0}, token = {0}, path = {0};
        struct err err = {""};

        if (s->token_file && read_token(q->all, &token, &err) < 0) {
                q->status = -1;
                buf_addz(&q->errors, err.text);
                timer_start(q->end, 0);
                return;
        }
        if (s->token_file && s->service->user_field)
                buf_printf(&fields, "%s: %s\r\n", s->service->user_field, q->user ? q->user : s->user);
        if (s->token_file)
                buf_printf(&fields, "%s" STR_FMT "\r\n", s->service->token_field, STR_ARG(buf_view(&token)));
        if (s->service->fields)
                buf_addz(&fields, s->service->fields);
        write_path(q, &path);
        q->errors_at = q->errors.n;
        q->errors.overflow = false;
        q->bytes = q->rows = 0;
        buf_reset(&q->head);
        json_skim_deinit(&q->skim);
        json_skim_init(&q->skim, s->service->rows, on_row, q);
        const struct http_call_spec spec = {.method = q->method,
                                            .path = buf_z(&path),
                                            .type = q->type,
                                            .fields = fields.n ? buf_z(&fields) : NULL,
                                            .body = buf_view(&q->body),
                                            .timeout_ms = q->timeout_ms,
                                            .once = q->once,
                                            .from_file = q->kind == REQUEST_UPLOAD,
                                            .from_fd = q->fd,
                                            .from_size = q->size,
                                            .to_fd = q->kind == REQUEST_DOWNLOAD,
                                            .fd = q->fd,
                                            .limited = true,
                                            .limit = q->size,
                                            .part = q->kind == REQUEST_DOWNLOAD ? NULL : on_part};
        q->call = http_client_call(q->all->client, &spec, on_answer, q);
}

struct command *request_run(struct requests *r, const struct request_spec *s, command_done_fn *done,
                            void *arg)
{
        struct request *q = mem_new(struct request);

        q->base.cancel = request_cancel;
        q->all = r;
        q->method = mem_dupz(s->method);
        q->user = mem_dupz(s->user);
        q->type = mem_dupz(s->type);
        for (size_t i = 0; i < s->paths->n; i++)
                args_add(&q->paths, str_of(s->paths->v[i]));
        buf_str(&q->body, s->body);
        q->once = s->once;
        q->next = s->next;
        q->next_arg = s->next_arg;
        q->kind = s->kind;
        q->fd = s->fd;
        q->size = s->size;
        q->first = s->first;
        q->fixed = s->version;
        q->version = r->version;
        q->timeout_ms = s->timeout_ms;
        q->errors.max = ERRORS_MAX;
        q->out.max = COMMAND_OUTPUT_MAX;
        q->done = done;
        q->arg = arg;
        q->end = timer_new(r->loop, on_end, q);
        ask_server(q);
        return &q->base;
}

struct now {
        struct loop *loop;
        struct command *running;
};

static void on_now_done(void *arg, int status, struct str out, struct str errors)
{
        struct now *n = arg;

        (void)status, (void)out, (void)errors;
        n->running = NULL;
        loop_stop(n->loop);
}

static void on_now_late(void *arg)
{
        loop_stop(((struct now *)arg)->loop);
}

/* Runs on a loop of its own, so that nothing else happens meanwhile. */
void request_now(const struct request_server *server, const struct request_spec *s)
{
        struct now n = {.loop = loop_new()};
        struct requests *r = requests_new(n.loop, server);
        struct timer *late = timer_new(n.loop, on_now_late, &n);

        timer_start(late, s->timeout_ms);
        n.running = request_run(r, s, on_now_done, &n);
        loop_run(n.loop);
        command_cancel(n.running);
        timer_free(late);
        requests_free(r);
        loop_free(n.loop);
}
