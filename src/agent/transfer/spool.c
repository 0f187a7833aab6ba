/* Transfers objects of the server's spool in chunks: shipped inputs into the cache; outputs of jobs whose
 * submit folders are not accessible here to the server, one file at a time. Both continue where they stopped
 * when a session was lost. */
#include "agent/transfer/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/model/sandbox.h"
#include "agent/outbox/outbox.h"
#include "agent/transfer/fetch.h"
#include "agent/transfer/stores.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"

#define CHUNK    (512u << 10)
#define AGAIN_MS 1000

struct upload {
        struct upload *next;
        struct attempt *at; /* NULL: not wanted any more */
        char **paths;
        int data; /* file with all contents, one after the other; -1: they */
        size_t index;
        uint64_t offset;
        int fd;
};
struct spool {
        struct upload *uploads, **last;
        bool asked; /* a chunk of the first upload is under way */
        bool full;  /* the server had no room for the last one */
        struct timer *again;
};

static void upload_next(struct agent *a);

static void on_again(void *agent)
{
        upload_next(agent);
}

void spool_open(struct agent *a)
{
        a->spool = mem_new(struct spool);
        a->spool->again = timer_new(a->loop, on_again, a);
        a->spool->last = &a->spool->uploads;
}

static void upload_free(struct upload *u)
{
        for (size_t i = 0; u->paths[i]; i++)
                free(u->paths[i]);
        free(u->paths);
        if (u->fd >= 0)
                close(u->fd);
        if (u->data >= 0)
                close(u->data);
        free(u);
}

void spool_close(struct agent *a)
{
        struct spool *p = a->spool;

        if (!p)
                return;
        while (p->uploads) {
                struct upload *u = p->uploads;

                p->uploads = u->next;
                upload_free(u);
        }
        timer_free(p->again);
        free(p);
        a->spool = NULL;
}

/* ---- fetching */

static void ask_for_piece(struct agent *a, struct fetch *f)
{
        if (a->greeted)
                outbox_spool_read(a, f->request, f->sha256, f->offset, CHUNK);
}

void spool_fetch(struct agent *a, struct fetch *f)
{
        f->fd = cache_begin(a->cache, f->part);
        f->sum = EVP_MD_CTX_new();
        EVP_DigestInit_ex(f->sum, EVP_sha256(), NULL);
        f->began_ns = clock_mono_ns();
        ask_for_piece(a, f);
}

/* error: an errno, with why. */
static void end_fetch(struct agent *a, struct fetch *f, int error, const char *why)
{
        struct cached *e = NULL;
        unsigned char got[32];

        if (!why && (EVP_DigestFinal_ex(f->sum, got, NULL) != 1 || memcmp(got, f->sha256, 32) != 0))
                why = "an input from the spool does not have the checksum it should have";
        int r = why ? 0 : cache_keep(a->cache, f->part, f->sha256, f->offset, clock_wall_ms(), &e);
        if (r < 0) {
                error = -r;
                why = "cannot keep an input from the spool";
        }
        if (!why)
                f->part[0] = 0;
        if (!why)
                stores_measured(a, STORE_SPOOL, PROBE_IN, f->offset,
                                (uint64_t)(clock_mono_ns() - f->began_ns) / 1000);
        fetch_end(f, e, error, why);
}

void spool_data(struct agent *a, const struct spool_piece *p)
{
        struct fetch *f = p->sha256 ? fetch_find_shipped(a, p->sha256) : NULL;

        if (!f || !f->sum || (!*p->error && p->offset != f->offset))
                return;
        /* the error concerns one request, which may be over; other waiters are asked instead */
        if (*p->error) {
                if (fetch_for_another(f))
                        ask_for_piece(a, f);
                else
                        end_fetch(a, f, EIO, p->error);
                return;
        }
        f->refused = 0;
        int r = f->fd < 0 ? f->fd : fs_write_all(f->fd, p->data.p, p->data.n);
        if (r < 0) {
                BUF_CLEANUP struct buf why = {0};

                buf_printf(&why, "cannot write an input from the spool into the cache: %s", strerror(-r));
                end_fetch(a, f, -r, buf_z(&why));
                return;
        }
        EVP_DigestUpdate(f->sum, p->data.p, p->data.n);
        f->offset += p->data.n;
        if (f->offset >= p->object_size || p->data.n == 0)
                end_fetch(a, f, EIO, NULL);
        else
                ask_for_piece(a, f);
}

