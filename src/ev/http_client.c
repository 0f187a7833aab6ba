/* HTTP is libcurl's, driven by the loop: its multi interface says which descriptors to watch and when it
 * wants to be called. What is ours is the line of calls before it, for libcurl counts a call's time from when
 * it has it, and the bounds on what a server may send. */
#include "ev/http_client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/libcurl.h"
#include "ev/private.h"

#define CONNECTIONS              8
#define TIMEOUT_MS               60000
#define HANDSHAKE_MS             10000
#define HEAD_MAX                 65536u

#define SET(call, option, value) libcurl.p_curl_easy_setopt((call)->h, CURLOPT_##option, value)

struct http_call {
        struct http_client *client;
        struct http_call *next, **link; /* of the client's, in the order in which they were made */
        enum { WAITING, RUNNING, ENDED } state;
        CURL *h; /* while it runs, and until it is freed */
        struct curl_slist *lines;
        struct http_call_spec spec; /* its strings are owned by the call; `limit` counts down */
        struct buf out;             /* spec.body */
        uint64_t read_at;           /* offset in spec.from_fd */
        http_call_fn *fn;
        void *arg;
        bool sent;            /* its connection is there: the server may have heard of it */
        size_t head, counted; /* bytes of the answer; of its body, in the client's budget */
        struct buf body;
        int status;
        struct err err; /* while the call runs: the reason for which we end it */
        char why[CURL_ERROR_SIZE];
};

struct http_client {
        struct loop *loop;
        char *address, *bearer, *ca_file, *certificate_file, *key_file;
        struct tls_context *tls;
        bool authorities;
        int64_t handshake_ms;
        struct http_budget own, *budget;
        unsigned max, running;
        struct http_call *first, **last;
        struct timer *due, *kick; /* libcurl's; ours */
        CURLM *multi;             /* NULL: there is no libcurl, and `broken` says why */
        struct err broken;
};

/* ---- the loop */

struct watched {
        struct http_client *client;
        struct watch *watch;
        int fd;
};

static void settle_call(struct http_call *call, CURLcode result);

static void collect(struct http_client *c)
{
        CURLMsg *m;
        int left;

        while ((m = libcurl.p_curl_multi_info_read(c->multi, &left))) {
                void *call = NULL;
                CURLcode result = m->data.result;

                libcurl.p_curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
                settle_call(call, result);
        }
}

static void on_ready(void *arg, int what)
{
        struct watched *w = arg;
        struct http_client *c = w->client;
        int n, mask = (what & WATCH_READ ? CURL_CSELECT_IN : 0) | (what & WATCH_WRITE ? CURL_CSELECT_OUT : 0);

        libcurl.p_curl_multi_socket_action(c->multi, w->fd, mask, &n); /* w may be gone */
        collect(c);
}

static int on_watch(CURL *h, curl_socket_t fd, int what, void *arg, void *known)
{
        struct http_client *c = arg;
        struct watched *w = known;

        (void)h;
        if (what == CURL_POLL_REMOVE) {
                if (w)
                        watch_free(w->watch);
                free(w);
                libcurl.p_curl_multi_assign(c->multi, fd, NULL);
                return 0;
        }
        if (!w) {
                w = mem_new(struct watched);
                *w = (struct watched){.client = c, .fd = fd};
                w->watch = watch_new(c->loop, fd, 0, on_ready, w);
                libcurl.p_curl_multi_assign(c->multi, fd, w);
        }
        watch_set(w->watch,
                  (what & CURL_POLL_IN ? WATCH_READ : 0) | (what & CURL_POLL_OUT ? WATCH_WRITE : 0));
        return 0;
}

static int on_timer(CURLM *m, long ms, void *arg)
{
        struct http_client *c = arg;

        (void)m;
        if (ms < 0)
                timer_stop(c->due);
        else
                timer_start(c->due, ms);
        return 0;
}

