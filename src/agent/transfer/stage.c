/* Stages inputs into the sandbox, and hands every stage to its worker or child and back.
 *
 * Small files are handled at once. Copies are done by workers, threads that see only a struct stage each:
 * paths and a flag that cancels the work. An owner's jobs have two workers at most.
 */
#include "agent/transfer/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/model/checkpointing.h"
#include "agent/model/expand.h"
#include "agent/model/input_names.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/file_requests.h"
#include "agent/transfer/inputs.h"
#include "agent/transfer/stage_task.h"
#include "agent/transfer/userlog.h"
#include "agent/transfer/userlog_file.h"
#include "base/system/clock.h"
#include "base/system/log.h"

#define WORKERS_MAX  8
#define HELD_MAX     8 /* more, that a file system holds */
#define OWNER_MAX    2 /* workers for one owner's jobs at most, so that other owners find a free one */
#define LOOK_LATE_MS 5000
#define CLOSE_MS     10000 /* time for a worker to notice a cancellation */

/* Threads of one agent, started when there is work for one more. */
struct workers {
        pthread_mutex_t lock;
        pthread_cond_t wake, gone;
        struct worker {
                pthread_t thread;
                struct workers *all;
                struct stage *doing; /* NULL: waits for work */
                bool ended;
                /* the loop's thread looks whether it makes progress */
                bool held; /* the worker makes no progress, and is not counted until it does */
                const struct stage *seen;
                uint64_t steps;
                int64_t since_ms;
        } worker[WORKERS_MAX + HELD_MAX];
        size_t count, held, idle, alive, queued;
        struct stage *first, **last;
        bool quit;
        int64_t looked_ms;
        struct mailbox *back;
};

struct stage *stage_new(struct attempt *at, enum stage_kind kind)
{
        struct stage *s = mem_new(struct stage);

        s->a = at->a;
        s->at = at;
        s->owner = mem_dupz(at->t->m->owner);
        stage_work_init(&s->w, kind, at->fence);
        s->w.hidden = s->a->hidden;
        if (at->t->m->disk_bytes > s->w.holes_max)
                s->w.holes_max = at->t->m->disk_bytes;
        return s;
}

void stage_free(struct stage *s)
{
        stage_work_deinit(&s->w);
        free(s->log_owner);
        free(s->owner);
        free(s);
}

/* ---- the workers' work */

/* The first whose owner has not all the workers that he may; NULL: there is none. Lines of a log do not wait
 * for files: an owner has them written one after the other anyway. */
static struct stage *take_stage(struct workers *all)
{
        for (struct stage **link = &all->first; *link; link = &(*link)->next) {
                struct stage *s = *link;
                size_t same = 0;

                for (size_t i = 0; i < all->count; i++)
                        same += all->worker[i].doing && !all->worker[i].held &&
                                !strcmp(all->worker[i].doing->owner, s->owner);
                if (same >= OWNER_MAX && !all->quit && s->w.kind != STAGE_LOG)
                        continue;
                if (!(*link = s->next))
                        all->last = link;
                all->queued--;
                return s;
        }
        return NULL;
}

static void *work(void *arg)
{
        struct worker *w = arg;
        struct workers *all = w->all;

        pthread_mutex_lock(&all->lock);
        for (;;) {
                struct stage *s = take_stage(all);

                if (!s && all->quit)
                        break;
                if (!s) {
                        all->idle++;
                        pthread_cond_wait(&all->wake, &all->lock);
                        all->idle--;
                        continue;
                }
                w->doing = s;
                if (all->quit)
                        s->w.pace.cancelled = true;
                pthread_mutex_unlock(&all->lock);
                if (s->prepare)
                        s->w.result = stage_work_write(&s->w);
                else
                        stage_work_run(&s->w);
                pthread_mutex_lock(&all->lock);
                w->doing = NULL;
                w->seen = NULL;
                all->held -= w->held;
                w->held = false;
                if (!all->back) /* the agent has not waited, and ends */
                        break;
                mailbox_post(all->back, &s->mail);
        }
        w->ended = true;
        all->alive--;
        pthread_cond_signal(&all->gone);
        pthread_mutex_unlock(&all->lock);
        return NULL;
}

static void add_worker(struct workers *all)
{
        struct worker *w = &all->worker[all->count];

        *w = (struct worker){.all = all};
        if (pthread_create(&w->thread, NULL, work, w) == 0) {
                all->count++;
                all->alive++;
        } else if (all->count == 0) {
                abort();
        }
}

static void enough_workers(struct workers *all)
{
        if (all->queued > all->idle && all->count < WORKERS_MAX + all->held &&
            all->count < WORKERS_MAX + HELD_MAX)
                add_worker(all);
        pthread_cond_signal(&all->wake);
}

