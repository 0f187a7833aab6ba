/* Makes the first calls, which tell whether the other server leads, who it is and whether it knows this user.
 * Of several servers each is asked in turn, beginning with the last one that was used. With a map of
 * users the user's token is read first, by a script that runs as the user and writes it to its standard
 * input, a memory file: the token is never in a file of the agent's. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/format/json_read.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/secret.h"
#include "run/drover/acts.h"
#include "run/drover/answers.h"
#include "run/drover/feed.h"
#include "run/drover/hello.h"
#include "run/drover/link.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"
#include "run/drover/user.h"
#include "run/process/user_command.h"

#define TOKEN_MAX 4096
#define TOKEN_MS  20000
#define READY_MS  5000 /* a server that is frozen accepts connections */

struct remote_login {
        struct command *reading; /* command that reads the user's token */
        int token;               /* memory file that receives the token; -1: none */
        size_t tried;            /* number of servers that were asked in this round */
        bool answered;           /* one of them has answered */
        struct buf whys;         /* reason for each of them */
};

static void there(struct remote *f, const json_t *doc)
{
        log_info("msg=\"in touch with the other server\" queue=%s server=%s as=%s", f->queue, f->link.server,
                 f->link.you);
        f->link.up = true;
        f->link.retry_ms = REMOTE_RETRY_MS;
        f->table.unsettled = 0;
        for (struct remote_request *r = f->table.sent; r; r = r->next)
                r->no_place_ms = 0; /* its places may come back more slowly than it */
        for (struct remote_task *t = f->table.all; t; t = t->next) {
                t->unsettled = t->state == REMOTE_SAVED || t->state == REMOTE_IN;
                t->dirty = t->state == REMOTE_IN;
                f->table.unsettled += t->unsettled;
                if (t->dirty && t->killing) /* whether or not the earlier kill had an effect */
                        remote_act(t, REMOTE_REMOVE);
        }
        remote_feed_start(f, (uint64_t)json_integer_value(json_object_get(doc, "seq")));
        timer_start(f->tick, 0);
        remote_list(f);
}

/* Checks the server's uuid and the user's name, which appear in logs and in paths of jobs. */
static bool is_server(const char *uuid, const char *you)
{
        size_t n = uuid && you ? strlen(uuid) : 0, all = n ? strlen(you) : 0;

        for (size_t i = 0; i < all; i++)
                if ((unsigned char)you[i] <= ' ' || you[i] == 127)
                        return false;
        return n == UUID_TEXT - 1 && strspn(uuid, "0123456789abcdefABCDEF-") == n && all > 0 && all < 256;
}

/* The other server does not accept this user for now: tasks that were not sent yet fail. */
static void hello_refused(struct remote *f, const char *why)
{
        f->link.refused = true;
        for (struct remote_task *t = f->table.all, *next; t; t = next) {
                next = t->next;
                if (t->state == REMOTE_FRESH || t->state == REMOTE_READY)
                        remote_fail(t, "credential", EACCES, why);
        }
        remote_tell_unreachable(f, "refuses", why);
        remote_retry(f, true, why);
}

static void send_hello(struct remote *f);

/* Asks the next of several servers, or all of them again after a pause. */
static void hello_next(struct remote *f, bool answered, const char *why)
{
        struct remote_login *l = f->login;

        l->answered |= answered;
        if (f->addresses.n == 1)
                buf_addz(&l->whys, why);
        else
                buf_printf(&l->whys, "%s%s: %.120s", l->whys.n ? "; " : "", f->addresses.v[f->link.at], why);
        if (f->addresses.n > 1)
                remote_ask_next(f);
        if (++l->tried < f->addresses.n) {
                send_hello(f);
                return;
        }
        remote_retry(f, l->answered, buf_z(&l->whys));
        buf_reset(&l->whys);
        l->tried = 0;
        l->answered = false;
}

static bool is_standby(int status, struct str body)
{
        json_t *doc = status == 503 ? remote_json(body) : NULL;
        const char *code = json_string_value(json_object_get(json_object_get(doc, "error"), "code"));
        bool is = code && !strcmp(code, "standby");

        json_decref(doc);
        return is;
}

