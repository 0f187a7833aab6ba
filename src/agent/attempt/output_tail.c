/* A trimmed file keeps its size: what was before its end is a hole (fallocate(2)). The files of another
 * user's job are changed by that user, since the agent may not write to them.
 */
#include "agent/attempt/output_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/streams.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "base/job/args.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "run/process/user_command.h"

#define KEPT_BYTES    (8ull << 20)   /* bytes that trimming leaves; a file of twice the size is trimmed */
#define KEPT_FOLLOWED (512ull << 20) /* while somebody follows the stream */
#define BATCH_TICKS   30             /* the sandboxes of batch systems' jobs may be on a slow file system */
#define TRIM_AGAIN_MS 5000           /* interval and longest time of trimming as another user */
#define REMOTE_MS     5000           /* time to get a request for the end of the output to another server */
#define RETRY_MS      40             /* interval of tries to send it */
#define TAILS_MAX     (64u << 20)    /* memory for all results that wait for the server */

struct remote_tail { /* a request to another server for the end of an attempt's output there */
        struct remote_tail *next;
        uint64_t request;
        uint32_t member, fence;
        uint64_t call; /* number of the call that is under way; 0: none */
        int64_t until_ms;
};
struct output_tails {
        struct agent *a;
        struct remote_tail *remote;
        uint64_t last_call;
        size_t bytes; /* in results that the server does not have yet */
        struct timer *retry;
};

/* ---- the result */

static void set_tail(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size)
{
        struct output_tails *all = at->a->output_tails;
        struct stream_tail *t = &at->result.tails[stream];
        size_t most = OUTPUT_TAIL_MAX;

        if (all->bytes + most > TAILS_MAX) /* results that wait for an absent server have used up the room */
                most /= 64;
        if (t->bytes || !count)
                return;
        if (count > most) {
                bytes = (const char *)bytes + (count - most);
                count = most;
        }
        t->bytes = mem_dup(bytes, count);
        t->count = count;
        t->size = size;
        all->bytes += count;
}

void output_tail_restore(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size)
{
        set_tail(at, stream, bytes, count, size);
}

void output_tail_drop(struct attempt *at)
{
        for (int k = 0; k < 2; k++) {
                at->a->output_tails->bytes -= at->result.tails[k].count;
                free(at->result.tails[k].bytes);
                at->result.tails[k] = (struct stream_tail){0};
        }
}

/* ---- the end of the steps */

struct ending {
        struct attempt *at;
        int sandbox;
        bool recycles;    /* empty files may stay for the next attempt: see sandbox_recycle */
        uint64_t seen[2]; /* bits: the indices of the files that were looked at */
};

/* Appends the last bytes of the file, of which *out keeps the last OUTPUT_TAIL_MAX. */
static void add_tail(const struct attempt *at, const char *name, uint64_t size, struct buf *out)
{
        size_t n = size < OUTPUT_TAIL_MAX ? (size_t)size : OUTPUT_TAIL_MAX;
        int fd = sandbox_open_file(at, name);
        ssize_t got = fd >= 0 ? pread(fd, buf_room(out, n), n, (off_t)(size - n)) : -1;

        if (got > 0)
                out->n += (size_t)got;
        if (fd >= 0)
                close(fd);
        if (out->n > OUTPUT_TAIL_MAX)
                buf_consume(out, out->n - OUTPUT_TAIL_MAX);
}