static void on_due(void *arg)
{
        struct http_client *c = arg;
        int n;

        libcurl.p_curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &n);
        collect(c);
}

/* ---- clients */

static void kick(void *arg);

struct http_client *http_client_new(struct loop *l, const struct http_client_config *config)
{
        struct http_client *c = mem_new(struct http_client);

        c->loop = l;
        c->address = mem_dupz(config->address);
        c->bearer = config->bearer ? mem_dupz(config->bearer) : NULL;
        c->ca_file = config->ca_file ? mem_dupz(config->ca_file) : NULL;
        c->certificate_file = config->certificate_file ? mem_dupz(config->certificate_file) : NULL;
        c->key_file = config->key_file ? mem_dupz(config->key_file) : NULL;
        c->tls = config->tls;
        c->authorities = config->authorities;
        c->handshake_ms = config->handshake_ms ? config->handshake_ms : HANDSHAKE_MS;
        c->budget = config->budget ? config->budget : &c->own;
        c->max = config->connections ? config->connections : CONNECTIONS;
        c->last = &c->first;
        c->due = timer_new(l, on_due, c);
        c->kick = timer_new(l, kick, c);
        if (libcurl_open(&c->broken) < 0)
                return c;
        c->multi = libcurl.p_curl_multi_init();
        if (!c->multi)
                abort();
        libcurl.p_curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_watch);
        libcurl.p_curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
        libcurl.p_curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
        libcurl.p_curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
        libcurl.p_curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)c->max);
        return c;
}

void http_client_bearer(struct http_client *c, const char *bearer)
{
        free(c->bearer);
        c->bearer = bearer ? mem_dupz(bearer) : NULL;
}

static void count_body(struct http_call *call, size_t bytes)
{
        struct http_budget *b = call->client->budget;

        b->used = b->used - call->counted + bytes;
        call->counted = bytes;
}

/* Frees a call in any state: the connection of a call under way is closed. */
static void call_free(struct http_call *call)
{
        struct http_client *c = call->client;

        *call->link = call->next;
        if (call->next)
                call->next->link = call->link;
        else
                c->last = call->link;
        if (call->state == RUNNING) {
                libcurl.p_curl_multi_remove_handle(c->multi, call->h);
                c->running--;
        }
        if (call->h) {
                libcurl.p_curl_easy_cleanup(call->h);
                libcurl.p_curl_slist_free_all(call->lines);
        }
        count_body(call, 0);
        buf_deinit(&call->body);
        buf_deinit(&call->out);
        free((char *)(uintptr_t)call->spec.method);
        free((char *)(uintptr_t)call->spec.path);
        free((char *)(uintptr_t)call->spec.address);
        free((char *)(uintptr_t)call->spec.type);
        free((char *)(uintptr_t)call->spec.fields);
        free(call);
}

void http_client_free(struct http_client *c)
{
        if (!c)
                return;
        while (c->first)
                call_free(c->first);
        if (c->multi)
                libcurl.p_curl_multi_cleanup(c->multi);
        timer_free(c->due);
        timer_free(c->kick);
        free(c->address);
        free(c->bearer);
        free(c->ca_file);
        free(c->certificate_file);
        free(c->key_file);
        free(c);
}

void http_call_cancel(struct http_call *call)
{
        if (!call)
                return;
        timer_start(call->client->kick, 0);
        call_free(call);
}

/* ---- the answer */

static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
        struct http_call *call = arg;

        (void)p;
        call->head += size * n;
        if (call->head <= HEAD_MAX)
                return size * n;
        err_set(&call->err, -E2BIG, "the head of the answer is larger than %u bytes", HEAD_MAX);
        return CURL_WRITEFUNC_ERROR;
}

/* Passes a piece of the body to the descriptor, the callback or the buffer. 0, or -errno with the call's err.
 */