void stage_to_worker(struct stage *s)
{
        struct workers *all = s->a->stages->workers;

        pthread_mutex_lock(&all->lock);
        s->next = NULL;
        *all->last = s;
        all->last = &s->next;
        all->queued++;
        enough_workers(all);
        pthread_mutex_unlock(&all->lock);
}

void stage_hand_over(struct stage *s)
{
        s->at->stage = s;
        if (s->a->users_path)
                stage_child_begin(s);
        else
                stage_to_worker(s);
}

void stage_cancel(struct attempt *at)
{
        if (at->stage) {
                if (at->stage->id.step && at->a->runner)
                        runner_kill(at->a->runner, at->stage->id, 0);
                at->stage->at = NULL;
                at->stage->w.pace.cancelled = true;
                at->stage = NULL;
        }
}
/* ---- inputs */

static void done_in(struct attempt *at, struct stage *s)
{
        at->result.bytes_in += s->w.bytes;
        inputs_forget(at);
        for (size_t i = 0; i < s->w.count && s->w.result == 0; i++) {
                struct stage_file *f = &s->w.files[i];

                if (f->mtime_ns == INT64_MIN || checkpoint_restores(at, f->to))
                        continue;
                MEM_GROW(at->inputs, at->input_cap, at->input_count + 1);
                at->inputs[at->input_count++] = (struct staged_input){mem_dupz(f->to), f->mtime_ns, f->size};
        }
        at->result.hold_subcode = s->w.result < 0 ? -s->w.result : 0;
        at->a->news->staged(at, s->w.result < 0 ? HOLD_INPUT : 0, s->w.err.text);
}

/* Adds a file of the cache; takes `path` and `name`. */
static struct stage_file *stage_cached(struct stage *s, struct buf *path, char *name)
{
        struct stage_file *f = stage_work_file(&s->w, buf_take(path), name);

        f->cached = true;
        f->carried = s->a->users_path != NULL;
        return f;
}

/* Adds one element of input_files: a URL that is in the cache, or a path. */
static int add_input(void *arg, struct str element, struct err *err)
{
        struct stage *s = arg;
        struct attempt *at = s->at;
        MEM_CLEANUP char *file = NULL, *key = str_dupz(element);
        struct str path = element, name = inputs_name(element);

        if (inputs_is_url(element, &file)) {
                struct cached *e = inputs_find(at, key);
                struct buf from = {0};

                if (!e)
                        return err_set(err, -EINVAL, "the input " STR_FMT " did not come", STR_ARG(element));
                cache_path(s->a->cache, e, &from);
                stage_cached(s, &from, str_dupz(name));
                return 0;
        }
        if (file)
                path = str_of(file);
        bool named = file && str_search(element, STR("#name=")) >= 0,
             contents = !named && path.n > 1 && path.p[path.n - 1] == '/';
        while (path.n > 1 && path.p[path.n - 1] == '/')
                path.n--;
        if (!named)
                name = inputs_name(path);
        if (!file &&
            (shipped_has(s->shipped, name) || (contents && !at->t->same_domain && at->t->m->spooled_count)))
                return 0;
        if (!file && !at->t->same_domain)
                return err_set(err, -EINVAL, "the input " STR_FMT " is neither in the spool nor visible here",
                               STR_ARG(path));
        if (!name.n)
                return err_set(err, -EINVAL, "the input " STR_FMT " has no name of its own", STR_ARG(path));
        struct stage_file *f = stage_work_file(&s->w, stage_work_join(at->iwd, path), str_dupz(name));
        f->contents = contents;
        return 0;
}

static void add_shipped(struct stage *s)
{
        const struct job_template *m = s->at->t->m;

        for (size_t i = 0; i < m->spooled_count; i++) {
                struct cached *e = inputs_find_shipped(s->at, &m->spooled[i]);
                struct buf path = {0};

                if (!shipped_wants(s->shipped, m->spooled[i].name))
                        continue;
                if (e)
                        cache_path(s->a->cache, e, &path);
                stage_cached(s, &path, mem_dupz(m->spooled[i].name))->executable = m->spooled[i].executable;
        }
}

/* Adds the checkpoint's files behind the inputs, so that a changed input is restored as in the checkpoint.
 */
static void add_restored(struct stage *s)
{
        const struct attempt *at = s->at;

        for (size_t i = 0; i < at->checkpoint.restore_count; i++) {
                struct cached *e = inputs_find_shipped(at, &at->checkpoint.restore[i]);
                struct buf path = {0};

                if (e)
                        cache_path(s->a->cache, e, &path);
                stage_cached(s, &path, mem_dupz(at->checkpoint.restore[i].name))->executable =
                        at->checkpoint.restore[i].executable;
        }
}

