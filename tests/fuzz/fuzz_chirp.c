/* What the programs of a job say at its socket, as far as the message to the server, with the server's
 * answers, lost sessions and peers that go in between. Streams, the listener and the outbox are replaced;
 * they check what reaches them: each line of a peer gets one answer, which is a line with one object, and no
 * more than one call of a peer is at the server.
 *
 * An input that begins with 'r' is a row of records "kind, two bytes of length, contents", so that changes to
 * one leave the others whole; any other input is what one peer says. The first byte of a record's contents is
 * the number of its peer. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attempt/chirp.h"
#include "agent/attempt/live_output.h"
#include "agent/model/sandbox.h"
#include "agent/outbox/outbox.h"
#include "agent/transfer/file_call.h"
#include "base/format/json_read.h"
#include "base/system/log.h"
#include "ev/stream.h"
#include "run/sandbox_names.h"

#define PEERS 4
#define ASKED 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(x)                                                                                             \
        do {                                                                                                 \
                if (!(x)) {                                                                                  \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                      \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

/* ---- in the place of ev, of the outbox and of other parts of the agent */

struct stream {
        const struct stream_ops *ops;
        void *arg;
        struct stream_limits limits;
        struct buf in;
        size_t lines, answers, waiting;
};

static struct job_template job = {.owner = (char *)"ann@here", .chirps = true, .launches = true};
static struct held_template template = {.m = &job};
static struct agent agent;
static struct attempt attempt = {.a = &agent, .t = &template, .request = 7, .member = 8, .fence = 9};
static struct stream *streams[PEERS];
static listener_fn *accepts;
static void *accepts_arg;
static uint64_t asked[ASKED]; /* serials of calls that the server has not answered; 0: none */
static size_t asked_next;

struct stream *stream_accept(struct loop *l, int fd, struct tls_context *tls,
                             const struct stream_limits *limits, const struct stream_ops *ops, void *arg)
{
        struct stream *s = mem_new(struct stream);

        (void)l, (void)tls;
        check(fd >= 0 && fd < PEERS && !streams[fd] && ops->data && ops->closed);
        *s = (struct stream){.ops = ops, .arg = arg, .limits = *limits};
        streams[fd] = s;
        return s;
}

void stream_free(struct stream *s)
{
        for (int i = 0; i < PEERS; i++)
                if (streams[i] == s)
                        streams[i] = NULL;
        buf_deinit(&s->in);
        free(s);
}

void stream_resume(struct stream *s)
{
        (void)s;
}

void stream_write(struct stream *s, const void *p, size_t n)
{
        const char *line = p;

        check(n >= 3 && n <= s->limits.write_max && line[n - 1] == '\n' && !memchr(line, '\n', n - 1));
        json_t *o = json_loadb(line, n - 1, 0, NULL);
        check(json_is_object(o));
        json_t *error = json_object_get(o, "error");
        check(error ? json_integer_value(error) > 0 && json_is_string(json_object_get(o, "text"))
                    : json_is_string(json_object_get(o, "data")) &&
                              json_integer_value(json_object_get(o, "size")) >= 0);
        json_decref(o);
        s->answers++;
}