static int keep_body(struct http_call *call, int status, struct str part)
{
        if (call->spec.part) {
                call->spec.part(call->arg, status, part);
                return 0;
        }
        if (call->spec.to_fd && status / 100 == 2) {
                int r = 0;

                if (call->spec.limited && part.n > call->spec.limit) {
                        r = err_set(&call->err, -EFBIG, "it is larger than was said");
                } else {
                        call->spec.limit -= call->spec.limited ? part.n : 0;
                        r = fs_write_all(call->spec.fd, part.p, part.n);
                        if (r < 0)
                                err_set(&call->err, r, "cannot write: %s", strerror(-r));
                }
                call->status = r < 0 ? -1 : 0;
                return r;
        }
        if (call->body.n + part.n > call->spec.max)
                return err_set(&call->err, -E2BIG, "the answer is larger than %zu KiB", call->spec.max >> 10);
        buf_str(&call->body, part);
        count_body(call, call->body.n);
        if (call->client->budget->used > HTTP_BUDGET)
                return err_set(&call->err, -E2BIG, "answers of more than %u MiB come at the same time",
                               HTTP_BUDGET >> 20);
        return 0;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
        struct http_call *call = arg;
        long status = 0;

        libcurl.p_curl_easy_getinfo(call->h, CURLINFO_RESPONSE_CODE, &status);
        return keep_body(call, (int)status, str_make(p, size * n)) < 0 ? CURL_WRITEFUNC_ERROR : size * n;
}

static void explain(struct http_call *call, CURLcode result)
{
        const char *why = *call->why ? call->why : libcurl.p_curl_easy_strerror(result);
        long verdict = 0, number = 0;

        libcurl.p_curl_easy_getinfo(call->h, CURLINFO_SSL_VERIFYRESULT, &verdict);
        libcurl.p_curl_easy_getinfo(call->h, CURLINFO_OS_ERRNO, &number);
        if (result == CURLE_OPERATION_TIMEDOUT)
                why = "it did not answer in time";
        else if (result == CURLE_COULDNT_CONNECT && number)
                why = strerror((int)number);
        if (result == CURLE_PEER_FAILED_VERIFICATION)
                tls_verdict(verdict, &call->err);
        else if (call->sent)
                err_set(&call->err, 0, "%s", why);
        else
                err_set(&call->err, 0, "cannot connect to %s: %s", call->spec.address, why);
}

/* Ends the call without an answer. */
static void end_unanswered(struct http_call *call)
{
        buf_reset(&call->body);
        call->status = call->status < 0 ? -1 : call->spec.once && !call->sent ? HTTP_NOT_SENT : 0;
        call->state = ENDED;
}

/* The call is over: its answer is told in a turn of its own. */
static void settle_call(struct http_call *call, CURLcode result)
{
        struct http_client *c = call->client;
        long status = 0;

        libcurl.p_curl_easy_getinfo(call->h, CURLINFO_RESPONSE_CODE, &status);
        libcurl.p_curl_multi_remove_handle(c->multi, call->h);
        c->running--;
        if (result == CURLE_OK) {
                call->status = (int)status;
                call->state = ENDED;
        } else {
                if (!*call->err.text)
                        explain(call, result);
                end_unanswered(call);
        }
        timer_start(c->kick, 0);
}

void http_client_move(struct http_client *c, const char *address)
{
        free(c->address);
        c->address = mem_dupz(address);
        for (struct http_call *call = c->first; call; call = call->next) {
                if (call->state == ENDED)
                        continue;
                if (call->state == RUNNING) {
                        libcurl.p_curl_multi_remove_handle(c->multi, call->h);
                        c->running--;
                }
                if (!*call->err.text)
                        err_set(&call->err, 0, "another server is asked instead");
                end_unanswered(call);
        }
        timer_start(c->kick, 0);
}

/* ---- calls */

