/* Polls the files of followed streams every LOOK_MS, since no notification works on every file system that a
 * sandbox may be on (inotify(7) does not see writes of other machines). After a short answer the next one is
 * not sent before that time, so that a program that prints line by line costs its followers some twenty
 * messages a second.
 */
#include "agent/attempt/streams.h"

#include <errno.h>
#include <string.h>

#include "agent/attempt/exec.h"
#include "agent/attempt/output_tail.h"
#include "agent/outbox/outbox.h"
#include "base/system/clock.h"

#define LOOK_MS       40
#define LOOK_FAST_MS  10    /* at a terminal, where somebody types */
#define IDLE_MS       5000  /* interval of looks without questions */
#define FOLLOWED_MS   30000 /* time after the last question at which the files are closed */
#define WAIT_MAX_MS   60000
#define QUESTIONS_MAX 2000
#define MOST_MAX      (64u << 10)

struct question {
        struct question *next;
        struct followed *of;
        struct streams_question m;
        uint64_t call; /* number of the call to the other server that is under way; 0: none */
        int64_t until_ms;
};
struct streams {
        struct followed_set followed;
        struct question *questions;
        size_t question_count;
        uint64_t last_call;
        struct timer *timer;
};

struct followed_set *streams_followed(struct agent *a)
{
        return &a->streams->followed;
}

bool streams_are_followed(const struct attempt *at)
{
        const struct followed *f =
                followed_find(&at->a->streams->followed, at->request, at->member, at->fence, 0);

        return f && clock_boot_ms() - f->asked_ms < FOLLOWED_MS;
}

/* ---- answers */

/* Adds to the answer which resources the attempt's present step has used so far, if they are measured. */
static void add_usage(const struct followed *f, struct streams_answer *answer)
{
        struct cgroup_usage u;

        if (!f->at || f->over || f->exec.number || !f->at->cgroup || f->at->state != ATTEMPT_RUNNING)
                return;
        cgroup_usage(f->at->cgroup, &u);
        answer->cpu_ms = u.cpu_user_ms + u.cpu_system_ms;
        answer->memory_bytes = u.memory_now_bytes;
}

static void reply_streams(const struct question *q, const uint64_t offset[2], const struct str bytes[2],
                          bool over)
{
        const struct followed_exec *x = &q->of->exec;
        struct streams_answer answer = {.serial = q->m.serial,
                                        .bytes = {bytes[0], bytes[1]},
                                        .offset = {offset[0], offset[1]},
                                        .over = over,
                                        .signaled = over && x->signaled,
                                        .exit_code = over ? x->exit_code : 0,
                                        .error = over ? x->error : NULL};

        add_usage(q->of, &answer);
        outbox_streams(q->of->a, &answer);
}

static void answer_nothing(const struct question *q)
{
        static const struct str none[2] = {{0}};

        reply_streams(q, q->m.offset, none, false);
}

/* Answers with the output of a command's terminal. Returns false if there is nothing to send yet. */
static bool answer_terminal(struct question *q, int64_t now)
{
        struct followed *f = q->of;
        struct console *console = f->exec.console;
        uint64_t offset[2] = {q->m.offset[0], q->m.offset[1]};
        const struct str out[2] = {str_head(console_output(console, &offset[0]), q->m.most)};
        bool over = f->over && console_is_over(console) && offset[0] + out[0].n >= console_written(console);
        bool now_due = over || out[0].n >= q->m.most || now >= q->until_ms ||
                       (out[0].n && now - f->told_ms >= LOOK_FAST_MS);

        if (now_due) {
                reply_streams(q, offset, out, over);
                f->told_ms = now;
        }
        return now_due;
}

