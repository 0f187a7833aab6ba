/* Polls the files of followed streams every LOOK_MS, since no notification works on every file system that a
 * sandbox may be on (inotify(7) does not see writes of other machines). After a short answer the next one is
 * not sent before that time, so that a program that prints line by line costs its followers some twenty
 * messages a second. */
#include "agent/attempt/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/attempt/console.h"
#include "agent/container/container_step.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/outbox/outbox.h"
#include "agent/step/submit.h"
#include "agent/transfer/stage.h"
#include "base/job/args.h"
#include "base/share.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/process/user_command.h"

#define LOOK_MS       40
#define LOOK_FAST_MS  10    /* at a terminal, where somebody types */
#define IDLE_MS       5000  /* interval of looks without requests */
#define FOLLOWED_MS   30000 /* time after the last request at which the files are closed */
#define WAIT_MAX_MS   60000
#define QUESTIONS_MAX 2000
#define EXEC_ADOPTED  UINT64_MAX /* number of a command of an earlier agent: only its task's step is known */
#define FOLLOWED_MAX  500        /* attempts, and commands beside them; shared by their owners */
#define FILES_MAX     2000       /* open, of all */
#define INPUT_MS      10000      /* time for a command to make room for more input */
#define MOST_MAX      (64u << 10)
#define TAIL_MAX      (64u << 10) /* bytes of a stream's end in the result */
#define KEPT_BYTES                                                                                           \
        (8ull << 20) /* bytes of an unnamed stream that trimming leaves; a file of twice the size is trimmed \
                      */
#define KEPT_FOLLOWED (512ull << 20) /* while somebody follows the stream */
#define FAR_TICKS     30             /* the sandboxes of batch systems' jobs may be on a slow file system */
#define TRIM_AGAIN_MS 5000           /* interval and longest time of trimming as another user */
#define FAR_TAIL_MS   5000           /* time for another server to send the end of the output there */
#define TAILS_MAX     (64u << 20)    /* memory for all results that wait for the server */

struct file {
        int index; /* ".drover_out.INDEX" */
        int fd;    /* -1: it is not there yet */
        bool kept; /* its beginning may have been trimmed: see trim() */
};
struct stream {
        struct file *files; /* files in the order of the steps */
        size_t count, cap;
};
/* The offsets count on through the steps, and through the attempts that the other server makes of each. */
struct far {
        uint32_t step;    /* step of the last requested task */
        uint64_t attempt; /* there */
        uint64_t base[2]; /* bytes printed before that attempt */
        uint64_t next[2]; /* offset after the last byte that was sent */
};
struct followed {
        struct followed *next;
        char *owner;
        uint64_t request;
        uint32_t member, fence;
        struct attempt *at;       /* NULL: it is gone */
        unsigned steps;           /* number of steps whose files are listed */
        struct stream streams[2]; /* stdout, stderr */
        bool over;                /* nothing more is written */
        struct far far;           /* for an attempt that was delegated to another server */
        uint64_t exec;            /* number of a command beside the attempt; 0: the attempt itself */
        struct run_id task;       /* that command */
        bool stays;               /* it does not end when nobody asks about it */
        bool signaled;            /* with `over` */
        int32_t exit_code;
        char *error; /* why it was not started; or NULL */
        struct streams *all;
        struct console *console; /* console of a command with input or a terminal; else NULL */
        bool terminal;           /* the output comes from the console */
        uint64_t input_serial;   /* serial of input that still needs room; 0: none */
        int64_t input_until_ms;
        int64_t asked_ms, told_ms; /* boot clock: last question, last answer */
};
struct question {
        struct question *next;
        struct followed *of;
        uint64_t serial, offset[2];
        bool wanted[2];
        uint64_t last;  /* of a delegated attempt, until it is answered */
        uint64_t asked; /* number of the call to the other server that is under way; 0: none */
        size_t most;
        int64_t until_ms;
};
struct tail_wait { /* a request to another server for the end of the output there */
        struct tail_wait *next;
        uint64_t request, asked;
        uint32_t member, fence;
        int64_t until_ms;
};
struct streams {
        struct agent *a;
        struct followed *followed;
        struct question *questions;
        struct tail_wait *waits;
        uint64_t last_asked;
        struct share *share; /* the owner's share of followed attempts */
        size_t question_count, file_count;
        size_t tail_bytes; /* bytes in results that the server does not have yet */
        struct timer *timer;
};

/* ---- files */

static int open_file(const struct attempt *at, const char *name)
{
        char sandbox[64];
        struct stat st;
        sandbox_name(at, sandbox);
        int dir = openat(at->a->jobs, sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return -1;
        /* with `users`: the user for whom the shepherd made it */
        uid_t user = fstat(dir, &st) == 0 ? st.st_uid : 0;
        /* links and pipes of the job are refused: no link is followed, and opening does not block */
        int fd = fs_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
        close(dir);
        if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != user)) {
                close(fd);
                return -1;
        }
        return fd;
}