/* Opens a socket as libcurl does, but close-on-exec. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
        (void)arg, (void)purpose;
        return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static int on_connected(void *arg, char *to, char *from, int to_port, int from_port)
{
        (void)to, (void)from, (void)to_port, (void)from_port;
        ((struct http_call *)arg)->sent = true;
        return CURL_PREREQFUNC_OK;
}

static CURLcode on_tls(CURL *h, void *ctx, void *arg)
{
        (void)h;
        tls_client_rules(arg, ctx);
        return CURLE_OK;
}

static size_t on_read(char *p, size_t size, size_t n, void *arg)
{
        struct http_call *call = arg;
        uint64_t left = call->spec.from_size - call->read_at;
        size_t want = size * n < left ? size * n : (size_t)left;
        ssize_t got = want ? pread(call->spec.from_fd, p, want, (off_t)call->read_at) : 0;

        if (got < 0 || (want && !got)) {
                err_set(&call->err, got < 0 ? -errno : -EIO, "cannot read the file that is sent: %s",
                        got < 0 ? strerror(errno) : "it is shorter than it was");
                return CURL_READFUNC_ABORT;
        }
        call->read_at += (uint64_t)got;
        return (size_t)got;
}

/* libcurl begins again where an idle connection turned out to be closed. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
        struct http_call *call = arg;

        if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > call->spec.from_size)
                return CURL_SEEKFUNC_FAIL;
        call->read_at = (uint64_t)offset;
        return CURL_SEEKFUNC_OK;
}

static void set_file(struct http_call *call)
{
        SET(call, UPLOAD, 1L);
        SET(call, CUSTOMREQUEST, call->spec.method);
        SET(call, INFILESIZE_LARGE, (curl_off_t)call->spec.from_size);
        SET(call, READFUNCTION, on_read);
        SET(call, READDATA, call);
        SET(call, SEEKFUNCTION, on_seek);
        SET(call, SEEKDATA, call);
}

static void add_line(struct http_call *call, const char *name, struct str value)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "%s" STR_FMT, name, STR_ARG(value));
        call->lines = libcurl.p_curl_slist_append(call->lines, buf_z(&b));
}

static void set_head(struct http_call *call)
{
        const struct http_call_spec *spec = &call->spec;
        struct str rest = str_of(spec->fields ? spec->fields : ""), line;

        add_line(call, "Expect:", STR("")); /* no waiting for leave to send */
        if (call->client->bearer)
                add_line(call, "Authorization: Bearer ", str_of(call->client->bearer));
        while (rest.n && str_cut(&rest, '\n', &line))
                add_line(call, "", str_trim(line));
        if (spec->from_file) {
                add_line(call,
                         "Content-Type: ", str_of(spec->type ? spec->type : "application/octet-stream"));
                set_file(call);
        } else if (call->out.n || strcmp(spec->method, "GET") != 0) {
                add_line(call, "Content-Type: ", str_of(spec->type ? spec->type : "application/json"));
                SET(call, CUSTOMREQUEST, spec->method);
                SET(call, POSTFIELDSIZE_LARGE, (curl_off_t)call->out.n);
                SET(call, POSTFIELDS, buf_z(&call->out));
        }
        SET(call, HTTPHEADER, call->lines);
}

