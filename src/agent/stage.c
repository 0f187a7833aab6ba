/* Inputs into the sandbox, outputs out of it. What is quick (renames, small files) is done at once; copies
 * are the worker's, a thread that sees nothing but a struct stage: paths, and a word that it is not wanted
 * any more. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/checkpoint.h"
#include "agent/credentials.h"
#include "agent/move_files.h"
#include "agent/shipped.h"
#include "agent/userlog_file.h"
#include "base/clock.h"
#include "base/log.h"
#include "ev/mailbox.h"
#include "run/shepherd_protocol.h"

struct stage {
        struct mail mail;
        struct agent *a;
        struct attempt *at; /* NULL: not wanted any more; the loop's thread only */
        struct stage_work w;
        struct stage *next;
        /* done by a child of the job's user */
        bool prepare; /* the worker writes the task first */
        struct run_id id;
        struct stage *child_next;
        uint64_t log_serial;
        char *log_owner;
        char log_user[64];
};
struct worker {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct stage *first, **last;
        bool quit;
        struct mailbox *back;
};

static struct stage *stage_new(struct attempt *at, enum stage_kind kind)
{
        struct stage *s = mem_new(struct stage);
        s->a = at->a;
        s->at = at;
        stage_work_init(&s->w, kind, at->fence);
        return s;
}

static void stage_free(struct stage *s)
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

static void to_worker(struct stage *s)
{
        struct worker *w = s->a->worker;
        pthread_mutex_lock(&w->lock);
        s->next = NULL;
        *w->last = s;
        w->last = &s->next;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
}

/* ---- children: with `users`, whoever the files belong to does the work (see stage_work.h) */

#define CHILD_STEP     0x80000000u       /* marks a run_id as a stage's */
#define CHILD_LIMIT_MS (6ull * 3600000u) /* nothing is staged longer */