/* Answers with what the files have. Returns false if there is nothing to send yet. */
static bool answer_files(struct streams *all, struct question *q, int64_t now)
{
        struct followed *f = q->of;
        struct buf out[2] = {{0}};
        uint64_t offset[2] = {q->m.offset[0], q->m.offset[1]};
        bool full = false, any = false, over = f->over;

        followed_open_files(&all->followed, f);
        for (int k = 0; k < 2; k++) {
                if (!q->m.wanted[k])
                        continue;
                followed_read(f, k, &offset[k], q->m.most, &out[k]);
                full |= out[k].n >= q->m.most;
                any |= out[k].n > 0;
                over = over && offset[k] + out[k].n >= followed_size(f, k);
        }
        bool now_due = over || full || now >= q->until_ms || (any && now - f->told_ms >= LOOK_MS);
        if (now_due) {
                const struct str bytes[2] = {buf_view(&out[0]), buf_view(&out[1])};

                reply_streams(q, offset, bytes, over);
                f->told_ms = now;
        }
        buf_deinit(&out[0]);
        buf_deinit(&out[1]);
        return now_due;
}

/* ---- of attempts that were delegated to another server */

static bool is_remote(const struct followed *f)
{
        return f->at && !f->over && !f->exec.number && f->at->q->backend->runner->kind->output;
}

static void streams_on_remote(void *arg, uint64_t call, const struct run_output *said);

/* Asks the other server, or answers a question whose time is up. Returns whether it was answered. */
static bool answer_remote(struct streams *all, struct question *q, int64_t now)
{
        struct followed_remote *remote = &q->of->remote;
        struct runner *r = q->of->at->q->backend->runner;
        const struct run_id task = attempt_task(q->of->at);

        if (q->call)
                return false;
        if (remote->step != task.step) {
                memcpy(remote->base, remote->next, sizeof(remote->base));
                remote->step = task.step;
                remote->attempt = 0;
        }
        struct run_output_question ask = {
                .attempt = remote->attempt, .last = q->m.last, .wait = now < q->until_ms};
        for (int k = 0; k < 2; k++)
                ask.offset[k] = q->m.offset[k] > remote->base[k] ? q->m.offset[k] - remote->base[k] : 0;
        if (r->kind->output(r, task, &ask, all->last_call + 1, streams_on_remote, all) == 0) {
                q->call = ++all->last_call;
                return false;
        }
        if (now < q->until_ms)
                return false;
        answer_nothing(q);
        return true;
}

/* Answers with the other server's output. Returns whether it did. */
static bool take_remote(struct question *q, const struct run_output *said, int64_t now)
{
        struct followed_remote *remote = &q->of->remote;
        uint64_t offset[2];
        struct str out[2] = {{0}};
        bool any = false;

        q->call = 0;
        if (!said->failed && said->attempt != remote->attempt) {
                if (remote->attempt)
                        memcpy(remote->base, remote->next, sizeof(remote->base));
                remote->attempt = said->attempt;
        }
        for (int k = 0; k < 2; k++) {
                offset[k] = said->failed ? q->m.offset[k] : remote->base[k] + said->offset[k];
                if (q->m.wanted[k] && !said->failed)
                        out[k] = str_head(said->bytes[k], q->m.most);
                any |= out[k].n > 0;
                if (offset[k] + out[k].n > remote->next[k])
                        remote->next[k] = offset[k] + out[k].n;
        }
        if (!any && !(said->over && !said->failed) && now < q->until_ms)
                return false;
        reply_streams(q, offset, out, said->over && !said->failed);
        return true;
}

/* ---- questions */

/* Answers the question. Returns false if there is nothing to send yet. */
static bool question_answer(struct streams *all, struct question *q, int64_t now)
{
        if (is_remote(q->of))
                return answer_remote(all, q, now);
        return q->of->exec.terminal ? answer_terminal(q, now) : answer_files(all, q, now);
}

static void question_free(struct streams *all, struct question **link)
{
        struct question *q = *link;

        *link = q->next;
        all->question_count--;
        free(q);
}

static void set_timer(struct streams *all)
{
        bool fast = false;

        for (const struct question *q = all->questions; q && !fast; q = q->next)
                fast = q->of->exec.terminal;
        if (all->questions)
                timer_start(all->timer, fast ? LOOK_FAST_MS : LOOK_MS);
        else if (all->followed.first)
                timer_start(all->timer, IDLE_MS);
        else
                timer_stop(all->timer);
}

/* Answers every question that can be answered. of: only questions about it; NULL: all. */
static void answer_all(struct streams *all, const struct followed *of, int64_t now)
{
        for (struct question **link = &all->questions; *link;)
                if ((!of || (*link)->of == of) && question_answer(all, *link, now))
                        question_free(all, link);
                else
                        link = &(*link)->next;
}