void spool_forget(struct attempt *at)
{
        for (struct upload *u = at->a->spool ? at->a->spool->uploads : NULL; u; u = u->next)
                if (u->at == at)
                        u->at = NULL;
}

/* ---- sending */

static void upload_done(struct agent *a, const char *error)
{
        struct spool *f = a->spool;
        struct upload *u = f->uploads;
        struct attempt *at = u->at;

        if (!(f->uploads = u->next))
                f->last = &f->uploads;
        f->asked = false;
        u->at = NULL;
        upload_free(u);
        if (at)
                at->a->news->delivered(at, error ? HOLD_OUTPUT : 0, error);
        upload_next(a);
}

static int upload_open(struct agent *a, struct upload *u)
{
        char name[64];

        if (u->data >= 0)
                return u->fd = fcntl(u->data, F_DUPFD_CLOEXEC, 3);
        sandbox_name(u->at, name);
        int sandbox = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        u->fd = sandbox < 0
                        ? -1
                        : fs_open_beneath(sandbox, u->paths[u->index], O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (sandbox >= 0)
                close(sandbox);
        return u->fd;
}

static void upload_next(struct agent *a)
{
        struct spool *f = a->spool;

        if (f->asked) /* also for a cancelled upload: its answer must not be taken for another's */
                return;
        while (f->uploads && !f->uploads->at) {
                struct upload *u = f->uploads;

                if (!(f->uploads = u->next))
                        f->last = &f->uploads;
                upload_free(u);
        }
        struct upload *u = f->uploads;
        if (!u || !a->greeted)
                return;
        if (u->index >= u->at->result.output_count) {
                upload_done(a, NULL);
                return;
        }
        if (u->fd < 0 && upload_open(a, u) < 0) {
                upload_done(a, "an output went away while it was sent");
                return;
        }
        struct output_ref *o = &u->at->result.outputs[u->index];
        MEM_CLEANUP char *room = mem_alloc(CHUNK);
        size_t want = o->size - u->offset < CHUNK ? (size_t)(o->size - u->offset) : CHUNK;
        ssize_t n = want ? pread(u->fd, room, want, (off_t)(o->at + u->offset)) : 0;
        if (n < 0 || (want && n == 0)) {
                upload_done(a, "an output cannot be read");
                return;
        }
        f->asked = true;
        outbox_spool_write(u->at, o->sha256, u->offset, str_make(room, (size_t)n),
                           u->offset + (uint64_t)n >= o->size);
}

void spool_upload(struct attempt *at, char **paths, int data)
{
        struct spool *f = at->a->spool;
        struct upload *u = mem_new(struct upload);

        u->at = at;
        u->paths = paths;
        u->data = data;
        paths[at->result.output_count] = NULL;
        u->fd = -1;
        *f->last = u;
        f->last = &u->next;
        upload_next(at->a);
}

void spool_stored(struct agent *a, const unsigned char *sha256, uint64_t stored, bool complete, bool full,
                  const char *error)
{
        struct spool *f = a->spool;
        struct upload *u = f->uploads;

        if (!u || !f->asked)
                return;
        f->asked = false;
        if (!u->at) {
                upload_next(a);
                return;
        }
        if (!sha256 || memcmp(sha256, u->at->result.outputs[u->index].sha256, 32) != 0)
                return;
        if (*error && !full) {
                upload_done(a, error);
                return;
        }
        u->offset = stored;
        if (full != f->full)
                log_warn("msg=\"%s\"", full ? "the server's disk is full: what jobs made waits here for room"
                                            : "the server has room again for what jobs made");
        f->full = full;
        if (full) {
                timer_start(f->again, AGAIN_MS);
                return;
        }
        if (complete) {
                u->index++;
                u->offset = 0;
                close(u->fd);
                u->fd = -1;
        }
        upload_next(a);
}

/* ---- sessions */

void spool_session_lost(struct agent *a)
{
        a->spool->asked = false;
        if (a->spool->uploads)
                a->spool->uploads->offset = 0; /* the server's part is gone with the session */
}

void spool_session_ready(struct agent *a)
{
        for (struct fetch *f = fetch_first(a); f; f = f->next)
                if (f->shipped && f->sum)
                        ask_for_piece(a, f);
        upload_next(a);
}
