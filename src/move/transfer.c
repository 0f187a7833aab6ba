/* Does a task, attempt by attempt. Received bytes are summed as they are written, so a file that came in two
 * pieces is verified as one; a piece is continued only if the store has identified the version that it
 * belongs to. The first error is reported, because later ones often follow from it. */
#include <errno.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "move/mover.h"

#define TRIES        5
#define RETRY_MS     1000
#define LATER_MS     60000
#define ROOM         (1u << 17)
#define ALIVE_MS     500
#define COPY_ROOM    (1u << 20)
#define SYNC_ALONE   (1u << 20) /* a smaller file is written to the disk without another process */
#define SYNC_STEP_MS 100
#define ROOM_STEP    (4u << 20) /* bytes after which free disk space is checked: a body may have no end */

static const struct mover_kind *const kinds[] = {&mover_exec, &mover_curl};

struct str mover_scheme(struct str url)
{
        ptrdiff_t at = str_search(url, STR("://"));

        return at > 0 ? str_head(url, (size_t)at) : STR_NONE;
}

void mover_config_deinit(struct mover_config *c)
{
        for (size_t i = 0; i < c->exec_count; i++) {
                free(c->execs[i].scheme);
                free(c->execs[i].program);
        }
        for (size_t i = 0; i < c->tuning_count; i++)
                free(c->tunings[i].prefix);
        free(c->tunings);
        free(c->execs);
        free(c->ca_file);
        free(c->known_hosts);
        hidden_free(c->hidden);
        *c = (struct mover_config){0};
}

bool mover_config_exec(struct mover_config *c, const char *text)
{
        struct str program = str_of(text), scheme;

        if (!str_cut(&program, '=', &scheme) || !scheme.n || !program.n || program.p[0] != '/')
                return false;
        MEM_GROW(c->execs, c->exec_cap, c->exec_count + 1);
        c->execs[c->exec_count++] = (struct mover_exec){str_dupz(scheme), str_dupz(program)};
        return true;
}

bool mover_config_tune(struct mover_config *c, const char *text)
{
        struct tuning t;

        if (!tuning_parse(str_of(text), &t))
                return false;
        MEM_GROW(c->tunings, c->tuning_cap, c->tuning_count + 1);
        c->tunings[c->tuning_count++] = t;
        return true;
}

/* ---- functions for back ends */