static void end_file(struct ending *e, unsigned step, bool is_stderr, struct buf *out, uint64_t *size)
{
        const struct attempt *at = e->at;
        BUF_CLEANUP struct buf name = {0};
        struct stat st;
        bool unnamed;
        int index = expand_stream_file(at, step, is_stderr, &unnamed, NULL);

        if (index < 0 || (e->seen[index / 64] >> (index % 64)) & 1)
                return;
        e->seen[index / 64] |= 1ull << (index % 64);
        expand_stream_name(at, index, &name);
        if (fstatat(e->sandbox, buf_z(&name), &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        bool has_bytes = S_ISREG(st.st_mode) && st.st_size > 0;
        if (has_bytes) {
                add_tail(at, buf_z(&name), (uint64_t)st.st_size, out);
                *size += (uint64_t)st.st_size;
        }
        /* with `users` it goes with the sandbox */
        if (unnamed && !at->a->users_path && (!e->recycles || !S_ISREG(st.st_mode) || has_bytes))
                unlinkat(e->sandbox, buf_z(&name), 0);
}

void output_tail_keep(struct attempt *at, bool followed)
{
        struct ending e = {.at = at, .recycles = !followed && sandbox_may_recycle(at)};
        struct buf out[2] = {{0}};
        uint64_t size[2] = {0};

        e.sandbox = sandbox_open(at);
        if (e.sandbox < 0)
                return;
        for (unsigned step = 0; step <= at->step; step++)
                for (int k = 0; k < 2; k++) {
                        end_file(&e, step, k, &out[k], &size[k]);
                        at->result.steps[step].printed[k] = size[k];
                }
        close(e.sandbox);
        at->recycles = e.recycles;
        for (int k = 0; k < 2; k++) {
                set_tail(at, k, out[k].p, out[k].n, size[k]);
                buf_deinit(&out[k]);
        }
}

/* ---- trimming */

static bool unnamed_file(const struct attempt *at, int sandbox, bool is_stderr, char name[32],
                         struct stat *ret)
{
        if (!expand_stream_is_kept(at, at->step, is_stderr))
                return false;
        snprintf(name, 32, ".drover_out.%u", at->step * 2 + is_stderr);
        return fstatat(sandbox, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(ret->st_mode);
}

uint64_t output_tail_disk_bytes(const struct attempt *at)
{
        int sandbox = sandbox_open(at);
        uint64_t bytes = 0;
        char name[32];
        struct stat st;

        for (int k = 0; k < 2 && sandbox >= 0; k++)
                if (unnamed_file(at, sandbox, k, name, &st))
                        bytes += (uint64_t)st.st_blocks * 512;
        if (sandbox >= 0)
                close(sandbox);
        return bytes;
}

static void trimmed(void *arg, int status, struct str out, struct str errors)
{
        (void)arg;
        (void)out;
        if (status != 0)
                log_warn("msg=\"cannot trim a job's output\" error=\"%s\"", LOG_TEXT(errors));
}

static void trim_as_user(const struct attempt *at, const char *name, uint64_t length)
{
        static char *const env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
        BUF_CLEANUP struct buf number = {0};
        ARGS_CLEANUP struct args argv = {0};
        char sandbox[64];

        sandbox_name(at, sandbox);
        buf_printf(&number, "%llu", (unsigned long long)length);
        args_add(&argv, STR("fallocate"));
        args_add(&argv, STR("--punch-hole"));
        args_add(&argv, STR("--length"));
        args_add(&argv, buf_view(&number));
        args_add(&argv, str_of(name));
        const struct user_command_spec spec = {.owner = at->t->m->owner,
                                               .user = at->t->user.name,
                                               .folder = sandbox,
                                               .argv = &argv,
                                               .envp = env,
                                               .timeout_ms = TRIM_AGAIN_MS};
        user_command_run(at->a->user_commands, &spec, trimmed, at->a);
}

static void trim_file(const struct attempt *at, int sandbox, const char *name, uint64_t length)
{
        if (at->a->users_path) {
                trim_as_user(at, name, length);
                return;
        }
        int fd = openat(sandbox, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return;
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)length);
        close(fd);
}

static void trim(struct attempt *at, int64_t now)
{
        uint64_t most = streams_are_followed(at) ? KEPT_FOLLOWED : KEPT_BYTES;
        int sandbox = sandbox_open(at);
        char name[32];
        struct stat st;

        for (int k = 0; k < 2 && sandbox >= 0; k++) {
                if (!unnamed_file(at, sandbox, k, name, &st) || (uint64_t)st.st_blocks * 512 < most * 2 ||
                    (uint64_t)st.st_size < most * 2)
                        continue;
                trim_file(at, sandbox, name, ((uint64_t)st.st_size - most) & ~(uint64_t)0xffff);
                at->trimmed_ms = now;
        }
        if (sandbox >= 0)
                close(sandbox);
}

void output_tails_tick(struct agent *a)
{
        static unsigned tick;
        int64_t now = clock_boot_ms();

        tick++;
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        if (at->stepping && (queue_is_local(at->q) || tick % BATCH_TICKS == 0) &&
                            (expand_stream_is_kept(at, at->step, false) ||
                             expand_stream_is_kept(at, at->step, true)) &&
                            (!a->users_path || now - at->trimmed_ms > TRIM_AGAIN_MS))
                                trim(at, now);
}

/* ---- of attempts that were delegated to another server */

static bool is_unnamed(const struct attempt *at, int stream)
{
        const struct job_step *s = &at->t->m->steps[at->step];

        return !*(stream ? s->stderr_file : s->stdout_file);
}

static void remote_free(struct remote_tail **link)
{
        struct remote_tail *w = *link;

        *link = w->next;
        free(w);
}

/* Takes the output, or NULL if it cannot be had, and continues the attempt. */
static void remote_take(struct output_tails *all, struct remote_tail **link, const struct run_output *said)
{
        struct attempt *at = agent_find(all->a, (*link)->request, (*link)->member, (*link)->fence);

        remote_free(link);
        for (int k = 0; k < 2 && at && said && !said->failed; k++)
                if (is_unnamed(at, k))
                        set_tail(at, k, said->bytes[k].p, said->bytes[k].n,
                                 said->offset[k] + said->bytes[k].n);
        if (at)
                all->a->news->printed(at);
}

static void remote_ask(struct output_tails *all);

static void output_tail_on_remote(void *arg, uint64_t call, const struct run_output *said)
{
        struct output_tails *all = arg;
        struct remote_tail **link = &all->remote;

        while (*link && (*link)->call != call)
                link = &(*link)->next;
        if (*link)
                remote_take(all, link, said);
        remote_ask(all);
}

/* Sends the requests that wait, in turn, as far as the runner takes them. */
static void remote_ask(struct output_tails *all)
{
        static const struct run_output_question ask = {.last = OUTPUT_TAIL_MAX};
        int64_t now = clock_boot_ms();

        timer_stop(all->retry);
        for (struct remote_tail **link = &all->remote; *link;) {
                struct remote_tail *w = *link;
                const struct attempt *at = agent_find(all->a, w->request, w->member, w->fence);
                int r = -ENOENT;

                if (w->call) {
                        link = &w->next;
                        continue;
                }
                if (at) {
                        struct runner *runner = at->q->backend->runner;

                        r = runner->kind->output(runner, attempt_task(at), &ask, all->last_call + 1,
                                                 output_tail_on_remote, all);
                }
                if (r == 0)
                        w->call = ++all->last_call;
                if (r == -EAGAIN && now < w->until_ms) {
                        timer_start(all->retry, RETRY_MS);
                        return; /* those behind it cannot be sent either */
                }
                if (r < 0)
                        remote_take(all, link, NULL);
        }
}

static void on_retry(void *arg)
{
        remote_ask(arg);
}

bool output_tail_wait(struct attempt *at)
{
        struct output_tails *all = at->a->output_tails;

        if (!at->q->backend->runner->kind->output || at->tail_asked ||
            (!is_unnamed(at, 0) && !is_unnamed(at, 1)))
                return false;
        struct remote_tail *w = mem_new(struct remote_tail), **last = &all->remote;
        *w = (struct remote_tail){.request = at->request,
                                  .member = at->member,
                                  .fence = at->fence,
                                  .until_ms = clock_boot_ms() + REMOTE_MS};
        while (*last)
                last = &(*last)->next;
        *last = w;
        at->tail_asked = true;
        timer_start(all->retry, 0); /* not now: the runner is within a call */
        return true;
}

void output_tails_open(struct agent *a)
{
        a->output_tails = mem_new(struct output_tails);
        a->output_tails->a = a;
        a->output_tails->retry = timer_new(a->loop, on_retry, a->output_tails);
}

void output_tails_close(struct agent *a)
{
        struct output_tails *all = a->output_tails;

        if (!all)
                return;
        while (all->remote)
                remote_free(&all->remote);
        timer_free(all->retry);
        free(all);
        a->output_tails = NULL;
}