bool stage_any_inputs(const struct attempt *at)
{
        const struct job_template *m = at->t->m;

        return m->transfer != TRANSFER_NO &&
               (m->spooled_count || m->input_file_count || m->mount_count || at->checkpoint.restore_count);
}

/* Folders that its containers mount are there before anything is in them. */
static int add_folders(struct stage *s, struct err *err)
{
        const struct job_template *m = s->at->t->m;
        int r = 0;

        for (size_t i = 0; i < m->mount_count && r == 0; i++) {
                struct buf name = {.max = 65536};

                r = expand_text(s->at, m->mounts[i].name, &name, err);
                if (r == 0 && str_ends(buf_view(&name), STR("/"))) {
                        buf_truncate(&name, name.n - 1);
                        stage_work_file(&s->w, mem_dupz(""), buf_take(&name))->folder = true;
                }
                buf_deinit(&name);
        }
        return r;
}

void stage_in(struct attempt *at)
{
        struct agent *a = at->a;
        struct err err = {""};
        char name[64];
        bool first = sandbox_is_shared(at); /* the sandbox must exist before anything is started in it */
        int r = sandbox_make(at);
        struct stage *s = stage_new(at, STAGE_IN);

        sandbox_name(at, name);
        if (r == 0 && stage_any_inputs(at)) {
                struct shipped shipped;

                shipped_read(at, &shipped);
                s->shipped = &shipped;
                r = add_folders(s, &err);
                add_shipped(s);
                if (r == 0)
                        r = inputs_each(at, add_input, s, &err);
                s->shipped = NULL;
                shipped_deinit(&shipped);
                add_restored(s);
        }
        if (r == 0 && (s->w.count > 0 || first)) {
                if (!a->users_path)
                        s->w.sandbox = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                stage_hand_over(s);
                return;
        }
        stage_free(s);
        inputs_forget(at);
        a->news->staged(at, r < 0 ? HOLD_INPUT : 0, err.text);
}

/* ---- the workers and the way back */

void stage_finish(struct stage *s)
{
        struct attempt *at = s->at;
        struct agent *a = s->a;

        if (s->w.kind == STAGE_LOG && !a->stopping) {
                struct userlog_file_result result = {s->w.files[0].again, s->w.files[0].added};

                userlog_written(a, s->log_serial, s->w.result, &result, &s->w.err);
        }
        if (s->w.kind == STAGE_FILE) {
                a->stages->file_calls--;
                if (!a->stopping)
                        file_request_done(a, s->log_serial, &s->w);
        }
        if (at) {
                at->stage = NULL;
                if (s->w.kind == STAGE_CREDENTIALS)
                        stage_done_credentials(at, s);
                else if (s->w.kind == STAGE_IN)
                        done_in(at, s);
                else
                        stage_done_out(at, s);
                agent_turn_later(a);
        }
        stage_free(s);
}

static void on_back(void *arg, struct mail *mail)
{
        struct stage *s = (struct stage *)(void *)mail;

        (void)arg;
        if (s->prepare)
                stage_child_go_on(s);
        else if (s->w.kind == STAGE_LOG)
                stage_log_over(s);
        else
                stage_finish(s);
}

/* ---- workers that make no progress */

void stage_silence(struct buf *out, uint64_t ms, const char *where)
{
        bool minutes = ms % 60000 == 0;

        buf_printf(out, "staging made no progress for %llu %s%s%s",
                   (unsigned long long)(minutes ? ms / 60000 : ms / 1000), minutes ? "min" : "s",
                   where ? " at " : "", where ? where : "");
}

void stage_leave(struct stage *s, const char *why)
{
        struct attempt *at = s->at;

        if (!at)
                return;
        s->at = NULL;
        at->stage = NULL;
        if (s->w.kind == STAGE_IN || s->w.kind == STAGE_CREDENTIALS) {
                s->a->news->give_back(at, why);
        } else {
                at->result.hold_subcode = ETIMEDOUT;
                s->a->news->delivered(at, HOLD_OUTPUT, why);
        }
        agent_turn_later(s->a);
}

/* The worker keeps the stage until the file system answers, and nobody waits for that. */
static void stage_give_up(struct stage *s)
{
        struct agent *a = s->a;
        BUF_CLEANUP struct buf why = {.max = 1024};

        stage_silence(&why, a->config.staging_silence_ms, s->w.where);
        if (stage_work_is_apart(&s->w)) { /* only the owner's later lines or a job's call wait for it */
                log_warn("msg=\"%s\" owner=\"%s\"", LOG_TEXT(buf_view(&why)), LOG_TEXT(str_of(s->owner)));
                return;
        }
        log_error("msg=\"%s: the queues take no jobs until it does\" owner=\"%s\"", LOG_TEXT(buf_view(&why)),
                  LOG_TEXT(str_of(s->owner)));
        free(a->stages->held);
        a->stages->held = mem_dupz(buf_z(&why));
        stage_leave(s, buf_z(&why));
}

