/* Objects of the server's spool: inputs that were shipped with a submit, kept in STATE/cache by their SHA-256
 * and copied into each sandbox; and outputs of jobs whose submitter's folders are not ours, sent in chunks,
 * one file at a time. Both go on where they stopped when a session was lost. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/shipped.h"
#include "base/fs.h"
#include "base/log.h"

#define CHUNK (512u << 10)

struct waiter {
        struct waiter *next;
        struct attempt *at;
};
struct fetch {
        struct fetch *next;
        unsigned char sha256[32];
        uint64_t request, offset;
        int fd;
        EVP_MD_CTX *md;
        struct waiter *waiters;
};
struct upload {
        struct upload *next;
        struct attempt *at; /* NULL: not wanted any more */
        char **paths;
        int data; /* all contents, one after the other; -1: they are in the sandbox */
        size_t index;
        uint64_t offset;
        int fd;
};
struct fetches {
        int dir;
        char *path;
        uint64_t bytes; /* in the cache, about */
        struct fetch *first;
        struct upload *uploads, **last;
        bool asked; /* a chunk of the first upload is under way */
};

static void hex(const unsigned char sha256[32], char room[65])
{
        for (int i = 0; i < 32; i++)
                snprintf(room + 2 * i, 3, "%02x", sha256[i]);
}

void spool_path(const struct agent *a, const unsigned char sha256[32], struct buf *ret)
{
        char name[65];
        hex(sha256, name);
        buf_printf(ret, "%s/%s", a->fetches->path, name);
}