static void on_hello(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        BUF_CLEANUP struct buf why = {0};
        json_t *doc = status == 200 ? remote_json(body) : NULL;
        const char *uuid = json_string_value(json_object_get(doc, "uuid"));
        const char *you = json_string_value(json_object_get(doc, "you"));

        if (status && status != 200)
                remote_error(&why, status, body);
        else
                buf_addz(&why, status ? "it is no Drover server" : err->text);
        if (is_server(uuid, you)) {
                snprintf(f->link.server, sizeof(f->link.server), "%s", uuid);
                snprintf(f->link.you, sizeof(f->link.you), "%s", you);
                f->link.refused = false;
                f->login->tried = 0;
                f->login->answered = false;
                buf_reset(&f->login->whys);
                there(f, doc);
        } else if (f->user && status / 100 == 4) {
                hello_refused(f, buf_z(&why));
        } else {
                hello_next(f, status, buf_z(&why));
        }
        json_decref(doc);
}

/* A server that stands by may answer reads, but not this one. */
static void on_readiness(void *arg, int status, struct str body, const struct err *err)
{
        struct remote *f = arg;
        BUF_CLEANUP struct buf why = {0};

        if (status && !is_standby(status, body)) {
                remote_get(f, "/v1/server", on_hello);
                return;
        }
        if (status)
                remote_error(&why, status, body);
        else
                buf_addz(&why, err->text);
        hello_next(f, status, buf_z(&why));
}

static void send_hello(struct remote *f)
{
        const struct http_call_spec spec = {.method = "GET", .path = "/readyz", .timeout_ms = READY_MS};

        http_client_call(f->client, &spec, on_readiness, f);
}

static void on_token(void *arg, int status, struct str out, struct str errors)
{
        struct remote *f = arg;
        SECRET_CLEANUP struct buf token = {0};
        BUF_CLEANUP struct buf why = {0};

        (void)out;
        ssize_t n = pread(f->login->token, buf_room(&token, TOKEN_MAX), TOKEN_MAX, 0);
        token.n = n > 0 ? (size_t)n : 0;
        f->login->reading = NULL;
        close(f->login->token);
        f->login->token = -1;
        struct str text = str_trim(buf_view(&token));
        bool one = text.n && !memchr(text.p, '\n', text.n) && !memchr(text.p, '\r', text.n);
        if (status == 0 && one) {
                SECRET_CLEANUP struct buf z = {0};

                buf_str(&z, text);
                http_client_bearer(f->client, buf_z(&z));
                send_hello(f);
                return;
        }
        buf_printf(&why, "user %s has no token for the other server in %s: ", f->user->name, f->user->token);
        if (status == 0)
                buf_addz(&why, "it is not one line");
        else
                remote_user_said(&why, errors);
        hello_refused(f, buf_z(&why));
}

static void hello_read_token(struct remote *f)
{
        static const char script[] = "exec head -c 4096 -- \"$1\" >&0";
        const char *words[] = {f->user->token, NULL};

        f->login->token = memfd_create("token", MFD_CLOEXEC);
        if (f->login->token < 0) {
                hello_refused(f, "the agent cannot make a file in memory");
                return;
        }
        const struct user_command_spec s = {.input_fd = f->login->token, .timeout_ms = TOKEN_MS};
        f->login->reading = remote_user_run(f->user, script, words, &s, on_token, f);
}

static void hello(void *arg)
{
        struct remote *f = arg;

        if (f->user) {
                hello_read_token(f);
                return;
        }
        BUF_CLEANUP struct buf token = {0};
        if (f->token_file && fs_read_secret(AT_FDCWD, f->token_file, 4096, &token, NULL) == 0) {
                MEM_CLEANUP char *z = str_dupz(str_trim(buf_view(&token)));

                http_client_bearer(f->client, z);
        }
        send_hello(f);
}

void remote_link_open(struct remote *f)
{
        f->login = mem_new(struct remote_login);
        f->login->token = -1;
        f->link.retry_ms = REMOTE_RETRY_MS;
        f->link.hello = timer_new(f->loop, hello, f);
        timer_start(f->link.hello, 0);
}

void remote_login_free(struct remote_login *l)
{
        if (!l)
                return;
        command_cancel(l->reading);
        buf_deinit(&l->whys);
        if (l->token >= 0)
                close(l->token);
        free(l);
}