/* Returns whether the worker, if it is not held yet, has made no progress for so long. */
static bool is_silent(struct worker *w, int64_t now, uint64_t silence_ms)
{
        const struct stage *s = w->doing;
        uint64_t steps = s ? atomic_load(&s->w.pace.steps) : 0;

        if (!s || w->held || w->seen != s || w->steps != steps) {
                w->seen = s;
                w->steps = steps;
                w->since_ms = now;
                return false;
        }
        return silence_ms && (uint64_t)(now - w->since_ms) >= silence_ms;
}

void stage_tick(struct agent *a)
{
        struct workers *all = a->stages->workers;
        struct stage *silent[WORKERS_MAX + HELD_MAX];
        size_t count = 0;
        int64_t now = clock_boot_ms();
        bool still = now - all->looked_ms > LOOK_LATE_MS; /* the agent stood still itself, and they with it */

        pthread_mutex_lock(&all->lock);
        for (size_t i = 0; i < all->count; i++) {
                struct worker *w = &all->worker[i];

                if (still)
                        w->since_ms = now;
                if (!is_silent(w, now, a->config.staging_silence_ms))
                        continue;
                w->held = true;
                all->held++;
                w->doing->w.pace.cancelled = true;
                silent[count++] = w->doing;
                enough_workers(all);
        }
        size_t held = all->held;
        pthread_mutex_unlock(&all->lock);
        all->looked_ms = now;
        for (size_t i = 0; i < count; i++)
                stage_give_up(silent[i]);
        stage_child_tick(a, now, still);
        if (held == 0 && a->stages->held && count == 0) {
                log_info("msg=\"staging goes on\"");
                free(a->stages->held);
                a->stages->held = NULL;
        }
}

const char *stage_held(const struct agent *a)
{
        return a->stages->held;
}

void stage_workers_open(struct agent *a)
{
        a->stages = mem_new(struct stages);
        struct workers *all = a->stages->workers = mem_new(struct workers);
        all->last = &all->first;
        pthread_mutex_init(&all->lock, NULL);
        pthread_cond_init(&all->wake, NULL);
        pthread_cond_init(&all->gone, NULL);
        all->back = mailbox_new(a->loop, on_back, NULL, a);
}

static void drop_mail(struct mail *mail)
{
        struct stage *s = (struct stage *)(void *)mail;

        if (s->at)
                s->at->stage = NULL;
        stage_free(s);
}

/* Cancels all, and waits for a while. How many have not seen it: a file system holds them. */
static size_t workers_end(struct workers *all)
{
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += CLOSE_MS / 1000;
        all->quit = true;
        for (size_t i = 0; i < all->count; i++)
                if (all->worker[i].doing)
                        all->worker[i].doing->w.pace.cancelled = true;
        pthread_cond_broadcast(&all->wake);
        while (all->alive && pthread_cond_clockwait(&all->gone, &all->lock, CLOCK_MONOTONIC, &until) == 0)
                continue;
        return all->alive;
}

void stage_workers_close(struct agent *a)
{
        if (!a->stages)
                return;
        struct workers *all = a->stages->workers;
        pthread_mutex_lock(&all->lock);
        size_t stuck = workers_end(all);
        struct mailbox *back = all->back;
        all->back = NULL;
        for (size_t i = 0; i < all->count; i++)
                if (all->worker[i].doing && all->worker[i].doing->at)
                        all->worker[i].doing->at->stage = NULL;
        struct stage *left = all->first;
        all->first = NULL;
        all->last = &all->first;
        pthread_mutex_unlock(&all->lock);
        mailbox_free(back, drop_mail);
        for (struct stage *next; left; left = next) { /* no worker was left for these */
                next = left->next;
                drop_mail(&left->mail);
        }
        for (size_t i = 0; i < all->count; i++)
                if (all->worker[i].ended)
                        pthread_join(all->worker[i].thread, NULL);
        if (stuck) { /* memory of stuck workers is kept until the process ends */
                log_warn("msg=\"a file system holds workers that stage files: not waited for\" workers=%zu",
                         stuck);
                a->hidden = NULL;
        } else {
                pthread_mutex_destroy(&all->lock);
                pthread_cond_destroy(&all->wake);
                pthread_cond_destroy(&all->gone);
                free(all);
        }
        free(a->stages->held);
        while (a->stages->children || a->stages->logs) {
                struct stage **list = a->stages->children ? &a->stages->children : &a->stages->logs,
                             *s = *list;

                *list = s->child_next;
                if (s->at)
                        s->at->stage = NULL;
                stage_free(s);
        }
        free(a->stages);
        a->stages = NULL;
}