static int child_file(struct agent *a, struct stage *s)
{
        char name[48];
        snprintf(name, sizeof(name), "stage.%08x.tmp", s->id.step);
        unlinkat(a->dir, name, 0);
        s->w.data = openat(a->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (s->w.data < 0)
                return err_set(&s->w.err, -errno, "the agent cannot make a file: %s", strerror(errno));
        unlinkat(a->dir, name, 0);
        return 0;
}

static void child_start(struct stage *s, const char *sandbox, const char *owner, const char *user)
{
        struct agent *a = s->a;
        BUF_CLEANUP struct buf path = {0}, marker = {0};
        buf_printf(&path, "%s/%s", a->jobs_path, sandbox);
        buf_printf(&marker, SHEPHERD_MARKER "%s/%llu.%u.%u", a->instance, (unsigned long long)s->id.request,
                   s->id.member, s->id.fence);
        char *argv[] = {(char *)"drover-agent", (char *)"--stage", NULL},
             *envp[] = {(char *)buf_z(&marker), (char *)"PATH=/usr/bin:/bin", NULL};
        bool log = s->w.kind == STAGE_LOG;
        struct run_spec spec = {
                .id = s->id,
                .owner = owner,
                .user = user,
                .sandbox = log ? NULL : buf_z(&path),
                .cwd = log ? "/" : NULL,
                .flags = log ? RUN_STDIN_FD : RUN_STDIN_FD | RUN_MAKE_SANDBOX,
                .stdin_fd = s->w.data,
                .path = a->program,
                .argv = argv,
                .envp = envp,
                .slot = UINT32_MAX,
                .walltime_ms = CHILD_LIMIT_MS,
        };
        if (s->w.kind == STAGE_CREDENTIALS && !s->at)
                spec.flags &= ~(unsigned)RUN_MAKE_SANDBOX; /* a job that has gone needs none */
        if (s->w.kind == STAGE_OUT || s->w.kind == STAGE_REMOVE)
                spec.flags |= RUN_REMOVE_SANDBOX;
        s->child_next = a->children;
        a->children = s;
        runner_submit(a->runner, &spec);
        agent_turn_later(a);
}

static void finish(struct stage *s);

static void child_go_on(struct stage *s)
{
        char name[64];
        s->prepare = false;
        if (s->w.result < 0 || !s->at) {
                finish(s);
                return;
        }
        sandbox_name(s->at, name);
        child_start(s, name, s->at->t->m->owner, s->at->t->user.name);
}

static void child_id(struct stage *s, uint64_t request, uint32_t member, uint32_t fence)
{
        if (!s->a->child_serial) /* not those of an earlier life, which the shepherd may know */
                s->a->child_serial = (uint32_t)clock_boot_ms() * 16;
        s->id = (struct run_id){request, member, fence, CHILD_STEP | ++s->a->child_serial, 0};
}

static void child_begin(struct stage *s)
{
        struct attempt *at = s->at;
        child_id(s, at->request, at->member, at->fence);
        s->w.result = child_file(s->a, s);
        for (size_t i = 0; i < s->w.count && s->w.result == 0; i++)
                s->prepare = s->prepare || s->w.files[i].carried;
        if (s->prepare) {
                to_worker(s);
                return;
        }
        if (s->w.result == 0)
                s->w.result = stage_work_write(&s->w);
        child_go_on(s);
}

void stage_remove(struct agent *a, const char *name, uint64_t request, uint32_t member, uint32_t fence)
{
        struct stat st;
        struct users_entry user;
        if (fstatat(a->jobs, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        MEM_CLEANUP char *owner = users_owner(&a->config, st.st_uid);
        if (!owner || users_find(&a->config, owner, &user, NULL) < 0) {
                log_warn("msg=\"a sandbox stays: `users` do not name its user any more\" sandbox=%s uid=%u",
                         name, (unsigned)st.st_uid);
                return;
        }
        struct stage *s = mem_new(struct stage);
        s->a = a;
        stage_work_init(&s->w, STAGE_REMOVE, fence);
        child_id(s, request, member, fence);
        if (child_file(a, s) < 0 || stage_work_write(&s->w) < 0) {
                stage_free(s);
                return;
        }
        child_start(s, name, owner, user.name);
}

/* An owner's lines leave one after the other, in the order in which they came. */
static bool log_is_under_way(const struct agent *a, const char *owner)
{
        for (const struct stage *s = a->children; s; s = s->child_next)
                if (s->log_owner && !strcmp(s->log_owner, owner))
                        return true;
        return false;
}

static void log_next(struct agent *a)
{
        struct stage **link = &a->logs;
        while (*link && log_is_under_way(a, (*link)->log_owner))
                link = &(*link)->child_next;
        struct stage *s = *link;
        if (!s)
                return;
        *link = s->child_next;
        child_start(s, "", s->log_owner, s->log_user);
}

static void log_wait(struct stage *s, const char *owner, const char *user)
{
        struct stage **last = &s->a->logs;
        s->log_owner = mem_dupz(owner);
        snprintf(s->log_user, sizeof(s->log_user), "%s", user);
        while (*last)
                last = &(*last)->child_next;
        *last = s;
        log_next(s->a);
}

void stage_log(struct agent *a, const Drover__UserLogWrite *m, const struct users_entry *user)
{
        struct stage *s = mem_new(struct stage);
        s->a = a;
        s->log_serial = m->serial;
        stage_work_init(&s->w, STAGE_LOG, 0);
        child_id(s, 0, 0, 0);
        struct stage_file *f = stage_work_file(&s->w, mem_dupz(""), mem_dupz(m->path));
        f->maybe_there = m->maybe_there;
        f->again = true; /* until the child says otherwise */
        int r = child_file(a, s);
        if (r == 0)
                r = stage_work_text(&s->w, f, str_make((const char *)m->text.data, m->text.len));
        if (r == 0)
                r = stage_work_write(&s->w);
        s->w.result = r;
        if (r < 0)
                finish(s);
        else
                log_wait(s, m->owner, user->name);
}

/* What its child left in the file of the task, or why there is nothing. */
static void child_answered(struct stage *s, const struct run_event *e)
{
        if (e->state == RUN_ENDED && !e->signaled && e->exit_code == 0 && stage_work_answer(&s->w) == 0) {
                if (s->at && s->w.kind == STAGE_OUT)
                        s->at->has_sandbox = false;
                return;
        }
        if (e->state == RUN_FAILED)
                s->w.result = err_set(&s->w.err, -EIO, "its files cannot be staged as its user (%s): %s",
                                      e->what, strerror(e->error));
        else
                s->w.result = err_set(&s->w.err, -EIO, "what staged its files was ended before it was done");
}

bool stage_event(struct agent *a, const struct run_event *e)
{
        struct stage **link = &a->children;
        while (*link && !run_id_eq((*link)->id, e->id))
                link = &(*link)->child_next;
        struct stage *s = *link;
        if (!s || e->state == RUN_WAITING || e->state == RUN_RUNNING)
                return s != NULL;
        *link = s->child_next;
        runner_forget(a->runner, e->id);
        if (e->state == RUN_LOST && s->at) { /* the agent ends now; the next one sees to it */
                s->at->stage = NULL;
                s->at = NULL;
        }
        child_answered(s, e);
        if (s->w.result < 0 && s->w.kind == STAGE_REMOVE)
                log_warn("msg=\"cannot empty a sandbox\" error=%s", LOG_TEXT(str_of(s->w.err.text)));
        bool log = s->w.kind == STAGE_LOG;
        finish(s);
        if (log)
                log_next(a);
        return true;
}

static void hand_over(struct stage *s)
{
        s->at->stage = s;
        if (s->a->users_path)
                child_begin(s);
        else
                to_worker(s);
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
        sends_forget(at);
        spool_forget(at);
}

/* ---- credentials */

static void done_credentials(struct attempt *at, struct stage *s)
{
        at->credentials_placed = true;
        at->hold_subcode = s->w.result < 0 ? -s->w.result : 0;
        attempt_staged(at, s->w.result < 0 ? HOLD_CREDENTIAL : 0, s->w.err.text);
}

static void add_credential(void *arg, const char *file, struct str data)
{
        struct stage *s = arg;
        if (s->w.result == 0)
                s->w.result =
                        stage_work_text(&s->w, stage_work_file(&s->w, mem_dupz(""), mem_dupz(file)), data);
}

/* Those of a job that runs are replaced beside what else is done for it: nobody waits for that. */
void stage_credentials(struct attempt *at)
{
        struct agent *a = at->a;
        struct stage *s = stage_new(at, STAGE_CREDENTIALS);
        char name[64];
        child_id(s, at->request, at->member, at->fence);
        s->w.result = child_file(a, s);
        if (s->w.result == 0)
                credentials_each(at, add_credential, s);
        if (s->w.result == 0)
                s->w.result = stage_work_write(&s->w);
        if (at->credentials_placed)
                s->at = NULL;
        else
                at->stage = s;
        sandbox_name(at, name);
        if (s->w.result == 0)
                child_start(s, name, at->t->m->owner, at->t->user.name);
        else
                finish(s);
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
                stage_work_file(&s->w, buf_take(&from), str_dupz(name))->carried = s->a->users_path != NULL;
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
                struct stage_file *f = stage_work_file(&s->w, buf_take(&path), mem_dupz(m->spooled[i]->name));
                f->executable = m->spooled[i]->executable;
                f->carried = s->a->users_path != NULL;
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
                struct stage_file *f = stage_work_file(&s->w, buf_take(&path), mem_dupz(at->restore[i].name));
                f->executable = at->restore[i].executable;
                f->carried = s->a->users_path != NULL;
        }
}

void stage_in(struct attempt *at)
{
        const Drover__Template *m = at->t->m;
        struct agent *a = at->a;
        struct err err = {""};
        char name[64];
        if ((m->n_spooled == 0 && m->n_input_files == 0 && at->restore_count == 0) ||
            m->transfer == DROVER__TRANSFER__TRANSFER_NO) {
                attempt_staged(at, 0, NULL);
                return;
        }
        int r = inputs_want(at, &err);
        if (r > 0)
                return; /* called again when they are here */
        if (r == 0)
                r = sandbox_make(at);
        struct stage *s = stage_new(at, STAGE_IN);
        sandbox_name(at, name);
        if (r == 0) {
                add_shipped(s);
                r = inputs_each(at, add_input, s, &err);
                add_restored(s);
        }
        if (r == 0 && s->w.count > 0) {
                if (!a->users_path)
                        s->w.sandbox = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                hand_over(s);
                return;
        }
        stage_free(s);
        inputs_forget(at);
        attempt_staged(at, r < 0 ? HOLD_INPUT : 0, err.text);
}

/* ---- outputs */

static int add_remaps(struct stage *s)
{
        struct attempt *at = s->at;
        const Drover__Template *m = at->t->m;
        int r = 0;
        for (size_t i = 0; i < m->n_output_remaps && r == 0; i++) {
                BUF_CLEANUP struct buf from = {.max = 65536}, to = {.max = 65536};
                r = expand_text(at, m->output_remaps[i]->name, &from, &s->w.err);
                if (r == 0)
                        r = expand_text(at, m->output_remaps[i]->path, &to, &s->w.err);
                MEM_GROW(s->w.remaps, s->w.remap_cap, s->w.remap_count + 1);
                s->w.remaps[s->w.remap_count++] = (struct stage_remap){buf_take(&from), buf_take(&to)};
        }
        return r;
}

static int add_streams(struct stage *s, struct err *err)
{
        struct attempt *at = s->at;
        const Drover__Template *m = at->t->m;
        uint64_t seen[2] = {0};
        for (size_t i = 0; i < m->n_steps && i <= at->step; i++) {
                const char *const names[2] = {m->steps[i]->stdout_file, m->steps[i]->stderr_file};
                for (int k = 0; k < 2; k++) {
                        BUF_CLEANUP struct buf path = {.max = 65536};
                        int index = expand_stream(at, names[k], &path, err);
                        if (index == -ENOENT || (index >= 0 && (seen[index / 64] >> (index % 64)) & 1))
                                continue;
                        if (index < 0)
                                return index;
                        seen[index / 64] |= 1ull << (index % 64);
                        char from[32];
                        snprintf(from, sizeof(from), ".drover_out.%d", index);
                        stage_work_file(&s->w, mem_dupz(from), stage_work_place(&s->w, buf_view(&path)))
                                ->optional = true;
                }
        }
        return 0;
}

/* What is neither an input nor older than the job. */
static void find_new(struct stage *s)
{
        struct attempt *at = s->at;
        s->w.find_new = true;
        s->w.new_optional = at->adopted;
        s->w.new_since_ms = at->adopted ? (int64_t)at->started_ms : INT64_MIN;
        for (size_t i = 0; i < at->input_count; i++) {
                const struct staged_input *in = &at->inputs[i];
                MEM_GROW(s->w.inputs, s->w.input_cap, s->w.input_count + 1);
                s->w.inputs[s->w.input_count++] =
                        (struct staged_input){mem_dupz(in->name), in->mtime_ns, in->size};
        }
}

static int add_outputs(struct stage *s)
{
        struct attempt *at = s->at;
        const Drover__Template *m = at->t->m;
        const Drover__StepResult *last = at->result_count ? &at->results[at->result_count - 1] : NULL;
        bool failed =
                at->outcome != DROVER__OUTCOME__EXITED || (last && (last->signaled || last->exit_code != 0));
        if (m->transfer == DROVER__TRANSFER__TRANSFER_NO || at->outcome != DROVER__OUTCOME__EXITED ||
            (failed && !m->outputs_on_failure) || (m->n_output_files == 0 && !m->all_outputs))
                return 0;
        int r = add_remaps(s);
        for (size_t i = 0; i < m->n_output_files && r == 0; i++) {
                BUF_CLEANUP struct buf b = {.max = 1 << 20};
                r = expand_text(at, m->output_files[i], &b, &s->w.err);
                struct str rest = buf_view(&b), name;
                while (r == 0 && rest.n && str_cut(&rest, ',', &name)) {
                        name = str_trim(name);
                        if (name.n) /* after a restart it may have been delivered already */
                                r = stage_work_output(&s->w, name, at->adopted);
                }
        }
        if (m->n_output_files || r < 0)
                return r;
        find_new(s);
        return 0;
}

/* Outputs that go to URLs, out of the list of files; *ret is for sends_start. */
static size_t take_sends(struct stage *s, struct send_file **ret)
{
        size_t count = 0, kept = 0;
        *ret = mem_array(NULL, s->w.count + 1, sizeof(**ret));
        for (size_t i = 0; i < s->w.count; i++) {
                struct stage_file *f = &s->w.files[i];
                if (!stage_work_is_url(f->to)) {
                        s->w.files[kept++] = *f;
                } else if (f->missing) {
                        free(f->from);
                        free(f->to);
                } else {
                        (*ret)[count++] = (struct send_file){f->from, f->to, f->at, f->size};
                }
        }
        s->w.count = kept;
        return count;
}

/* What goes to the server's spool: names into at->outputs, and the files' paths. */
static char **take_outputs(struct attempt *at, const struct stage *s)
{
        char **paths = mem_array(NULL, s->w.count + 1, sizeof(*paths));
        for (size_t i = 0; i < s->w.count; i++) {
                const struct stage_file *f = &s->w.files[i];
                if (f->missing)
                        continue;
                MEM_GROW(at->outputs, at->output_cap, at->output_count + 1);
                struct output_ref *o = &at->outputs[at->output_count];
                *o = (struct output_ref){.name = mem_dupz(f->to), .size = f->size, .mode = f->mode};
                o->at = f->at;
                memcpy(o->sha256, f->sha256, 32);
                paths[at->output_count++] = mem_dupz(f->from);
        }
        paths[at->output_count] = NULL;
        return paths;
}

static void done_out(struct attempt *at, struct stage *s)
{
        struct send_file *files;
        at->bytes_out += s->w.bytes;
        if (s->w.result < 0) {
                at->hold_subcode = -s->w.result;
                attempt_delivered(at, HOLD_OUTPUT, s->w.err.text);
                return;
        }
        size_t count = take_sends(s, &files);
        char **paths = s->w.kind == STAGE_HASH ? take_outputs(at, s) : NULL;
        int data = s->w.data;
        s->w.data = -1;
        sends_start(at, files, count, paths, data);
}

/* What can be done at once, is; true when nothing is left. */
static bool quick(struct stage *s)
{
        size_t kept = 0;
        for (size_t i = 0; i < s->w.count; i++) {
                struct stage_file *f = &s->w.files[i];
                if (stage_work_is_url(f->to)) {
                        s->w.files[kept++] = *f;
                        continue;
                }
                int r = move_out(s->w.sandbox, f->from, f->to, s->w.fence, true, &s->w.bytes, &s->w.err);
                if (r == -ENOENT && f->optional &&
                    faccessat(s->w.sandbox, f->from, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        r = 0;
                if (r == -EXDEV) {
                        s->w.files[kept++] = *f;
                        continue;
                }
                free(f->from);
                free(f->to);
                if (r < 0 && s->w.result == 0)
                        s->w.result = r;
        }
        s->w.count = kept;
        return kept == 0 || s->w.result < 0;
}

/* True: the folder was empty and is gone, and the attempt delivered. */
static bool leave_empty(struct attempt *at, const char *name, struct stage *s)
{
        if (unlinkat(at->a->jobs, name, AT_REMOVEDIR) < 0)
                return false;
        at->has_sandbox = false;
        done_out(at, s);
        stage_free(s);
        return true;
}

/* Where outputs go. */
static int add_places(struct stage *s)
{
        BUF_CLEANUP struct buf b = {.max = 65536};
        struct attempt *at = s->at;
        int r = expand_text(at, at->t->m->output_destination, &b, &s->w.err);
        struct str url = str_trim(buf_view(&b));
        while (str_ends(url, STR("/")))
                url.n--;
        s->w.iwd = mem_dupz(at->iwd);
        if (r == 0 && url.n && !stage_work_is_url(buf_z(&b)))
                return err_set(&s->w.err, -EINVAL, "output_destination " STR_FMT " is no URL", STR_ARG(url));
        s->w.destination = r == 0 && url.n ? str_dupz(url) : NULL;
        return r == 0 ? add_streams(s, &s->w.err) : r;
}

/* With `users`: all is named, and the job's user does it. */
static void out_by_child(struct attempt *at, struct stage *s)
{
        int r = add_places(s);
        if (r == 0)
                r = add_outputs(s);
        s->w.result = r;
        if (r == 0 && (s->w.count > 0 || s->w.find_new)) {
                hand_over(s);
                return;
        }
        done_out(at, s);
        stage_free(s);
}

void stage_out(struct attempt *at)
{
        struct agent *a = at->a;
        if (!at->has_sandbox) {
                attempt_delivered(at, 0, NULL);
                return;
        }
        struct stage *s = stage_new(at, at->t->same_domain ? STAGE_OUT : STAGE_HASH);
        if (a->users_path) {
                out_by_child(at, s);
                return;
        }
        int r = add_places(s);
        char name[64];
        sandbox_name(at, name);
        /* most often that is all, and the folder is empty then: removing it says so */
        bool maybe_all =
                r == 0 && s->w.kind == STAGE_OUT && at->t->m->n_output_files == 0 && at->input_count == 0;
        if (maybe_all && s->w.count == 0 && leave_empty(at, name, s))
                return;
        s->w.sandbox = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->w.sandbox < 0 && errno == ENOENT && at->adopted && maybe_all) {
                /* an agent that died since has left it empty, and nothing else removes it before its result
                 * is kept */
                at->has_sandbox = false;
                done_out(at, s);
                stage_free(s);
                return;
        }
        if (s->w.sandbox < 0)
                r = err_set(&s->w.err, -errno, "the job's folder is gone: %s", strerror(errno));
        if (r == 0 && maybe_all && s->w.count > 0 && quick(s) && s->w.result == 0 && leave_empty(at, name, s))
                return;
        if (r == 0 && s->w.result == 0)
                r = add_outputs(s);
        if (r == 0 && s->w.result == 0)
                r = stage_work_find(&s->w);
        if (r == 0)
                r = s->w.result;
        s->w.result = r;
        if (r < 0 || (s->w.kind == STAGE_OUT && quick(s)) || s->w.count == 0) {
                done_out(at, s);
                stage_free(s);
                return;
        }
        hand_over(s);
}

/* Streams and files, under the names that they have in the sandbox. */
static int add_checkpoint(struct stage *s)
{
        struct attempt *at = s->at;
        const Drover__Template *m = at->t->m;
        const Drover__Checkpointing *c = m->checkpointing;
        char *const *lists = c && c->n_files ? c->files : m->output_files;
        size_t count = c && c->n_files ? c->n_files : m->n_output_files;
        int r = 0;
        for (size_t i = 0; i < 2 * m->n_steps; i++) {
                BUF_CLEANUP struct buf name = {0};
                buf_printf(&name, ".drover_out.%zu", i);
                r = stage_work_output(&s->w, buf_view(&name), true);
        }
        for (size_t i = 0; i < count && r == 0; i++) {
                BUF_CLEANUP struct buf b = {.max = 1 << 20};
                r = expand_text(at, lists[i], &b, &s->w.err);
                struct str rest = buf_view(&b), name;
                while (r == 0 && rest.n && str_cut(&rest, ',', &name))
                        if ((name = str_trim(name)).n) {
                                r = stage_work_output(&s->w, name, true);
                                free(s->w.files[s->w.count - 1].to);
                                s->w.files[s->w.count - 1].to = str_dupz(name);
                        }
        }
        if (count == 0 && r == 0)
                find_new(s);
        s->w.new_optional = true; /* it may write on */
        return r;
}

void stage_checkpoint(struct attempt *at)
{
        struct stage *s = stage_new(at, STAGE_HASH);
        char name[64];
        int r = at->has_sandbox ? add_checkpoint(s) : err_set(&s->w.err, -ENOENT, "there is no sandbox");
        s->w.iwd = mem_dupz("");
        sandbox_name(at, name);
        if (r == 0 && !at->a->users_path) {
                s->w.sandbox = openat(at->a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = s->w.sandbox < 0
                            ? err_set(&s->w.err, -errno, "the job's folder is gone: %s", strerror(errno))
                            : 0;
        }
        s->w.result = r;
        if (r == 0) {
                hand_over(s);
                return;
        }
        done_out(at, s);
        stage_free(s);
}

/* ---- the worker and the way back */

static void finish(struct stage *s)
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
                        done_credentials(at, s);
                else if (s->w.kind == STAGE_IN)
                        done_in(at, s);
                else
                        done_out(at, s);
                agent_turn_later(a);
        }
        stage_free(s);
}

static void on_back(void *arg, struct mail *mail)
{
        struct stage *s = (struct stage *)(void *)mail;
        (void)arg;
        if (s->prepare)
                child_go_on(s);
        else
                finish(s);
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
