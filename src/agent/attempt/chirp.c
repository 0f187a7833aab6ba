/* The socket is made in the agent's own folder, where nobody else can replace it, gets its mode there, and
 * is moved into the sandbox: a name in the sandbox may be a link to anywhere, but rename(2) does not follow
 * links.
 *
 * Changes of attributes may be deferred: the agent keeps the newest value of each, and sends them after a
 * while, or when the program has ended.
 */
#include "agent/attempt/chirp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/attempt/live_output.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/outbox/outbox.h"
#include "agent/transfer/file_call.h"
#include "base/format/base64.h"
#include "base/format/json.h"
#include "base/format/json_read.h"
#include "base/share.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "ev/stream.h"
#include "run/sandbox_names.h"

#define PEERS_MAX      8u   /* peers of one attempt; one more for each node of a parallel job */
#define PEERS_ALL_MAX  512u /* shared by owners */
#define LINE_MAX_BYTES (FILE_CALL_DATA_MAX / 3 * 4 + (64u << 10)) /* base64, and the rest of the call */
#define ANSWER_MS      60000                                      /* time for the server's answer */
#define DELAY_MS       15000                                      /* delay before deferred changes are sent */
#define DELAYED_MAX    64u
#define DELAYED_BYTES  4096u /* bytes of a deferred value */
#define NAME_BYTES     128u
#define PACE_BURST     100  /* calls that are written down, in a row */
#define PACE_MS        100  /* interval of further changes */
#define ASK_BURST      1000 /* burst of calls to the server */
#define ASK_MS         5

struct peer {
        struct peer *next;
        struct chirp *of;
        struct stream *stream;
        struct buf *in;  /* input buffer of the stream; NULL: no input */
        uint64_t serial; /* serial of the call at the server; 0: none */
        int64_t until_ms;
        int op;    /* of the call at the server: see struct chirp_call */
        bool gone; /* to be freed by the caller of take_lines */
};
struct delayed {
        char *name, *text;
};
struct chirp {
        struct attempt *at;
        struct listener *listener;
        struct peer *peers;
        unsigned peer_count;
        struct delayed delayed[DELAYED_MAX];
        size_t delayed_count;
        int64_t send_ms;            /* boot clock: when they are sent */
        int64_t paced_ms, asked_ms; /* boot clock: the buckets of both are full at that time */
        struct chirp *next, **link;
};
struct chirps {
        struct chirp *first;
        struct idmap *asked; /* peers by serial */
        struct share *share; /* the owner's share of peers */
        uint64_t last;
};

void chirps_open(struct agent *a)
{
        a->chirps = mem_new(struct chirps);
        a->chirps->asked = idmap_new();
        a->chirps->share = share_new(PEERS_ALL_MAX);
}

void chirps_close(struct agent *a)
{
        if (!a->chirps)
                return;
        idmap_free(a->chirps->asked);
        share_free(a->chirps->share);
        free(a->chirps);
        a->chirps = NULL;
}

/* ---- peers */

static void peer_free(struct peer *p)
{
        struct chirp *c = p->of;
        struct agent *a = c->at->a;
        struct peer **link = &c->peers;

        while (*link != p)
                link = &(*link)->next;
        *link = p->next;
        c->peer_count--;
        share_give(a->chirps->share, str_of(c->at->t->m->owner));
        if (p->serial)
                idmap_take(a->chirps->asked, p->serial);
        stream_free(p->stream);
        free(p);
}

static void peer_end(struct peer *p, const char *why)
{
        log_info("msg=\"a program's call was ended\" %s why=\"%s\"",
                 expand_log(p->of->at, (char[LOG_NAME]){0}), why);
        p->gone = true;
}

static void write_line(struct peer *p, struct buf *line)
{
        buf_char(line, '\n');
        stream_write(p->stream, line->p, line->n);
}

/* Writes what a program on another node has printed since the last answer, and how it ended. */
static void write_end(struct json *j, const struct chirp_answer *said)
{
        BUF_CLEANUP struct buf data = {0};

        base64_encode(&data, said->stderr_bytes);
        json_kstr(j, "stderr", buf_view(&data));
        json_kbool(j, "over", said->over);
        if (said->over)
                json_kint(j, said->signaled ? "signal" : "exit_code", said->exit_code);
}