static void set_way(struct http_call *call, const char *path)
{
        const struct http_client *c = call->client;
        BUF_CLEANUP struct buf url = {0};
        const char *address = call->spec.address;
        bool local = str_starts(str_of(address), STR("unix:"));

        buf_printf(&url, "http%s://%s%s", c->tls || c->ca_file || c->authorities ? "s" : "",
                   local ? "localhost" : address, path);
        SET(call, URL, buf_z(&url));
        if (local)
                SET(call, UNIX_SOCKET_PATH, address + 5);
        SET(call, PROTOCOLS_STR, "http,https"); /* redirections are followed nowhere */
        SET(call, HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        SET(call, PATH_AS_IS, 1L);
        SET(call, PROXY, ""); /* whatever the environment says */
        SET(call, OPENSOCKETFUNCTION, on_open);
        if (c->ca_file) {
                SET(call, CAINFO, c->ca_file);
                SET(call, CAPATH, NULL);
                SET(call, CA_CACHE_TIMEOUT, 0L);
        }
        if (c->certificate_file) {
                SET(call, SSLCERT, c->certificate_file);
                SET(call, SSLKEY, c->key_file ? c->key_file : c->certificate_file);
        }
        if (!c->tls)
                return;
        /* Without a CA of its own libcurl trusts no peer; on_tls sets the rules of trust. */
        SET(call, CAINFO, NULL);
        SET(call, CAPATH, NULL);
        SET(call, CA_CACHE_TIMEOUT, 0L);
        SET(call, SSL_VERIFYHOST, 0L);
        SET(call, SSL_CTX_FUNCTION, on_tls);
        SET(call, SSL_CTX_DATA, c->tls);
}

/* A call in line is a few hundred bytes; libcurl's handle of it is some thousands, and is made when its turn
 * has come. */
static void call_begin(struct http_call *call)
{
        struct http_client *c = call->client;
        const struct http_call_spec *spec = &call->spec;

        call->state = RUNNING;
        c->running++;
        call->h = libcurl.p_curl_easy_init();
        if (!call->h)
                abort();
        set_way(call, spec->path);
        set_head(call);
        SET(call, PRIVATE, call);
        SET(call, NOSIGNAL, 1L);
        SET(call, QUICK_EXIT, 1L); /* do not wait for a name server that is silent */
        SET(call, CONNECTTIMEOUT_MS, (long)c->handshake_ms);
        SET(call, TIMEOUT_MS, (long)(spec->timeout_ms ? spec->timeout_ms : TIMEOUT_MS));
        SET(call, FRESH_CONNECT, (long)spec->once); /* libcurl asks again where it has used an old one */
        SET(call, ERRORBUFFER, call->why);
        SET(call, PREREQFUNCTION, on_connected);
        SET(call, PREREQDATA, call);
        SET(call, HEADERFUNCTION, on_head);
        SET(call, HEADERDATA, call);
        SET(call, WRITEFUNCTION, on_body);
        SET(call, WRITEDATA, call);
        libcurl.p_curl_multi_add_handle(c->multi, call->h);
}

struct http_call *http_client_call(struct http_client *c, const struct http_call_spec *spec, http_call_fn *fn,
                                   void *arg)
{
        struct http_call *call = mem_new(struct http_call);

        call->client = c;
        call->link = c->last;
        *c->last = call;
        c->last = &call->next;
        call->fn = fn;
        call->arg = arg;
        call->spec = *spec;
        call->spec.method = mem_dupz(spec->method);
        call->spec.path = mem_dupz(spec->path);
        call->spec.address = mem_dupz(spec->address ? spec->address : c->address);
        call->spec.max = spec->max ? spec->max : HTTP_ANSWER_MAX;
        call->spec.type = spec->type ? mem_dupz(spec->type) : NULL;
        call->spec.fields = spec->fields ? mem_dupz(spec->fields) : NULL;
        buf_str(&call->out, spec->body);
        if (!c->multi) {
                call->state = ENDED;
                call->status = spec->once ? HTTP_NOT_SENT : 0;
                call->err = c->broken;
        }
        timer_start(c->kick, 0);
        return call;
}

/* Returns the first call in a state; calls that run or have ended are near the front of the line. */
static struct http_call *call_in(const struct http_client *c, int state)
{
        struct http_call *call = c->first;

        while (call && (int)call->state != state)
                call = call->next;
        return call;
}

static void kick(void *arg)
{
        struct http_client *c = arg;
        struct http_call *call;

        while (c->running < c->max && (call = call_in(c, WAITING)))
                call_begin(call);
        call = call_in(c, ENDED);
        if (!call)
                return;
        struct http_call ended = *call;
        call->body = (struct buf){0};
        call_free(call);
        timer_start(c->kick, 0); /* for the next one; the client may be freed in this one */
        ended.fn(ended.arg, ended.status, buf_view(&ended.body), &ended.err);
        buf_deinit(&ended.body);
}