int listener_new(struct loop *l, const char *address, mode_t mode, listener_fn *fn, void *arg,
                 struct listener **ret, struct err *err)
{
        (void)l, (void)err;
        check(address && (mode & 0111) == 0);
        accepts = fn;
        accepts_arg = arg;
        *ret = NULL;
        int fd = openat(agent.dir, "chirp.tmp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        check(fd >= 0);
        close(fd);
        return 0;
}

void listener_free(struct listener *l)
{
        (void)l;
        accepts = NULL;
}

void outbox_chirp(const struct attempt *at, uint64_t serial, const struct chirp_call *c)
{
        check(at == &attempt && c->name);
        check((c->op > CHIRP_NONE && c->op <= CHIRP_LAUNCHED) || (c->op >= FILE_READ && c->op < FILE_OPS));
        check(c->data.n <= FILE_CALL_DATA_MAX && c->length <= FILE_CALL_DATA_MAX && c->offset <= INT64_MAX);
        check(c->flags <= 15 && c->mode <= 0777);
        if (!serial) {
                check(c->op == CHIRP_SET_ATTRIBUTE && *c->name);
                return;
        }
        check(agent.greeted);
        asked[asked_next++ % ASKED] = serial; /* that of a peer that has gone may be overwritten */
}

const char *expand_log(const struct attempt *at, char *room)
{
        (void)at;
        *room = 0;
        return room;
}

void live_output_answer(struct agent *a, uint64_t serial, bool ok)
{
        (void)a, (void)serial, (void)ok; /* answers of calls whose peers have gone */
}

void sandbox_name(const struct attempt *at, char room[64])
{
        (void)at;
        memcpy(room, "sandbox", sizeof("sandbox"));
}

bool queue_is_local(const struct queue *q)
{
        (void)q;
        return true;
}

/* ---- what happens */

static struct str bytes(const uint8_t *data, size_t size)
{
        return str_make((const char *)data, size);
}

static void peer_says(int i, const uint8_t *data, size_t size)
{
        struct stream *s = streams[i];

        if (!s && accepts)
                accepts(accepts_arg, i);
        s = streams[i];
        if (!s || s->in.n >= s->limits.read_max) /* the kernel keeps what is beyond it */
                return;
        size = size < s->limits.read_max - s->in.n ? size : s->limits.read_max - s->in.n;
        for (size_t k = 0; k < size; k++)
                s->lines += data[k] == '\n';
        buf_add(&s->in, data, size);
        s->ops->data(s->arg, s, &s->in);
}

/* What the server answers is passed on; the number of the answer's error is never 0 by then. */
static void server_says(size_t i, const uint8_t *data, size_t size)
{
        struct chirp_answer said = {.data = bytes(data, size),
                                    .size = UINT64_MAX,
                                    .mode = 0644,
                                    .changed = INT64_MIN,
                                    .stderr_bytes = bytes(data, size),
                                    .over = size % 2,
                                    .signaled = size % 4 == 1,
                                    .exit_code = INT32_MIN,
                                    .command = UINT64_MAX};
        uint64_t serial = asked[i];

        if (size && data[0] < 128)
                said = (struct chirp_answer){.error = 1 + data[0], .text = "no"};
        asked[i] = 0;
        chirp_answer(&agent, serial, &said);
}

static void session_lost(void)
{
        agent.greeted = false;
        memset(asked, 0, sizeof(asked));
        chirp_session_lost(&agent);
}

static void take_record(uint8_t kind, const uint8_t *data, size_t size)
{
        int i = size ? data[0] % PEERS : 0;

        switch (kind) {
        case 'd': peer_says(i, data + (size > 0), size - (size > 0)); return;
        case 'w': /* a line that does not end */
                for (int k = 0; k < 8; k++) {
                        static const uint8_t much[65536] = {[0] = '{'};

                        peer_says(i, much, sizeof(much));
                }
                return;
        case 'a': server_says(size ? data[0] % ASKED : 0, data + (size > 0), size - (size > 0)); return;
        case 'c':
                if (streams[i])
                        streams[i]->ops->closed(streams[i]->arg, streams[i], &(struct err){""});
                return;
        case 't': chirp_tick(&agent); return;
        case 'g': agent.greeted = true; return;
        case 'l': session_lost(); return;
        case 'o': /* writes of live output have serials, too */
                if (agent.greeted)
                        chirp_write(&attempt, "out", bytes(data, size), size);
                return;
        default: chirp_close(&attempt); chirp_open(&attempt);
        }
}

static char folder[64];

static void finish(void)
{
        unlinkat(agent.jobs, "sandbox/" SANDBOX_CHIRP, 0);
        unlinkat(agent.jobs, "sandbox", AT_REMOVEDIR);
        rmdir(folder);
}

static void begin(void)
{
        log_init("fuzz", LOG_ERROR);
        snprintf(folder, sizeof(folder), "/tmp/fuzz-chirp-%d", (int)getpid());
        check(mkdir(folder, 0700) == 0);
        agent.dir = agent.jobs = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check(agent.dir >= 0 && mkdirat(agent.jobs, "sandbox", 0700) == 0);
        atexit(finish);
}

/* Each peer that is still there has had one answer to each of its lines. */
static void all_answered(void)
{
        bool more = true;

        while (more) {
                more = false;
                for (size_t i = 0; i < ASKED; i++)
                        if (asked[i]) {
                                more = true;
                                server_says(i, (const uint8_t *)"\377", 1);
                        }
        }
        for (int i = 0; i < PEERS; i++)
                check(!streams[i] || streams[i]->answers == streams[i]->lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static bool begun;

        if (!begun)
                begin();
        begun = agent.greeted = true;
        chirps_open(&agent);
        chirp_open(&attempt);
        check(attempt.chirp && accepts);
        if (size == 0 || data[0] != 'r')
                peer_says(0, data, size);
        for (size_t at = 1; size && data[0] == 'r' && at + 3 <= size;) {
                size_t n = (size_t)(data[at + 1] << 8 | data[at + 2]);

                n = n < size - at - 3 ? n : size - at - 3;
                take_record(data[at], data + at + 3, n);
                at += 3 + n;
        }
        all_answered();
        chirp_close(&attempt);
        for (int i = 0; i < PEERS; i++)
                check(!streams[i]);
        chirps_close(&agent);
        memset(asked, 0, sizeof(asked));
        return 0;
}