int streams_open_file(const struct attempt *at, int index)
{
        BUF_CLEANUP struct buf name = {0};
        expand_stream_name(at, index, &name);
        return open_file(at, buf_z(&name));
}

static bool has_file(const struct stream *s, int index)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->files[i].index == index)
                        return true;
        return false;
}

static void add_file(struct followed *f, unsigned step, bool is_stderr)
{
        bool kept;
        int index = expand_stream_file(f->at, step, is_stderr, &kept, NULL);
        struct stream *s = &f->streams[is_stderr];
        if (index < 0 || has_file(&f->streams[0], index) || has_file(s, index))
                return;
        MEM_GROW(s->files, s->cap, s->count + 1);
        s->files[s->count++] = (struct file){index, -1, kept};
}

/* Lists the files of the steps that have begun. */
static void list_files(struct followed *f)
{
        for (; f->steps <= f->at->step && f->steps < f->at->t->m->step_count; f->steps++) {
                add_file(f, f->steps, false);
                add_file(f, f->steps, true);
        }
}

static void list_exec_files(struct followed *f)
{
        for (int k = 0; k < 2; k++) {
                struct stream *s = &f->streams[k];
                MEM_GROW(s->files, s->cap, 1);
                s->files[s->count++] = (struct file){.index = k, .fd = -1};
        }
}

static void file_name(const struct followed *f, int index, struct buf *out)
{
        if (f->exec)
                buf_printf(out, index ? STEP_EXEC_ERR : STEP_EXEC_OUT, f->task.step);
        else
                expand_stream_name(f->at, index, out);
}

/* Opens the files that exist. */
static void look_at_stream(struct streams *all, struct followed *f)
{
        if (!f->at || f->over || f->terminal || (!f->exec && f->at->state < ATTEMPT_RUNNING))
                return; /* a command runs beside a program, though that may not be adopted yet */
        if (!f->exec)
                list_files(f);
        for (int k = 0; k < 2; k++)
                for (size_t i = 0; i < f->streams[k].count; i++) {
                        struct file *file = &f->streams[k].files[i];
                        if (file->fd >= 0 || all->file_count >= FILES_MAX)
                                continue;
                        BUF_CLEANUP struct buf name = {0};
                        file_name(f, file->index, &name);
                        file->fd = open_file(f->at, buf_z(&name));
                        all->file_count += file->fd >= 0;
                }
}