static void peer_answer(struct peer *p, const struct chirp_answer *said)
{
        BUF_CLEANUP struct buf line = {0}, data = {0};
        struct json j = {.out = &line};
        int op = p->op;

        p->op = CHIRP_NONE;
        json_open(&j, '{');
        if (said->error) {
                json_kint(&j, "error", said->error);
                json_kstrz(&j, "text", said->text);
        } else {
                base64_encode(&data, said->data);
                json_kstr(&j, "data", buf_view(&data));
                if (op == CHIRP_LAUNCH)
                        json_kint(&j, "command", (int64_t)(said->command & INT64_MAX));
                if (op == CHIRP_LAUNCHED)
                        write_end(&j, said);
                json_kint(&j, "size", (int64_t)(said->size & INT64_MAX));
                json_kint(&j, "mode", said->mode);
                json_kint(&j, "changed", said->changed);
        }
        json_close(&j, '}');
        write_line(p, &line);
}

static void refuse(struct peer *p, int error, const char *text)
{
        peer_answer(p, &(struct chirp_answer){.error = error, .text = text});
}

/* ---- to the server */

uint64_t chirp_write(const struct attempt *at, const char *name, struct str data, uint64_t offset)
{
        uint64_t serial = ++at->a->chirps->last;

        outbox_chirp(at, serial,
                     &(struct chirp_call){.op = FILE_WRITE,
                                          .name = name,
                                          .data = data,
                                          .offset = offset,
                                          .flags = offset ? FILE_CREATE : FILE_CREATE | FILE_EMPTY});
        return serial;
}

/* Token bucket: `burst` calls in a row, and one more after each `each_ms`. *full_ms is the time at which the
 * bucket is full again. */
static bool takes_pace(int64_t *full_ms, int64_t burst, int64_t each_ms)
{
        int64_t now = clock_boot_ms();

        if (*full_ms < now)
                *full_ms = now;
        if (*full_ms - now >= burst * each_ms)
                return false;
        *full_ms += each_ms;
        return true;
}

static void peer_ask(struct peer *p, const struct chirp_call *c)
{
        struct attempt *at = p->of->at;
        bool kept = c->op == CHIRP_SET_ATTRIBUTE || c->op == CHIRP_LOG;

        if (!at->a->greeted) {
                refuse(p, EAGAIN, "the agent has no connection with the server");
                return;
        }
        if (!takes_pace(&p->of->asked_ms, ASK_BURST, ASK_MS)) {
                refuse(p, EAGAIN, "the job calls too fast: two hundred a second, in the long run");
                return;
        }
        if (kept && !takes_pace(&p->of->paced_ms, PACE_BURST, PACE_MS)) {
                refuse(p, EAGAIN,
                       "the job sets attributes and writes lines too fast: ten a second, in the long run");
                return;
        }
        p->op = c->op;
        p->serial = ++at->a->chirps->last;
        p->until_ms = clock_boot_ms() + ANSWER_MS;
        idmap_put(at->a->chirps->asked, p->serial, p);
        outbox_chirp(at, p->serial, c);
}

/* ---- deferred changes */

static void delayed_send(struct chirp *c)
{
        for (size_t i = 0; i < c->delayed_count; i++) {
                struct delayed *d = &c->delayed[i];

                outbox_chirp(c->at, 0,
                             &(struct chirp_call){
                                     .op = CHIRP_SET_ATTRIBUTE, .name = d->name, .data = str_of(d->text)});
                free(d->name);
                free(d->text);
        }
        c->delayed_count = 0;
}

static struct delayed *delayed_find(struct chirp *c, const char *name)
{
        for (size_t i = 0; i < c->delayed_count; i++)
                if (!strcasecmp(c->delayed[i].name, name))
                        return &c->delayed[i];
        return NULL;
}

static void put_off(struct peer *p, const struct chirp_call *call)
{
        struct chirp *c = p->of;
        struct delayed *d = delayed_find(c, call->name);

        if (!*call->name || strlen(call->name) > NAME_BYTES || call->data.n > DELAYED_BYTES ||
            (!d && c->delayed_count == DELAYED_MAX)) {
                refuse(p, E2BIG, "too many attributes are put off, or this one is too long");
                return;
        }
        if (c->delayed_count == 0)
                c->send_ms = clock_boot_ms() + DELAY_MS;
        if (!d) {
                d = &c->delayed[c->delayed_count++];
                *d = (struct delayed){mem_dupz(call->name), NULL};
        }
        free(d->text);
        d->text = str_dupz(call->data);
        peer_answer(p, &(struct chirp_answer){0});
}

/* ---- the lines */

#define OP_LATER 100 /* answered here */
#define OP_OWNER 101