int transfer_restart(struct transfer *t)
{
        int r = t->config->flow && t->done ? flow_restart(t->config->flow) : 0;

        if (r < 0)
                return r;
        if (t->config->sums)
                sums_restart(t->config->sums);
        t->done = 0;
        EVP_DigestInit_ex(t->sum, EVP_sha256(), NULL);
        return ftruncate(t->fd, 0) < 0 || lseek(t->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* Records n more bytes of the file. */
static int have(struct transfer *t, const void *p, size_t n)
{
        EVP_DigestUpdate(t->sum, p, n);
        if (t->config->sums)
                sums_add(t->config->sums, p, n);
        t->done += n;
        return t->config->flow
                       ? flow_wrote(t->config->flow, t->done, t->found.size, t->config->alive, t->config->arg)
                       : 0;
}

int transfer_write(struct transfer *t, const void *p, size_t n)
{
        if (t->done / ROOM_STEP != (t->done + n) / ROOM_STEP && !fs_has_room(t->fd, ROOM_STEP))
                return -ENOSPC;
        int r = fs_write_all(t->fd, p, n);
        if (r < 0)
                return r;
        t->moved += n;
        return have(t, p, n);
}

long transfer_read(struct transfer *t, uint64_t at, void *p, size_t n)
{
        uint64_t left = at < t->task->size ? t->task->size - at : 0;
        struct flow *flow = t->config->flow;
        ssize_t got;

        if (flow && left) {
                flow_sent(flow, at);
                got = flow_wait(flow, at, left < n ? left : n, t->config->alive, t->config->arg);
                if (got <= 0)
                        return got < 0 ? got : -ESTALE;
                n = (size_t)got;
        }
        do
                got = pread(t->fd, p, left < n ? (size_t)left : n, (off_t)(t->task->at + at));
        while (got < 0 && errno == EINTR);
        if (got == 0 && left > 0)
                return -ESTALE; /* the file has shrunk */
        return got < 0 ? -errno : got;
}

int transfer_take(struct transfer *t, uint64_t upto)
{
        MEM_CLEANUP char *room = t->done < upto ? mem_alloc(ROOM) : NULL;

        while (t->done < upto) {
                uint64_t left = upto - t->done;
                ssize_t n = pread(t->fd, room, left < ROOM ? (size_t)left : ROOM, (off_t)t->done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ESTALE;
                int r = have(t, room, (size_t)n);
                if (r < 0)
                        return r;
        }
        /* where transfer_write() goes on if the rest comes in another way */
        return lseek(t->fd, (off_t)t->done, SEEK_SET) < 0 ? -errno : 0;
}

int transfer_compare_copy(const struct transfer *t, const struct mover_pull *p, struct err *err)
{
        if (t->found.size != p->size)
                return err_set(err, MOVER_AGAIN, "the store has %llu bytes of %llu",
                               (unsigned long long)t->found.size, (unsigned long long)p->size);
        if (t->named.type == p->sum.type && strcmp(t->named.hex, p->sum.hex) != 0)
                return err_set(err, MOVER_AGAIN, "the copy's %s is %s, and that of the file %s",
                               sum_name(p->sum.type), t->named.hex, p->sum.hex);
        return 0;
}

int transfer_alive(struct transfer *t)
{
        int r = t->config->alive ? t->config->alive(t->config->arg) : 0;

        if (r == 0 && clock_mono_ns() / 1000000 > t->deadline_ms)
                return -ETIMEDOUT;
        return r;
}

static int sync_outcome(pid_t child, int status)
{
        return child < 0 || !WIFEXITED(status) ? -EIO : -WEXITSTATUS(status);
}

/* fsync() cannot be interrupted, so a process of its own calls it. */
int transfer_sync(struct transfer *t, int fd, uint64_t size)
{
        pid_t child = size < SYNC_ALONE ? -1 : fork();
        int r, status = 0;

        if (child < 0)
                return fsync(fd) < 0 ? -errno : 0;
        if (child == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(fsync(fd) < 0 ? errno : 0);
        }
        for (int step_ms = 1;; step_ms = step_ms < SYNC_STEP_MS ? step_ms * 2 : SYNC_STEP_MS) {
                pid_t ended = waitpid(child, &status, WNOHANG);

                if (ended != 0)
                        return sync_outcome(ended, status);
                r = transfer_alive(t);
                if (r < 0) {
                        kill(child, SIGKILL); /* it may end late: nobody waits for it */
                        return r;
                }
                poll(NULL, 0, step_ms);
        }
}

int transfer_look(struct transfer *t)
{
        MEM_CLEANUP char *room = mem_alloc(ROOM);
        bool part = t->task->op == MOVE_CHECK;
        uint64_t from = part ? t->task->at : 0, size = part ? t->task->size : MOVE_SIZE_ANY;

        t->done = 0;
        EVP_DigestInit_ex(t->sum, EVP_sha256(), NULL);
        if (t->config->sums)
                sums_restart(t->config->sums);
        for (;;) {
                uint64_t left = size - t->done;
                ssize_t n = pread(t->fd, room, left < ROOM ? (size_t)left : ROOM, (off_t)(from + t->done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                int r = have(t, room, (size_t)n);
                if (r == 0)
                        r = transfer_alive(t);
                if (r < 0)
                        return r;
        }
}

/* ---- one attempt */

static void sum_so_far(const struct transfer *t, unsigned char ret[32])
{
        EVP_MD_CTX *copy = EVP_MD_CTX_new();

        EVP_MD_CTX_copy_ex(copy, t->sum);
        EVP_DigestFinal_ex(copy, ret, NULL);
        EVP_MD_CTX_free(copy);
}

/* Compares the checksum with the required one. The transfer may have caused a difference, so another attempt
 * is worthwhile. */
static int compare_checksum(struct transfer *t, unsigned char sum[32], struct err *err)
{
        const struct move_task *task = t->task;
        unsigned char digest[64] = "";
        char hex[SUMS_TEXT];

        t->resumable = false;
        sum_so_far(t, sum);
        if (task->size != MOVE_SIZE_ANY && t->done != task->size)
                return err_set(err, MOVER_AGAIN, "it has %llu bytes, and should have %llu",
                               (unsigned long long)t->done, (unsigned long long)task->size);
        if (t->found.size != MOVE_SIZE_ANY && t->done != t->found.size)
                return err_set(err, MOVER_AGAIN, "%llu bytes came of %llu", (unsigned long long)t->done,
                               (unsigned long long)t->found.size);
        if (task->summed && memcmp(sum, task->sha256, 32) != 0)
                return err_set(err, MOVER_AGAIN, "it does not have the checksum that it should have");
        if (t->config->sums && t->config->wanted.type != SUM_NONE &&
            sums_read(t->config->sums, t->config->wanted.type, hex) &&
            strcmp(hex, t->config->wanted.hex) != 0)
                return err_set(err, MOVER_AGAIN, "its %s is %s, and should be %s",
                               sum_name(t->config->wanted.type), hex, t->config->wanted.hex);
        EVP_EncodeBlock(digest, sum, 32);
        if (t->digest && strcmp((char *)digest, t->digest) != 0)
                return err_set(err, MOVER_AGAIN, "it does not have the checksum that the store names");
        return 0;
}

static int transfer_get_file(struct transfer *t, const struct mover_kind *k, struct move_answer *a,
                             struct err *err)
{
        int r = t->resumable ? 0 : transfer_restart(t);

        free(t->digest);
        t->digest = NULL;
        if (r == 0)
                r = k->get(t, err);
        if (r == 0)
                r = compare_checksum(t, a->sha256, err);
        if (r == 0 && !t->task->scratch)
                r = transfer_sync(t, t->fd, t->done);
        a->size = t->done;
        a->facts = t->found;
        a->facts.size = t->done;
        return r;
}

/* Copies the source, which belongs to another user that may still be writing: no more than the requested
 * size is read. */
static int copy_data(struct transfer *t, struct move_answer *a)
{
        const struct move_task *task = t->task;
        MEM_CLEANUP char *room = mem_alloc(COPY_ROOM);
        int r = transfer_restart(t);

        while (r == 0 && t->done < task->size) {
                uint64_t left = task->size - t->done;
                ssize_t n =
                        pread(task->from, room, left < COPY_ROOM ? (size_t)left : COPY_ROOM, (off_t)t->done);

                if (n < 0 && errno == EINTR)
                        continue;
                r = n > 0 ? transfer_write(t, room, (size_t)n) : n < 0 ? -errno : -ESTALE;
                if (r == 0)
                        r = transfer_alive(t);
        }
        if (r == 0)
                r = transfer_sync(t, t->fd, t->done);
        sum_so_far(t, a->sha256);
        a->size = t->done;
        return r;
}

static int check_transfer(struct transfer *t, struct move_answer *a)
{
        int r = transfer_look(t);

        if (r < 0)
                return r;
        sum_so_far(t, a->sha256);
        a->size = t->done;
        return 0;
}

static int transfer_probe(struct transfer *t, const struct mover_kind *k, struct move_answer *a,
                          struct err *err)
{
        int r = k->probe(t, err);
        uint64_t latency_us = t->latency_us;

        if (r == 0 && t->task->space && k->space && k->space(t, &a->free_bytes, NULL) != 0)
                a->free_bytes = MOVE_SIZE_ANY;
        t->latency_us = latency_us;
        return r;
}

static int attempt(struct transfer *t, const struct mover_kind *k, struct move_answer *a, struct err *err)
{
        struct stat st;

        switch (t->task->op) {
        case MOVE_GET: return transfer_get_file(t, k, a, err);
        case MOVE_PROBE: return transfer_probe(t, k, a, err);
        case MOVE_CHECK: return check_transfer(t, a);
        case MOVE_COPY: return copy_data(t, a);
        case MOVE_PUT: break;
        }
        if (t->config->flow) {
                a->size = t->task->size;
                return k->put(t, err);
        }
        if (fstat(t->fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || t->task->at + t->task->size > (uint64_t)st.st_size)
                return err_set(err, MOVER_REFUSED, "it has fewer bytes than are to be sent");
        a->size = t->task->size;
        return k->put(t, err);
}

/* ---- all of them */

static int errno_of(int outcome)
{
        return outcome < 0               ? -outcome
               : outcome == MOVER_AGAIN  ? EAGAIN
               : outcome == MOVER_DENIED ? EACCES
                                         : ENOENT;
}

/* Waits before the next attempt; it ends early, with -ECANCELED, when nobody wants the answer any more. */
static int transfer_pause_for(struct transfer *t, uint64_t ms)
{
        int64_t end = clock_mono_ns() / 1000000 + (int64_t)ms;

        for (;;) {
                int r = transfer_alive(t);
                int64_t left = end - clock_mono_ns() / 1000000;

                if (r < 0 || left <= 0)
                        return r;
                poll(NULL, 0, (int)(left < ALIVE_MS ? left : ALIVE_MS));
        }
}

static const char *kind_shown(const char *type)
{
        return !strcmp(type, "s3") ? "S3 key" : !strcmp(type, "file") ? "key" : type;
}

static bool has_url(const struct move_task *task)
{
        return task->op != MOVE_CHECK && task->op != MOVE_COPY;
}

static void tell_failure(const struct move_task *task, struct move_answer *a, int r, const struct err *first,
                         const struct err *last, double seconds)
{
        BUF_CLEANUP struct buf b = {0};
        MEM_CLEANUP char *url = move_url_shown(task->url);

        a->status = MOVE_FAILED;
        a->error = errno_of(r);
        if (!has_url(task))
                buf_printf(&b, "cannot %s it: %s", task->op == MOVE_CHECK ? "read" : "copy", first->text);
        else
                buf_printf(&b, "cannot %s %s: %s",
                           task->op == MOVE_GET   ? "fetch"
                           : task->op == MOVE_PUT ? "send to"
                                                  : "reach",
                           url, first->text);
        if (task->credential.type && r > 0)
                buf_printf(&b, ", shown the %s %s", kind_shown(task->credential.type), task->credential.name);
        if (a->tries > 1)
                buf_printf(&b, " (tried %u times in %.0f s%s%s)", a->tries, seconds,
                           strcmp(first->text, last->text) ? "; at last: " : "",
                           strcmp(first->text, last->text) ? last->text : "");
        snprintf(a->text, sizeof(a->text), "%s", buf_z(&b));
}

static const struct mover_kind *kind_of(const struct mover_config *c, struct str url)
{
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (kinds[i]->handles(c, mover_scheme(url)))
                        return kinds[i];
        return NULL;
}

static void all_attempts(struct transfer *t, const struct mover_kind *k, struct move_answer *a)
{
        const struct move_task *task = t->task;
        uint64_t wait = t->config->retry_ms ? t->config->retry_ms : RETRY_MS;
        uint32_t tries = task->tries ? task->tries : TRIES;
        struct err first = {""}, last = {""};
        int64_t began = clock_mono_ns();
        int r = MOVER_AGAIN;

        while (r == MOVER_AGAIN && a->tries < tries) {
                if (a->tries > 0 && (r = transfer_pause_for(t, wait)) < 0)
                        break;
                if (a->tries++ > 0)
                        wait = wait * 2 > LATER_MS ? LATER_MS : wait * 2;
                last = (struct err){""};
                r = attempt(t, k, a, &last);
                if (r < 0 && !*last.text)
                        err_set(&last, r, "%s",
                                r == -ETIMEDOUT ? "it took longer than it may take" : strerror(-r));
                if (!*first.text)
                        first = last;
        }
        a->took_us = (uint64_t)(clock_mono_ns() - began) / 1000;
        a->moved = t->moved;
        a->latency_us = t->latency_us;
        a->status = r == MOVER_UNCHANGED ? MOVE_UNCHANGED : MOVE_DONE;
        if (r < 0 || r == MOVER_AGAIN || r == MOVER_REFUSED || r == MOVER_DENIED)
                tell_failure(task, a, r, &first, &last, (double)a->took_us / 1e6);
}

int transfer_with(const struct mover_config *c, const struct move_task *task, struct transfer *t,
                  int (*call)(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err),
                  void *arg, struct err *err)
{
        const struct mover_kind *k = kind_of(c, str_of(task->url));

        *t = (struct transfer){.task = task, .config = c, .fd = -1, .deadline_ms = INT64_MAX};
        t->found.size = MOVE_SIZE_ANY;
        if (task->limit_ms)
                t->deadline_ms = clock_mono_ns() / 1000000 + (int64_t)task->limit_ms;
        int r = k ? call(t, k, arg, err) : err_set(err, MOVER_REFUSED, "nothing here knows its scheme");
        free(t->digest);
        t->digest = NULL;
        return r;
}

bool transfer_streams(const struct mover_config *c, const char *url)
{
        return kind_of(c, str_of(url)) != &mover_exec;
}

void transfer_run(const struct mover_config *c, const struct move_task *task, int fd,
                  struct move_answer *answer)
{
        struct transfer t = {.task = task, .config = c, .fd = fd, .deadline_ms = INT64_MAX};
        const struct mover_kind *k = has_url(task) ? kind_of(c, str_of(task->url)) : NULL;

        *answer = (struct move_answer){.facts.size = MOVE_SIZE_ANY, .free_bytes = MOVE_SIZE_ANY};
        t.found.size = MOVE_SIZE_ANY;
        if (!k && has_url(task)) {
                MEM_CLEANUP char *url = move_url_shown(task->url);
                struct str scheme = mover_scheme(str_of(url));

                answer->status = MOVE_FAILED;
                answer->error = EPROTONOSUPPORT;
                snprintf(answer->text, sizeof(answer->text),
                         "%s: nothing here knows %s" STR_FMT
                         "; an agent's `movers` name programs for further schemes",
                         url, scheme.n ? "the scheme " : "what this is", STR_ARG(scheme));
                return;
        }
        if (task->limit_ms)
                t.deadline_ms = clock_mono_ns() / 1000000 + (int64_t)task->limit_ms;
        t.sum = EVP_MD_CTX_new();
        EVP_DigestInit_ex(t.sum, EVP_sha256(), NULL);
        all_attempts(&t, k, answer);
        EVP_MD_CTX_free(t.sum);
        free(t.digest);
}