void spool_open(struct agent *a)
{
        struct fetches *f = a->fetches = mem_new(struct fetches);
        f->last = &f->uploads;
        if (mkdirat(a->dir, "cache", 0700) < 0 && errno != EEXIST)
                log_warn("msg=\"cannot make the cache\" error=\"%s\"", strerror(errno));
        f->dir = openat(a->dir, "cache", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct buf b = {0};
        buf_printf(&b, "%s/cache", a->config.dir);
        f->path = buf_take(&b);
        f->bytes = fs_tree_bytes(a->dir, "cache", 0);
}

static void fetch_free(struct fetch *f)
{
        while (f->waiters) {
                struct waiter *w = f->waiters;
                f->waiters = w->next;
                free(w);
        }
        if (f->fd >= 0)
                close(f->fd);
        EVP_MD_CTX_free(f->md);
        free(f);
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
        struct fetches *f = a->fetches;
        if (!f)
                return;
        while (f->first) {
                struct fetch *x = f->first;
                f->first = x->next;
                fetch_free(x);
        }
        while (f->uploads) {
                struct upload *u = f->uploads;
                f->uploads = u->next;
                upload_free(u);
        }
        if (f->dir >= 0)
                close(f->dir);
        free(f->path);
        free(f);
        a->fetches = NULL;
}

/* ---- fetching */

static void ask(struct agent *a, struct fetch *f)
{
        if (!a->greeted)
                return;
        Drover__SpoolRead m = DROVER__SPOOL_READ__INIT;
        m.request = f->request;
        m.sha256.data = f->sha256;
        m.sha256.len = 32;
        m.offset = f->offset;
        m.length = CHUNK;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_SPOOL_READ;
        to.spool_read = &m;
        connect_send(a, &to);
}

static struct fetch *fetch_find(struct agent *a, const unsigned char sha256[32])
{
        struct fetch *f = a->fetches->first;
        while (f && memcmp(f->sha256, sha256, 32) != 0)
                f = f->next;
        return f;
}

static void part_name(const unsigned char sha256[32], char room[80])
{
        hex(sha256, room);
        memcpy(room + 64, ".part", 6);
}

static struct fetch *fetch_new(struct agent *a, uint64_t request, const unsigned char sha256[32])
{
        struct fetch *f = mem_new(struct fetch);
        char part[80];
        memcpy(f->sha256, sha256, 32);
        f->request = request;
        part_name(sha256, part);
        f->fd = openat(a->fetches->dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        f->md = EVP_MD_CTX_new();
        EVP_DigestInit_ex(f->md, EVP_sha256(), NULL);
        f->next = a->fetches->first;
        a->fetches->first = f;
        ask(a, f);
        return f;
}

bool spool_want(struct attempt *at)
{
        struct agent *a = at->a;
        const Drover__Template *m = at->t->m;
        bool all = true;
        struct shipped shipped;
        shipped_read(at, &shipped);
        for (size_t i = 0; i < m->n_spooled; i++) {
                const Drover__SpoolRef *ref = m->spooled[i];
                if (ref->sha256.len != 32 || !shipped_name_valid(ref->name))
                        continue; /* move_in will say what is wrong */
                if (!shipped_wants(&shipped, ref->name))
                        continue;
                char name[65];
                hex(ref->sha256.data, name);
                if (faccessat(a->fetches->dir, name, R_OK, 0) == 0)
                        continue;
                struct fetch *f = fetch_find(a, ref->sha256.data);
                if (!f)
                        f = fetch_new(a, at->request, ref->sha256.data);
                struct waiter *w = mem_new(struct waiter);
                w->at = at;
                w->next = f->waiters;
                f->waiters = w;
                all = false;
        }
        shipped_deinit(&shipped);
        return all;
}

/* The oldest go when the cache is too large; what a job needs again is fetched again. */
static void make_room(struct agent *a)
{
        struct fetches *f = a->fetches;
        while (f->bytes > a->config.cache_bytes) {
                int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                DIR *dir = fd < 0 ? NULL : fdopendir(fd);
                struct dirent *e;
                char oldest[256] = "";
                struct stat st, best = {0};
                while (dir && (e = readdir(dir)))
                        if (e->d_name[0] != '.' && !strchr(e->d_name, '.') &&
                            fstatat(f->dir, e->d_name, &st, 0) == 0 &&
                            (!*oldest || st.st_mtim.tv_sec < best.st_mtim.tv_sec)) {
                                best = st;
                                snprintf(oldest, sizeof(oldest), "%s", e->d_name);
                        }
                if (dir)
                        closedir(dir);
                if (!*oldest || unlinkat(f->dir, oldest, 0) < 0)
                        break;
                uint64_t bytes = (uint64_t)best.st_blocks * 512;
                f->bytes -= bytes < f->bytes ? bytes : f->bytes;
        }
}

static void fetch_end(struct agent *a, struct fetch *f, const char *error)
{
        struct fetch **link = &a->fetches->first;
        while (*link != f)
                link = &(*link)->next;
        *link = f->next;
        struct waiter *waiters = f->waiters;
        f->waiters = NULL;
        char part[80], name[65];
        part_name(f->sha256, part);
        hex(f->sha256, name);
        unsigned char got[32];
        EVP_DigestFinal_ex(f->md, got, NULL);
        if (!error && memcmp(got, f->sha256, 32) != 0)
                error = "an input from the spool does not have the checksum it should have";
        if (!error && renameat(a->fetches->dir, part, a->fetches->dir, name) < 0)
                error = "cannot keep an input from the spool";
        if (error)
                unlinkat(a->fetches->dir, part, 0);
        else
                a->fetches->bytes += f->offset;
        make_room(a);
        fetch_free(f);
        while (waiters) {
                struct waiter *w = waiters;
                waiters = w->next;
                struct attempt *at = w->at;
                free(w);
                if (!at)
                        continue;
                for (struct waiter *other = waiters; other; other = other->next)
                        if (other->at == at)
                                other->at = NULL;
                if (error)
                        attempt_staged(at, HOLD_INPUT, error);
                else
                        stage_in(at);
        }
}

void spool_data(struct agent *a, const Drover__SpoolData *m)
{
        struct fetch *f = m->sha256.len == 32 ? fetch_find(a, m->sha256.data) : NULL;
        if (!f || (!*m->error && m->offset != f->offset))
                return;
        if (*m->error) {
                fetch_end(a, f, m->error);
                return;
        }
        int r = f->fd < 0 ? -EIO : fs_write_all(f->fd, m->data.data, m->data.len);
        if (r < 0) {
                fetch_end(a, f, "cannot write an input from the spool into the cache");
                return;
        }
        EVP_DigestUpdate(f->md, m->data.data, m->data.len);
        f->offset += m->data.len;
        if (f->offset >= m->size || m->data.len == 0)
                fetch_end(a, f, NULL);
        else
                ask(a, f);
}

void spool_forget(struct attempt *at)
{
        if (!at->a->fetches)
                return;
        for (struct fetch *f = at->a->fetches->first; f; f = f->next)
                for (struct waiter **w = &f->waiters; *w;) {
                        if ((*w)->at != at) {
                                w = &(*w)->next;
                                continue;
                        }
                        struct waiter *gone = *w;
                        *w = gone->next;
                        free(gone);
                }
        for (struct upload *u = at->a->fetches->uploads; u; u = u->next)
                if (u->at == at)
                        u->at = NULL;
}

/* ---- sending */

static void upload_next(struct agent *a);

static void upload_done(struct agent *a, const char *error)
{
        struct fetches *f = a->fetches;
        struct upload *u = f->uploads;
        struct attempt *at = u->at;
        if (!(f->uploads = u->next))
                f->last = &f->uploads;
        f->asked = false;
        u->at = NULL;
        upload_free(u);
        if (at)
                attempt_delivered(at, error ? HOLD_OUTPUT : 0, error);
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
        struct fetches *f = a->fetches;
        while (f->uploads && !f->uploads->at) {
                struct upload *u = f->uploads;
                if (!(f->uploads = u->next))
                        f->last = &f->uploads;
                upload_free(u);
                f->asked = false;
        }
        struct upload *u = f->uploads;
        if (!u || f->asked || !a->greeted)
                return;
        if (u->index >= u->at->output_count) {
                upload_done(a, NULL);
                return;
        }
        if (u->fd < 0 && upload_open(a, u) < 0) {
                upload_done(a, "an output went away while it was sent");
                return;
        }
        struct output_ref *o = &u->at->outputs[u->index];
        MEM_CLEANUP char *room = mem_alloc(CHUNK);
        size_t want = o->size - u->offset < CHUNK ? (size_t)(o->size - u->offset) : CHUNK;
        ssize_t n = want ? pread(u->fd, room, want, (off_t)(o->at + u->offset)) : 0;
        if (n < 0 || (want && n == 0)) {
                upload_done(a, "an output cannot be read");
                return;
        }
        Drover__SpoolWrite m = DROVER__SPOOL_WRITE__INIT;
        m.request = u->at->request;
        m.member = u->at->member;
        m.fence = u->at->fence;
        m.sha256.data = o->sha256;
        m.sha256.len = 32;
        m.offset = u->offset;
        m.data.data = (uint8_t *)room;
        m.data.len = (size_t)n;
        m.last = u->offset + (uint64_t)n >= o->size;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_SPOOL_WRITE;
        to.spool_write = &m;
        f->asked = true;
        connect_send(a, &to);
}

void spool_upload(struct attempt *at, char **paths, int data)
{
        struct fetches *f = at->a->fetches;
        struct upload *u = mem_new(struct upload);
        u->at = at;
        u->paths = paths;
        u->data = data;
        paths[at->output_count] = NULL;
        u->fd = -1;
        *f->last = u;
        f->last = &u->next;
        upload_next(at->a);
}

void spool_stored(struct agent *a, const Drover__SpoolStored *m)
{
        struct fetches *f = a->fetches;
        struct upload *u = f->uploads;
        if (!u || !f->asked)
                return;
        f->asked = false;
        if (!u->at) {
                upload_next(a);
                return;
        }
        if (m->sha256.len != 32 || memcmp(m->sha256.data, u->at->outputs[u->index].sha256, 32) != 0)
                return;
        if (*m->error) {
                upload_done(a, m->error);
                return;
        }
        u->offset = m->stored;
        if (m->complete) {
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
        a->fetches->asked = false;
        if (a->fetches->uploads)
                a->fetches->uploads->offset = 0; /* the server's part is gone with the session */
}

void spool_session_ready(struct agent *a)
{
        for (struct fetch *f = a->fetches->first; f; f = f->next)
                ask(a, f);
        upload_next(a);
}