static uint64_t file_size(const struct file *f)
{
        struct stat st;
        return f->fd >= 0 && fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static uint64_t stream_size(const struct stream *s)
{
        uint64_t size = 0;
        for (size_t i = 0; i < s->count; i++)
                size += file_size(&s->files[i]);
        return size;
}

/* The first byte that is left of a file that is trimmed. */
static uint64_t skip_hole(const struct file *f, uint64_t at, uint64_t size)
{
        off_t data = f->kept ? lseek(f->fd, (off_t)at, SEEK_DATA) : (off_t)at;
        return data < 0 ? size : (uint64_t)data;
}

/* Appends at most `most` bytes; *offset becomes the offset of the first of them. */
static void stream_read(const struct stream *s, uint64_t *offset, size_t most, struct buf *out)
{
        uint64_t base = 0, at = *offset;
        for (size_t i = 0; i < s->count && out->n < most; i++) {
                const struct file *f = &s->files[i];
                uint64_t size = file_size(f);
                while (at - base < size && out->n < most) {
                        uint64_t from = skip_hole(f, at - base, size);
                        if (from > at - base && out->n)
                                return; /* bytes behind the hole go into another answer */
                        at = base + from;
                        if (!out->n)
                                *offset = at;
                        if (from >= size)
                                break;
                        size_t n = most - out->n < size - from ? most - out->n : (size_t)(size - from);
                        char *room = buf_room(out, n);
                        ssize_t got = pread(f->fd, room, n, (off_t)from);
                        if (got <= 0)
                                return;
                        out->n += (size_t)got;
                        at += (uint64_t)got;
                }
                base += size;
        }
}

/* ---- followed attempts and commands */

/* The step of the task of a command that stays. */
static uint32_t stays_step(uint64_t exec)
{
        return STEP_NO_JOBS | STEP_STAYS | (uint32_t)(exec >> 1 & (STEP_STAYS - 1));
}

static bool is_exec(const struct followed *f, uint64_t exec)
{
        return f->exec == exec || (f->exec == EXEC_ADOPTED && exec && f->task.step == stays_step(exec));
}

static struct followed *followed_find(const struct streams *all, uint64_t request, uint32_t member,
                                      uint32_t fence, uint64_t exec)
{
        struct followed *f = all->followed;
        while (f && (f->request != request || f->member != member || f->fence != fence || !is_exec(f, exec)))
                f = f->next;
        return f;
}

static struct followed *followed_new(struct streams *all, struct attempt *at)
{
        if (!share_take(all->share, str_of(at->t->m->owner)))
                return NULL;
        struct followed *f = mem_new(struct followed);
        f->owner = mem_dupz(at->t->m->owner);
        f->request = at->request;
        f->member = at->member;
        f->fence = at->fence;
        f->at = at;
        f->all = all;
        f->next = all->followed;
        all->followed = f;
        return f;
}

static void followed_free(struct streams *all, struct followed *f)
{
        struct followed **link = &all->followed;
        while (*link != f)
                link = &(*link)->next;
        *link = f->next;
        for (int k = 0; k < 2; k++) {
                for (size_t i = 0; i < f->streams[k].count; i++)
                        if (f->streams[k].files[i].fd >= 0) {
                                close(f->streams[k].files[i].fd);
                                all->file_count--;
                        }
                free(f->streams[k].files);
        }
        share_give(all->share, str_of(f->owner));
        free(f->owner);
        if (f->exec && !f->over) { /* there are no more requests for it */
                runner_kill(all->a->runner, f->task, 0);
                agent_turn_later(all->a);
        }
        console_free(f->console);
        free(f->error);
        free(f);
}

/* ---- questions */

static void tell_unknown(struct agent *a, uint64_t serial)
{
        Drover__Streams m = DROVER__STREAMS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        m.serial = serial;
        m.unknown = true;
        to.kind_case = DROVER__TO_SERVER__KIND_STREAMS;
        to.streams = &m;
        outbox_send(a, &to);
}

static void tell_question(struct streams *all, const struct question *q, const uint64_t offset[2],
                          const struct str out[2], bool over)
{
        Drover__Streams m = DROVER__STREAMS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        m.serial = q->serial;
        m.stdout_bytes = (ProtobufCBinaryData){out[0].n, (uint8_t *)out[0].p};
        m.stderr_bytes = (ProtobufCBinaryData){out[1].n, (uint8_t *)out[1].p};
        m.stdout_offset = offset[0];
        m.stderr_offset = offset[1];
        m.over = over;
        m.signaled = over && q->of->signaled;
        m.exit_code = over ? q->of->exit_code : 0;
        m.error = over && q->of->error ? q->of->error : m.error;
        to.kind_case = DROVER__TO_SERVER__KIND_STREAMS;
        to.streams = &m;
        outbox_send(all->a, &to);
}

/* ---- at another server */

static bool is_far(const struct attempt *at)
{
        return at->q->backend->runner->kind->output != NULL;
}

static void on_far(void *arg, uint64_t number, const struct run_output *said);

static int ask_far(struct streams *all, const struct attempt *at, const struct run_output_question *q,
                   uint64_t *asked)
{
        struct runner *r = at->q->backend->runner;
        int e = r->kind->output(r, attempt_task(at), q, all->last_asked + 1, on_far, all);
        if (e == 0)
                *asked = ++all->last_asked;
        return e;
}

static void tell_nothing(struct streams *all, const struct question *q)
{
        static const struct str none[2] = {{0}};
        tell_question(all, q, q->offset, none, false);
}

/* Answers a request whose time is up. Returns whether it did. */
static bool answer_far(struct streams *all, struct question *q, int64_t now)
{
        struct followed *f = q->of;
        uint32_t step = attempt_task(f->at).step;
        struct run_output_question ask = {
                .attempt = f->far.attempt, .last = q->last, .wait = now < q->until_ms};
        if (q->asked)
                return false;
        if (f->far.step != step) {
                memcpy(f->far.base, f->far.next, sizeof(f->far.base));
                f->far.step = step;
                f->far.attempt = ask.attempt = 0;
        }
        for (int k = 0; k < 2; k++)
                ask.offset[k] = q->offset[k] > f->far.base[k] ? q->offset[k] - f->far.base[k] : 0;
        if (ask_far(all, f->at, &ask, &q->asked) == 0 || now < q->until_ms)
                return false;
        tell_nothing(all, q);
        return true;
}

/* Answers from the other server's output. Returns whether it did. */
static bool take_far(struct streams *all, struct question *q, const struct run_output *said, int64_t now)
{
        struct far *far = &q->of->far;
        uint64_t offset[2];
        struct str out[2] = {{0}};
        bool any = false;
        q->asked = 0;
        if (!said->failed && said->attempt != far->attempt) {
                if (far->attempt)
                        memcpy(far->base, far->next, sizeof(far->base));
                far->attempt = said->attempt;
        }
        for (int k = 0; k < 2; k++) {
                offset[k] = said->failed ? q->offset[k] : far->base[k] + said->offset[k];
                if (q->wanted[k] && !said->failed)
                        out[k] = str_head(said->bytes[k], q->most);
                any |= out[k].n > 0;
                if (offset[k] + out[k].n > far->next[k])
                        far->next[k] = offset[k] + out[k].n;
        }
        if (!any && !(said->over && !said->failed) && now < q->until_ms)
                return false;
        tell_question(all, q, offset, out, said->over && !said->failed);
        return true;
}

/* Answers with the output of a command's terminal. Returns false if there is nothing to send yet. */
static bool answer_terminal(struct streams *all, struct question *q, int64_t now)
{
        struct followed *f = q->of;
        uint64_t offset[2] = {q->offset[0], q->offset[1]};
        struct str out[2] = {str_head(console_output(f->console, &offset[0]), q->most)};
        bool over =
                f->over && console_is_over(f->console) && offset[0] + out[0].n >= console_written(f->console);
        bool told = over || out[0].n >= q->most || now >= q->until_ms ||
                    (out[0].n && now - f->told_ms >= LOOK_FAST_MS);
        if (told) {
                tell_question(all, q, offset, out, over);
                f->told_ms = now;
        }
        return told;
}

/* Answers a request. Returns false if there is nothing to send yet. */
static bool question_answer(struct streams *all, struct question *q, int64_t now)
{
        struct followed *f = q->of;
        if (f->at && !f->over && !f->exec && is_far(f->at))
                return answer_far(all, q, now);
        if (f->terminal)
                return answer_terminal(all, q, now);
        struct buf out[2] = {{0}};
        uint64_t offset[2] = {q->offset[0], q->offset[1]};
        bool full = false, any = false, over = f->over;
        look_at_stream(all, f);
        for (int k = 0; k < 2; k++) {
                if (!q->wanted[k])
                        continue;
                stream_read(&f->streams[k], &offset[k], q->most, &out[k]);
                full |= out[k].n >= q->most;
                any |= out[k].n > 0;
                over = over && offset[k] + out[k].n >= stream_size(&f->streams[k]);
        }
        bool told = over || full || now >= q->until_ms || (any && now - f->told_ms >= LOOK_MS);
        if (told) {
                const struct str bytes[2] = {buf_view(&out[0]), buf_view(&out[1])};
                tell_question(all, q, offset, bytes, over);
                f->told_ms = now;
        }
        buf_deinit(&out[0]);
        buf_deinit(&out[1]);
        return told;
}

static void question_free(struct streams *all, struct question **link)
{
        struct question *q = *link;
        *link = q->next;
        all->question_count--;
        free(q);
}

/* Answers every request that can be answered. of: only requests about this attempt or command; NULL: all. */
static void answer_all(struct streams *all, const struct followed *of)
{
        int64_t now = clock_boot_ms();
        for (struct question **link = &all->questions; *link;)
                if ((!of || (*link)->of == of) && question_answer(all, *link, now))
                        question_free(all, link);
                else
                        link = &(*link)->next;
}

static void set_timer(struct streams *all)
{
        bool fast = false;
        for (const struct question *q = all->questions; q && !fast; q = q->next)
                fast = q->of->terminal;
        if (all->questions || all->waits)
                timer_start(all->timer, fast ? LOOK_FAST_MS : LOOK_MS);
        else if (all->followed)
                timer_start(all->timer, IDLE_MS);
        else
                timer_stop(all->timer);
}

static bool is_asked(const struct streams *all, const struct followed *f)
{
        for (const struct question *q = all->questions; q; q = q->next)
                if (q->of == f)
                        return true;
        return false;
}

/* Answers input that waits for room when there is some, or when its time is up. */
static void answer_input(struct followed *f, int64_t now)
{
        if (!f->input_serial || (!f->over && !console_is_deaf(f->console) && !console_has_room(f->console) &&
                                 now < f->input_until_ms))
                return;
        Drover__Streams m = DROVER__STREAMS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        m.serial = f->input_serial;
        m.input_next = console_taken(f->console);
        m.over = f->over || console_is_deaf(f->console);
        to.kind_case = DROVER__TO_SERVER__KIND_STREAMS;
        to.streams = &m;
        outbox_send(f->all->a, &to);
        f->input_serial = 0;
}

static void ask_for_tails(struct streams *all, int64_t now);

static void on_timer(void *arg)
{
        struct streams *all = arg;
        int64_t now = clock_boot_ms();
        answer_all(all, NULL);
        ask_for_tails(all, now);
        for (struct followed *f = all->followed, *next; f; f = next) {
                next = f->next;
                answer_input(f, now);
                if (now - f->asked_ms > FOLLOWED_MS && !is_asked(all, f) && (f->over || !f->stays))
                        followed_free(all, f);
        }
        set_timer(all);
}

void streams_get(struct agent *a, const Drover__StreamsGet *m)
{
        struct streams *all = a->streams;
        struct attempt *at = agent_find(a, m->request, m->member, m->fence);
        struct followed *f = followed_find(all, m->request, m->member, m->fence, m->exec);
        int64_t now = clock_boot_ms();
        if (!f && at && at->state < ATTEMPT_DELIVERING && !m->exec)
                f = followed_new(all, at);
        if (!f || all->question_count >= QUESTIONS_MAX) {
                tell_unknown(a, m->serial);
                return;
        }
        struct question *q = mem_new(struct question);
        q->of = f;
        q->serial = m->serial;
        q->wanted[0] = m->stdout_wanted;
        q->wanted[1] = m->stderr_wanted;
        q->offset[0] = m->stdout_offset;
        q->offset[1] = m->stderr_offset;
        q->last = m->last;
        q->most = m->most && m->most < MOST_MAX ? m->most : MOST_MAX;
        q->until_ms = now + (int64_t)(m->wait_ms < WAIT_MAX_MS ? m->wait_ms : WAIT_MAX_MS);
        q->next = all->questions;
        all->questions = q;
        all->question_count++;
        f->asked_ms = now;
        look_at_stream(all, f);
        for (int k = 0; k < 2 && m->last && !(f->at && is_far(f->at)); k++) {
                uint64_t size = stream_size(&f->streams[k]);
                q->offset[k] = size > m->last ? size - m->last : 0;
        }
        if (question_answer(all, q, now))
                question_free(all, &all->questions);
        set_timer(all);
}

void streams_session_lost(struct agent *a)
{
        while (a->streams->questions)
                question_free(a->streams, &a->streams->questions);
        for (struct followed *f = a->streams->followed; f; f = f->next)
                f->input_serial = 0;
        set_timer(a->streams);
}

static void set_tail(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size)
{
        struct streams *all = at->a->streams;
        struct stream_tail *t = &at->result.tails[stream];
        size_t left = all->tail_bytes < TAILS_MAX ? TAILS_MAX - all->tail_bytes : 0;
        /* results that wait for an absent server have used up the room */
        size_t most = left > TAIL_MAX ? left : TAIL_MAX / 64;
        if (t->bytes || !count)
                return;
        if (count > most) {
                bytes = (const char *)bytes + (count - most);
                count = most;
        }
        t->bytes = mem_dup(bytes, count);
        t->count = count;
        t->size = size;
        all->tail_bytes += count;
}

static void wait_free(struct tail_wait **link)
{
        struct tail_wait *w = *link;
        *link = w->next;
        free(w);
}

static bool is_unnamed(const struct attempt *at, int stream)
{
        const struct job_step *s = &at->t->m->steps[at->step];
        return !*(stream ? s->stderr_file : s->stdout_file);
}

/* Called when the output has arrived or cannot be had (said NULL, or failed): continues the attempt. */
static void take_far_tail(struct streams *all, struct tail_wait **link, const struct run_output *said)
{
        struct attempt *at = agent_find(all->a, (*link)->request, (*link)->member, (*link)->fence);
        wait_free(link);
        for (int k = 0; k < 2 && at && said && !said->failed; k++)
                if (is_unnamed(at, k))
                        set_tail(at, k, said->bytes[k].p, said->bytes[k].n,
                                 said->offset[k] + said->bytes[k].n);
        if (at)
                all->a->news->printed(at);
}

static void ask_for_tails(struct streams *all, int64_t now)
{
        static const struct run_output_question ask = {.last = TAIL_MAX};
        for (struct tail_wait **link = &all->waits; *link;) {
                struct tail_wait *w = *link;
                const struct attempt *at = agent_find(all->a, w->request, w->member, w->fence);
                int r = w->asked ? 0 : at ? ask_far(all, at, &ask, &w->asked) : -ENOENT;
                if (r == -EAGAIN && now < w->until_ms)
                        return; /* requests behind it cannot be sent either */
                if (r < 0)
                        take_far_tail(all, link, NULL);
                else
                        link = &w->next;
        }
}

bool streams_wait(struct attempt *at)
{
        struct streams *all = at->a->streams;
        if (!is_far(at) || at->printed_asked || (!is_unnamed(at, 0) && !is_unnamed(at, 1)))
                return false;
        struct tail_wait *w = mem_new(struct tail_wait), **last = &all->waits;
        *w = (struct tail_wait){.request = at->request,
                                .member = at->member,
                                .fence = at->fence,
                                .until_ms = clock_boot_ms() + FAR_TAIL_MS};
        while (*last)
                last = &(*last)->next;
        *last = w;
        at->printed_asked = true;
        timer_start(all->timer, 0);
        return true;
}

static void on_far(void *arg, uint64_t number, const struct run_output *said)
{
        struct streams *all = arg;
        int64_t now = clock_boot_ms();
        for (struct question **link = &all->questions; *link; link = &(*link)->next)
                if ((*link)->asked == number) {
                        if (take_far(all, *link, said, now))
                                question_free(all, link);
                        break;
                }
        for (struct tail_wait **link = &all->waits; *link; link = &(*link)->next)
                if ((*link)->asked == number) {
                        take_far_tail(all, link, said);
                        break;
                }
        ask_for_tails(all, now);
        set_timer(all);
}

/* ---- streams without a name
 *
 * Nobody has named a destination for these, so they must not fill the disk: everything before their end
 * becomes a hole in the file. The files of another user's job are changed by that user.
 */

static bool kept_file(const struct attempt *at, int dir, bool is_stderr, char name[32], struct stat *ret)
{
        if (!expand_stream_is_kept(at, at->step, is_stderr))
                return false;
        snprintf(name, 32, ".drover_out.%u", at->step * 2 + is_stderr);
        return fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(ret->st_mode);
}

static int open_sandbox(const struct attempt *at)
{
        char sandbox[64];
        sandbox_name(at, sandbox);
        return openat(at->a->jobs, sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

uint64_t streams_kept_bytes(const struct attempt *at)
{
        int dir = open_sandbox(at);
        uint64_t bytes = 0;
        char name[32];
        struct stat st;
        for (int k = 0; k < 2 && dir >= 0; k++)
                if (kept_file(at, dir, k, name, &st))
                        bytes += (uint64_t)st.st_blocks * 512;
        if (dir >= 0)
                close(dir);
        return bytes;
}

static void trimmed(void *arg, int status, struct str out, struct str errors)
{
        (void)arg;
        (void)out;
        if (status != 0)
                log_warn("msg=\"what a job prints cannot be trimmed\" error=\"%s\"", LOG_TEXT(errors));
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

static void trim_file(const struct attempt *at, int dir, const char *name, uint64_t length)
{
        if (at->a->users_path) {
                trim_as_user(at, name, length);
                return;
        }
        int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return;
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)length);
        close(fd);
}

static void trim(struct attempt *at, int64_t now)
{
        const struct followed *f = followed_find(at->a->streams, at->request, at->member, at->fence, 0);
        uint64_t most = f && now - f->asked_ms < FOLLOWED_MS ? KEPT_FOLLOWED : KEPT_BYTES;
        int dir = open_sandbox(at);
        char name[32];
        struct stat st;
        for (int k = 0; k < 2 && dir >= 0; k++) {
                if (!kept_file(at, dir, k, name, &st) || (uint64_t)st.st_blocks * 512 < most * 2 ||
                    (uint64_t)st.st_size < most * 2)
                        continue;
                trim_file(at, dir, name, ((uint64_t)st.st_size - most) & ~(uint64_t)0xffff);
                at->trimmed_ms = now;
        }
        if (dir >= 0)
                close(dir);
}

void streams_tick(struct agent *a)
{
        static unsigned tick;
        int64_t now = clock_boot_ms();
        tick++;
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        if (at->stepping && (queue_is_local(at->q) || tick % FAR_TICKS == 0) &&
                            (expand_stream_is_kept(at, at->step, false) ||
                             expand_stream_is_kept(at, at->step, true)) &&
                            (!a->users_path || now - at->trimmed_ms > TRIM_AGAIN_MS))
                                trim(at, now);
}

/* ---- attempts */

/* The last bytes of its files, with those that it has not named removed: these are delivered nowhere. With
 * `users` they go with the sandbox. */
struct ending {
        struct attempt *at;
        int dir;
        bool recycles;    /* empty files may stay for the next attempt: see sandbox_recycle */
        uint64_t seen[2]; /* numbers of files that were looked at */
};

static void add_tail(const struct attempt *at, int index, uint64_t size, struct buf *out)
{
        size_t most = TAIL_MAX, n = size < most ? (size_t)size : most;
        BUF_CLEANUP struct buf name = {0};
        expand_stream_name(at, index, &name);
        int fd = open_file(at, buf_z(&name));
        char *room = fd >= 0 ? buf_room(out, n) : NULL;
        ssize_t got = room ? pread(fd, room, n, (off_t)(size - n)) : -1;
        if (got > 0)
                out->n += (size_t)got;
        if (fd >= 0)
                close(fd);
        if (out->n > most)
                buf_consume(out, out->n - most);
}

static void end_file(struct ending *e, unsigned step, bool is_stderr, struct buf *out, uint64_t *size)
{
        const struct attempt *at = e->at;
        BUF_CLEANUP struct buf name = {0};
        struct stat st;
        bool kept;
        int index = expand_stream_file(at, step, is_stderr, &kept, NULL);
        if (index < 0 || (e->seen[index / 64] >> (index % 64)) & 1)
                return;
        e->seen[index / 64] |= 1ull << (index % 64);
        expand_stream_name(at, index, &name);
        if (fstatat(e->dir, buf_z(&name), &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        if (S_ISREG(st.st_mode) && st.st_size > 0) {
                add_tail(at, index, (uint64_t)st.st_size, out);
                *size += (uint64_t)st.st_size;
        }
        if (!kept || at->a->users_path)
                return;
        if (!e->recycles || !S_ISREG(st.st_mode) || st.st_size > 0)
                unlinkat(e->dir, buf_z(&name), 0);
}

/* followed: a requester has the attempt's files open. */
static void keep_tails(struct attempt *at, bool followed)
{
        struct ending e = {.at = at, .recycles = !followed && sandbox_may_recycle(at)};
        struct buf out[2] = {{0}};
        uint64_t size[2] = {0};
        e.dir = open_sandbox(at);
        if (e.dir < 0)
                return;
        for (unsigned step = 0; step <= at->step; step++)
                for (int k = 0; k < 2; k++) {
                        end_file(&e, step, k, &out[k], &size[k]);
                        at->result.steps[step].printed[k] = size[k];
                }
        close(e.dir);
        at->recycles = e.recycles;
        for (int k = 0; k < 2; k++) {
                set_tail(at, k, out[k].p, out[k].n, size[k]);
                buf_deinit(&out[k]);
        }
}

void streams_end(struct attempt *at)
{
        struct streams *all = at->a->streams;
        struct followed *f = followed_find(all, at->request, at->member, at->fence, 0);
        if (f && !f->over) {
                look_at_stream(all, f);
                f->over = true;
                answer_all(all, f);
                set_timer(all);
        }
        for (struct followed *x = all->followed; x; x = x->next)
                if (x->exec && x->at == at && !x->over) {
                        look_at_stream(all, x);
                        runner_kill(at->a->runner, x->task, 0);
                }
        if (at->state == ATTEMPT_RUNNING && (at->has_sandbox || at->adopted))
                keep_tails(at, f != NULL);
}

void streams_restore_tail(struct attempt *at, int stream, const void *bytes, size_t count, uint64_t size)
{
        set_tail(at, stream, bytes, count < TAIL_MAX ? count : TAIL_MAX, size);
}

void streams_drop_tails(struct attempt *at)
{
        for (int k = 0; k < 2; k++) {
                at->a->streams->tail_bytes -= at->result.tails[k].count;
                free(at->result.tails[k].bytes);
                at->result.tails[k] = (struct stream_tail){0};
        }
}

void streams_forget(struct attempt *at)
{
        struct streams *all = at->a->streams;
        if (!all)
                return;
        if (!at->a->stopping) /* the runner has ended by then */
                streams_end(at);
        for (struct followed *f = all->followed; f; f = f->next)
                if (f->at == at)
                        f->at = NULL;
}

/* ---- commands beside an attempt's program */

static void tell_exec(struct agent *a, uint64_t serial, const char *error)
{
        Drover__Streams m = DROVER__STREAMS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        m.serial = serial;
        m.error = error ? (char *)error : m.error;
        to.kind_case = DROVER__TO_SERVER__KIND_STREAMS;
        to.streams = &m;
        outbox_send(a, &to);
}

/* Why no command can be run beside it; NULL: it can. */
static const char *exec_refused(const struct attempt *at)
{
        if (!at || at->state != ATTEMPT_RUNNING || !at->stepping || !at->task_runs)
                return "the job's program does not run at this moment";
        if (!queue_is_local(at->q))
                return "the job runs in a batch system or at another server, where its agent runs no "
                       "commands";
        return container_step_exec_refused(at);
}

static void on_console(void *arg)
{
        struct followed *f = arg;
        answer_input(f, clock_boot_ms());
        answer_all(f->all, f);
        set_timer(f->all);
}

/* *ret_fd: the command's end of its console, the caller's; -1: it has none. */
static int open_console(struct followed *f, const Drover__Exec *m, int *ret_fd)
{
        const struct console_config config = {.loop = f->all->a->loop,
                                              .terminal = m->terminal,
                                              .rows = m->rows,
                                              .columns = m->columns,
                                              .changed = on_console,
                                              .arg = f};
        *ret_fd = -1;
        f->terminal = m->terminal;
        return m->input || m->terminal ? console_new(&config, &f->console, ret_fd) : 0;
}

void streams_exec(struct agent *a, const Drover__Exec *m)
{
        struct streams *all = a->streams;
        struct attempt *at = agent_find(a, m->request, m->member, m->fence);
        const char *refused = exec_refused(at);
        struct err err = {""};
        if (!refused && (m->n_argv == 0 || m->exec == 0 || m->exec == EXEC_ADOPTED))
                refused = "there is no command";
        struct followed *f = refused ? NULL : followed_new(all, at);
        if (!f) {
                tell_exec(a, m->serial,
                          refused ? refused : "too many of your jobs are followed at its agent");
                return;
        }
        f->exec = m->exec;
        f->stays = m->stays;
        f->task = (struct run_id){at->request, at->member, at->fence,
                                  m->stays ? stays_step(m->exec) : stage_task_step(a), 0};
        f->asked_ms = clock_boot_ms();
        list_exec_files(f);
        int fd, r = open_console(f, m, &fd);
        const struct step_exec exec = {.argv = m->argv,
                                       .argc = m->n_argv,
                                       .fd = fd,
                                       .terminal = m->terminal,
                                       .term = m->term,
                                       .unbounded = m->stays};
        if (r < 0)
                err_set(&err, r, "no terminal can be had: %s", strerror(-r));
        else
                r = step_exec(at, f->task, &exec, &err);
        if (fd >= 0)
                close(fd);
        if (r < 0) {
                f->over = true;
                followed_free(all, f);
                tell_exec(a, m->serial, err.text);
                return;
        }
        tell_exec(a, m->serial, NULL);
        agent_turn_later(a);
        set_timer(all);
}

void streams_input(struct agent *a, const Drover__ExecInput *m)
{
        struct streams *all = a->streams;
        struct followed *f = followed_find(all, m->request, m->member, m->fence, m->exec);
        int64_t now = clock_boot_ms();
        if (!f || !f->console) {
                tell_unknown(a, m->serial);
                return;
        }
        f->input_until_ms = now;
        answer_input(f, now); /* a repeated input replaces the earlier one */
        console_resize(f->console, m->rows, m->columns);
        console_take(f->console, m->offset, str_make((const char *)m->data.data, m->data.len), m->end);
        f->input_serial = m->serial;
        f->input_until_ms = now + INPUT_MS;
        answer_input(f, now);
        set_timer(all);
}

static void remove_exec_files(const struct followed *f)
{
        int dir = f->at && !f->at->a->users_path ? open_sandbox(f->at) : -1;
        for (int k = 0; k < 2 && dir >= 0; k++) {
                BUF_CLEANUP struct buf name = {0};
                file_name(f, k, &name);
                unlinkat(dir, buf_z(&name), 0);
        }
        if (dir >= 0)
                close(dir);
}

/* A command that stays, and was started by an earlier agent. NULL: the task is none, or nobody can ask for
 * it. */
static struct followed *adopt_exec(struct streams *all, const struct run_event *e)
{
        struct attempt *at = agent_find(all->a, e->id.request, e->id.member, e->id.fence);
        if (!e->known || !(e->id.step & STEP_NO_JOBS) || !(e->id.step & STEP_STAYS) || !at ||
            at->state > ATTEMPT_RUNNING)
                return NULL;
        struct followed *f = followed_new(all, at);
        if (!f)
                return NULL;
        f->exec = EXEC_ADOPTED;
        f->stays = true;
        f->task = e->id;
        f->asked_ms = clock_boot_ms();
        list_exec_files(f);
        set_timer(all);
        return f;
}

bool streams_event(struct agent *a, const struct run_event *e)
{
        struct streams *all = a->streams;
        struct followed *f = all->followed;
        while (f && !(f->exec && run_id_eq(f->task, e->id)))
                f = f->next;
        if (!f)
                f = adopt_exec(all, e);
        if (!f || e->state == RUN_WAITING || e->state == RUN_RUNNING)
                return f != NULL;
        BUF_CLEANUP struct buf why = {0};
        runner_forget(a->runner, e->id);
        look_at_stream(all, f);
        remove_exec_files(f);
        f->over = true;
        f->signaled = e->state == RUN_ENDED && e->signaled;
        f->exit_code = e->state == RUN_ENDED ? e->exit_code : 0;
        if (e->state == RUN_FAILED)
                buf_printf(&why, "it could not be started (%s): %s", e->what, strerror(e->error));
        else if (e->state == RUN_LOST)
                buf_addz(&why, "the agent's shepherd is gone, and the command with it");
        f->error = why.n ? buf_take(&why) : NULL;
        if (f->console)
                console_end(f->console);
        answer_input(f, clock_boot_ms());
        answer_all(all, f);
        set_timer(all);
        return true;
}

void streams_open(struct agent *a)
{
        a->streams = mem_new(struct streams);
        a->streams->a = a;
        a->streams->share = share_new(FOLLOWED_MAX);
        a->streams->timer = timer_new(a->loop, on_timer, a->streams);
}

void streams_close(struct agent *a)
{
        struct streams *all = a->streams;
        if (!all)
                return;
        while (all->questions)
                question_free(all, &all->questions);
        while (all->waits)
                wait_free(&all->waits);
        while (all->followed) {
                all->followed->over = true; /* the runner has ended */
                followed_free(all, all->followed);
        }
        timer_free(all->timer);
        share_free(all->share);
        free(all);
        a->streams = NULL;
}
