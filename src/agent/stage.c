/* Inputs into the sandbox, and the way of every stage: to who does it, and back. What is quick (small files)
 * is done at once; copies are the worker's, a thread that sees nothing but a struct stage: paths, and a word
 * that it is not wanted any more. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "agent/checkpoint.h"
#include "agent/containers.h"
#include "agent/environments.h"
#include "agent/shipped.h"
#include "agent/stage_private.h"
#include "agent/userlog_file.h"

struct worker {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct stage *first, **last;
        bool quit;
        struct mailbox *back;
};

struct stage *stage_new(struct attempt *at, enum stage_kind kind)
{
        struct stage *s = mem_new(struct stage);
        s->a = at->a;
        s->at = at;
        stage_work_init(&s->w, kind, at->fence);
        s->w.hidden = s->a->hidden;
        return s;
}

void stage_free(struct stage *s)
{
        stage_work_deinit(&s->w);
        free(s->log_owner);
        free(s);
}

/* ---- the worker's work */

static void *work(void *arg)
{
        struct worker *w = arg;
        pthread_mutex_lock(&w->lock);
        for (;;) {
                while (!w->first && !w->quit)
                        pthread_cond_wait(&w->wake, &w->lock);
                if (!w->first)
                        break;
                struct stage *s = w->first;
                if (!(w->first = s->next))
                        w->last = &w->first;
                if (w->quit)
                        s->w.cancelled = true;
                pthread_mutex_unlock(&w->lock);
                if (s->prepare)
                        s->w.result = stage_work_write(&s->w);
                else
                        stage_work_run(&s->w);
                mailbox_post(w->back, &s->mail);
                pthread_mutex_lock(&w->lock);
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

void stage_to_worker(struct stage *s)
{
        struct worker *w = s->a->worker;
        pthread_mutex_lock(&w->lock);
        s->next = NULL;
        *w->last = s;
        w->last = &s->next;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
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
                at->stage->w.cancelled = true;
                at->stage = NULL;
        }
        inputs_forget(at);
        environments_forget(at);
        containers_forget(at);
        sends_forget(at);
        spool_forget(at);
}
/* ---- inputs */

static void done_in(struct attempt *at, struct stage *s)
{
        at->bytes_in += s->w.bytes;
        inputs_forget(at);
        for (size_t i = 0; i < s->w.count && s->w.result == 0; i++) {
                struct stage_file *f = &s->w.files[i];
                if (f->mtime_ns == INT64_MIN || checkpoint_restores(at, f->to))
                        continue;
                MEM_GROW(at->inputs, at->input_cap, at->input_count + 1);
                at->inputs[at->input_count++] = (struct staged_input){mem_dupz(f->to), f->mtime_ns, f->size};
        }
        at->hold_subcode = s->w.result < 0 ? -s->w.result : 0;
        attempt_staged(at, s->w.result < 0 ? HOLD_INPUT : 0, s->w.err.text);
}

/* A file of the cache, by its path, which is taken; `name` too. */
static struct stage_file *add_cached(struct stage *s, struct buf *path, char *name)
{
        struct stage_file *f = stage_work_file(&s->w, buf_take(path), name);
        f->cached = true;
        f->carried = s->a->users_path != NULL;
        return f;
}

/* One element of input_files: a URL that is in the cache, or a path. */
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
                add_cached(s, &from, str_dupz(name));
                return 0;
        }
        if (file)
                path = str_of(file);
        bool contents = path.n > 1 && path.p[path.n - 1] == '/';
        while (path.n > 1 && path.p[path.n - 1] == '/')
                path.n--;
        name = inputs_name(path);
        if (!file &&
            (shipped_has(at->t->m, name) || (contents && !at->t->same_domain && at->t->m->n_spooled)))
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
        const Drover__Template *m = s->at->t->m;
        struct shipped shipped;
        shipped_read(s->at, &shipped);
        for (size_t i = 0; i < m->n_spooled; i++) {
                struct cached *e = inputs_find_shipped(s->at, m->spooled[i]);
                struct buf path = {0};
                if (!shipped_wants(&shipped, m->spooled[i]->name))
                        continue;
                if (e)
                        cache_path(s->a->cache, e, &path);
                add_cached(s, &path, mem_dupz(m->spooled[i]->name))->executable = m->spooled[i]->executable;
        }
        shipped_deinit(&shipped);
}

/* Behind the inputs: a file that it has changed is as its checkpoint has it. */
static void add_restored(struct stage *s)
{
        const struct attempt *at = s->at;
        for (size_t i = 0; i < at->restore_count; i++) {
                struct cached *e = inputs_find_shipped(at, &at->restore[i]);
                struct buf path = {0};
                if (e)
                        cache_path(s->a->cache, e, &path);
                add_cached(s, &path, mem_dupz(at->restore[i].name))->executable = at->restore[i].executable;
        }
}

void stage_in(struct attempt *at)
{
        const Drover__Template *m = at->t->m;
        struct agent *a = at->a;
        struct err err = {""};
        char name[64];
        bool none = (m->n_spooled == 0 && m->n_input_files == 0 && at->restore_count == 0) ||
                    m->transfer == DROVER__TRANSFER__TRANSFER_NO,
             first = sandbox_is_shared(at), /* it must be there before anything of it is started */
                made = environments_asked(at);
        if (none && !first && !made) {
                attempt_staged(at, 0, NULL);
                return;
        }
        int r = none && !made ? 0 : inputs_want(at, &err);
        if (r == 0 && made)
                r = environments_want(at, &err);
        if (r > 0)
                return; /* called again when they are here */
        if (r == 0)
                r = sandbox_make(at);
        struct stage *s = stage_new(at, STAGE_IN);
        sandbox_name(at, name);
        if (r == 0 && !none) {
                add_shipped(s);
                r = inputs_each(at, add_input, s, &err);
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
        attempt_staged(at, r < 0 ? HOLD_INPUT : 0, err.text);
}
/* ---- the worker and the way back */

void stage_finish(struct stage *s)
{
        struct attempt *at = s->at;
        struct agent *a = s->a;
        if (s->w.kind == STAGE_LOG && !a->stopping) {
                struct userlog_file_result result = {s->w.files[0].again, s->w.files[0].added};
                userlog_written(a, s->log_serial, s->w.result, &result, &s->w.err);
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
        else
                stage_finish(s);
}

void stage_worker_open(struct agent *a)
{
        struct worker *w = a->worker = mem_new(struct worker);
        w->last = &w->first;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
        w->back = mailbox_new(a->loop, on_back, NULL, a);
        if (pthread_create(&w->thread, NULL, work, w) != 0)
                abort();
}

static void drop_mail(struct mail *mail)
{
        struct stage *s = (struct stage *)(void *)mail;
        if (s->at)
                s->at->stage = NULL;
        stage_free(s);
}

void stage_worker_close(struct agent *a)
{
        struct worker *w = a->worker;
        if (!w)
                return;
        pthread_mutex_lock(&w->lock);
        w->quit = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        mailbox_free(w->back, drop_mail);
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->wake);
        free(w);
        a->worker = NULL;
        while (a->children || a->logs) {
                struct stage **list = a->children ? &a->children : &a->logs, *s = *list;
                *list = s->child_next;
                if (s->at)
                        s->at->stage = NULL;
                stage_free(s);
        }
}