static const struct {
        const char *name;
        int op;
} ops[] = {
        {"get_attribute", CHIRP_GET_ATTRIBUTE},
        {"set_attribute", CHIRP_SET_ATTRIBUTE},
        {"set_attribute_later", OP_LATER},
        {"owner", OP_OWNER},
        {"log", CHIRP_LOG},
        {"launch", CHIRP_LAUNCH},
        {"launched", CHIRP_LAUNCHED},
        {"read", FILE_READ},
        {"write", FILE_WRITE},
        {"stat", FILE_STAT},
        {"list", FILE_LIST},
        {"remove", FILE_REMOVE},
        {"remove_folder", FILE_REMOVE_FOLDER},
        {"make_folder", FILE_MAKE_FOLDER},
        {"rename", FILE_RENAME},
        {"truncate", FILE_TRUNCATE},
        {"mode", FILE_MODE},
        {"time", FILE_TIME},
};

static int op_of(const char *name)
{
        for (size_t i = 0; name && i < sizeof(ops) / sizeof(ops[0]); i++)
                if (!strcmp(ops[i].name, name))
                        return ops[i].op;
        return 0;
}

/* Reads a number if present. Returns false if the value is not a number in range. */
static bool read_number(const json_t *o, const char *key, uint64_t most, uint64_t *ret)
{
        const json_t *v = json_object_get(o, key);

        *ret = v ? (uint64_t)json_integer_value(v) : 0;
        return !v || (json_is_integer(v) && json_integer_value(v) >= 0 && *ret <= most);
}

/* NULL, or why the call is none. The call borrows from the object and `data`. */
static const char *read_call(const json_t *o, struct chirp_call *ret, struct buf *data, int *ret_op)
{
        const json_t *bytes = json_object_get(o, "data");
        uint64_t length, flags, mode, node;

        *ret = (struct chirp_call){.name = json_string_value(json_object_get(o, "name"))};
        *ret_op = op_of(json_string_value(json_object_get(o, "op")));
        if (!*ret_op)
                return "there is no such operation";
        if (!ret->name)
                ret->name = "";
        if (!read_number(o, "offset", INT64_MAX, &ret->offset) ||
            !read_number(o, "length", FILE_CALL_DATA_MAX, &length) || !read_number(o, "flags", 15, &flags) ||
            !read_number(o, "mode", 0777, &mode) || !read_number(o, "node", UINT32_MAX, &node) ||
            !read_number(o, "command", INT64_MAX, &ret->command) ||
            !read_number(o, "stderr_offset", INT64_MAX, &ret->stderr_offset))
                return "a number is out of its range";
        if (bytes &&
            (!json_is_string(bytes) ||
             base64_decode(data, str_make(json_string_value(bytes), json_string_length(bytes))) < 0 ||
             data->n > FILE_CALL_DATA_MAX))
                return "data must be base64 of at most 256 KiB";
        ret->data = buf_view(data);
        ret->length = (uint32_t)length;
        ret->flags = (uint32_t)flags;
        ret->mode = (uint32_t)mode;
        ret->node = (uint32_t)node;
        return NULL;
}

static void take_line(struct peer *p, struct str line)
{
        BUF_CLEANUP struct buf data = {0};
        struct chirp_call call;
        int op;
        json_t *o = json_loadb(line.p, line.n, 0, NULL);
        const char *why = json_is_object(o) ? read_call(o, &call, &data, &op)
                                            : "a call is a line with one object of JSON";

        if (why) {
                refuse(p, EINVAL, why);
        } else if (op == OP_OWNER) {
                peer_answer(p, &(struct chirp_answer){.data = str_of(p->of->at->t->m->owner)});
        } else if (op == OP_LATER) {
                put_off(p, &call);
        } else {
                const struct delayed *d = delayed_find(p->of, call.name);

                call.op = op;
                if (op == CHIRP_GET_ATTRIBUTE && d)
                        peer_answer(p, &(struct chirp_answer){.data = str_of(d->text)});
                else
                        peer_ask(p, &call);
        }
        json_decref(o);
}

/* Handles lines until one has to wait: one call is at the server at a time. */
static void take_lines(struct peer *p, struct buf *in)
{
        while (!p->serial && !p->gone) {
                const char *end = in->n ? memchr(in->p, '\n', in->n) : NULL;

                if (!end) {
                        if (in->n >= LINE_MAX_BYTES)
                                peer_end(p, "its line is too long");
                        return;
                }
                size_t n = (size_t)(end - in->p);
                take_line(p, str_make(in->p, n));
                buf_consume(in, n + 1);
        }
}

static void on_data(void *arg, struct stream *s, struct buf *in)
{
        struct peer *p = arg;

        (void)s;
        p->in = in;
        take_lines(p, in);
        if (p->gone)
                peer_free(p);
}