void streams_changed(struct followed *f)
{
        struct streams *all = f->a->streams;

        answer_all(all, f, clock_boot_ms());
        set_timer(all);
}

static void streams_on_remote(void *arg, uint64_t call, const struct run_output *said)
{
        struct streams *all = arg;
        struct question **link = &all->questions;

        while (*link && (*link)->call != call)
                link = &(*link)->next;
        if (*link && take_remote(*link, said, clock_boot_ms()))
                question_free(all, link);
        set_timer(all);
}

static bool is_asked(const struct streams *all, const struct followed *f)
{
        for (const struct question *q = all->questions; q; q = q->next)
                if (q->of == f)
                        return true;
        return false;
}

static void on_timer(void *arg)
{
        struct streams *all = arg;
        int64_t now = clock_boot_ms();

        answer_all(all, NULL, now);
        for (struct followed *f = all->followed.first, *next; f; f = next) {
                next = f->next;
                exec_answer_input(f, now);
                if (now - f->asked_ms > FOLLOWED_MS && !is_asked(all, f) && (f->over || !f->exec.stays))
                        followed_free(&all->followed, f);
        }
        set_timer(all);
}

void streams_ask(struct agent *a, const struct streams_question *m)
{
        struct streams *all = a->streams;
        struct attempt *at = agent_find(a, m->request, m->member, m->fence);
        struct followed *f = followed_find(&all->followed, m->request, m->member, m->fence, m->exec);
        int64_t now = clock_boot_ms();

        if (!f && at && at->state < ATTEMPT_DELIVERING && !m->exec)
                f = followed_new(&all->followed, at);
        if (!f || all->question_count >= QUESTIONS_MAX) {
                outbox_streams(a, &(struct streams_answer){.serial = m->serial, .unknown = true});
                return;
        }
        struct question *q = mem_new(struct question);
        *q = (struct question){.next = all->questions, .of = f, .m = *m};
        q->m.most = m->most && m->most < MOST_MAX ? m->most : MOST_MAX;
        q->until_ms = now + (int64_t)(m->wait_ms < WAIT_MAX_MS ? m->wait_ms : WAIT_MAX_MS);
        all->questions = q;
        all->question_count++;
        f->asked_ms = now;
        followed_open_files(&all->followed, f);
        for (int k = 0; k < 2 && m->last && !is_remote(f); k++) {
                uint64_t size = followed_size(f, k);

                q->m.offset[k] = size > m->last ? size - m->last : 0;
        }
        if (question_answer(all, q, now))
                question_free(all, &all->questions);
        set_timer(all);
}

void streams_session_lost(struct agent *a)
{
        while (a->streams->questions)
                question_free(a->streams, &a->streams->questions);
        for (struct followed *f = a->streams->followed.first; f; f = f->next)
                f->exec.input_serial = 0;
        set_timer(a->streams);
}

/* ---- attempts */

void streams_end(struct attempt *at)
{
        struct streams *all = at->a->streams;
        struct followed *f = followed_find(&all->followed, at->request, at->member, at->fence, 0);

        if (f && !f->over) {
                followed_open_files(&all->followed, f);
                f->over = true;
                streams_changed(f);
        }
        exec_kill_all(at);
        if (at->state == ATTEMPT_RUNNING && (at->has_sandbox || at->adopted))
                output_tail_keep(at, f != NULL);
}

void streams_forget(struct attempt *at)
{
        if (!at->a->streams)
                return;
        if (!at->a->stopping) /* the runner has ended by then */
                streams_end(at);
        for (struct followed *f = at->a->streams->followed.first; f; f = f->next)
                if (f->at == at)
                        f->at = NULL;
}

void streams_open(struct agent *a)
{
        a->streams = mem_new(struct streams);
        followed_set_init(&a->streams->followed);
        a->streams->timer = timer_new(a->loop, on_timer, a->streams);
}

void streams_close(struct agent *a)
{
        if (!a->streams)
                return;
        while (a->streams->questions)
                question_free(a->streams, &a->streams->questions);
        followed_set_deinit(&a->streams->followed);
        timer_free(a->streams->timer);
        free(a->streams);
        a->streams = NULL;
}