static void on_closed(void *arg, struct stream *s, const struct err *why)
{
        (void)s;
        (void)why;
        peer_free(arg);
}

static void on_peer(void *arg, int fd)
{
        static const struct stream_ops stream_ops = {.data = on_data, .closed = on_closed};
        static const struct stream_limits limits = {.read_max = LINE_MAX_BYTES,
                                                    .write_max = 4 * LINE_MAX_BYTES};
        struct chirp *c = arg;
        struct agent *a = c->at->a;
        unsigned most = PEERS_MAX + (c->at->t->m->launches ? c->at->gang_size : 0);

        if (c->peer_count >= most || !share_take(a->chirps->share, str_of(c->at->t->m->owner))) {
                close(fd);
                return;
        }
        struct peer *p = mem_new(struct peer);
        p->of = c;
        p->next = c->peers;
        c->peers = p;
        c->peer_count++;
        p->stream = stream_accept(a->loop, fd, NULL, &limits, &stream_ops, p);
}

/* ---- answers */

static void peer_answered(struct peer *p, const struct chirp_answer *said)
{
        idmap_take(p->of->at->a->chirps->asked, p->serial);
        p->serial = 0;
        peer_answer(p, said);
        if (p->in)
                take_lines(p, p->in);
        if (p->gone)
                peer_free(p);
        else
                stream_resume(p->stream);
}

void chirp_answer(struct agent *a, uint64_t serial, const struct chirp_answer *said)
{
        struct peer *p = idmap_get(a->chirps->asked, serial);

        if (p)
                peer_answered(p, said);
        else
                live_output_answer(a, serial, said->error == 0);
}

/* ---- the socket */

static int make_socket(struct chirp *c, struct err *err)
{
        struct agent *a = c->at->a;
        char sandbox[64], address[64];

        sandbox_name(c->at, sandbox);
        snprintf(address, sizeof(address), "unix:/proc/self/fd/%d/chirp.tmp", a->dir);
        unlinkat(a->dir, "chirp.tmp", 0);
        int r = listener_new(a->loop, address, a->users_path ? 0666 : 0600, on_peer, c, &c->listener, err);
        if (r < 0)
                return r;
        int box = openat(a->jobs, sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (box < 0 || renameat(a->dir, "chirp.tmp", box, SANDBOX_CHIRP) < 0)
                r = err_set(err, -errno, "it cannot be put into the sandbox: %s", strerror(errno));
        if (box >= 0)
                close(box);
        return r;
}

void chirp_open(struct attempt *at)
{
        struct agent *a = at->a;
        struct err err = {""};

        if ((!at->t->m->chirps && !at->t->m->launches) || at->chirp || !queue_is_local(at->q))
                return;
        struct chirp *c = mem_new(struct chirp);
        c->at = at;
        if (make_socket(c, &err) < 0) {
                log_warn("msg=\"a job has no socket for its calls\" %s error=\"%s\"",
                         expand_log(at, (char[LOG_NAME]){0}), LOG_TEXT(str_of(err.text)));
                listener_free(c->listener);
                free(c);
                return;
        }
        at->chirp = c;
        c->next = a->chirps->first;
        c->link = &a->chirps->first;
        if (c->next)
                c->next->link = &c->next;
        a->chirps->first = c;
}

void chirp_close(struct attempt *at)
{
        struct chirp *c = at->chirp;

        if (!c)
                return;
        delayed_send(c);
        while (c->peers)
                peer_free(c->peers);
        listener_free(c->listener);
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        free(c);
        at->chirp = NULL;
}

void chirp_tick(struct agent *a)
{
        static const struct chirp_answer late = {.error = ETIMEDOUT, .text = "the server has no answer"};
        int64_t now = clock_boot_ms();

        for (struct chirp *c = a->chirps->first; c; c = c->next) {
                if (c->delayed_count && now >= c->send_ms && a->greeted)
                        delayed_send(c);
                for (struct peer *p = c->peers, *next; p; p = next) {
                        next = p->next;
                        if (p->serial && now >= p->until_ms)
                                peer_answered(p, &late);
                }
        }
}

void chirp_session_lost(struct agent *a)
{
        static const char why[] = "the connection with the server was lost meanwhile";
        size_t at = 0;
        uint64_t serial;
        void *p;

        while (idmap_next(a->chirps->asked, &at, &serial, &p)) {
                /* a program may have been started, and must not be twice */
                bool launch = ((struct peer *)p)->op == CHIRP_LAUNCH;

                peer_answered(p,
                              &(struct chirp_answer){.error = launch ? ECONNABORTED : EAGAIN, .text = why});
                at = 0;
        }
}
