/* Inputs into the sandbox, outputs out of it. What is quick (renames, small files) is done at once; copies
 * are the worker's, a thread that sees nothing but a struct stage: paths, and a word that it is not wanted
 * any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/move_files.h"
#include "agent/shipped.h"
#include "base/fs.h"
#include "base/log.h"
#include "ev/mailbox.h"

#define FILES_MAX 100000

enum kind { KIND_IN, KIND_OUT, KIND_HASH };
struct file {
        char *from, *to;
        bool contents; /* IN: of a folder, what is in it */
        bool executable;
        bool optional; /* OUT: a stream that was delivered before a restart, or never written */
        bool required; /* OUT: named by the job */
        unsigned char sha256[32];
        uint64_t size;
        uint32_t mode;
        bool missing;
};
struct stage {
        struct mail mail;
        struct attempt *at; /* NULL: not wanted any more; the loop's thread only */
        volatile bool cancelled;
        enum kind kind;
        int sandbox;
        uint32_t fence;
        struct file *files;
        size_t count, cap;
        int result;
        int hold_subcode;
        uint64_t bytes;
        struct err err;
        struct stage *next;
};
struct worker {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct stage *first, **last;
        bool quit;
        struct mailbox *back;
};

static struct stage *stage_new(struct attempt *at, enum kind kind)
{
        struct stage *s = mem_new(struct stage);
        s->at = at;
        s->kind = kind;
        s->sandbox = -1;
        s->fence = at->fence;
        return s;
}

static void stage_free(struct stage *s)
{
        for (size_t i = 0; i < s->count; i++) {
                free(s->files[i].from);
                free(s->files[i].to);
        }
        free(s->files);
        if (s->sandbox >= 0)
                close(s->sandbox);
        free(s);
}

static struct file *stage_file(struct stage *s, char *from, char *to)
{
        MEM_GROW(s->files, s->cap, s->count + 1);
        struct file *f = &s->files[s->count++];
        *f = (struct file){.from = from, .to = to};
        return f;
}

/* ---- the worker's work */

static int hash_file(struct stage *s, struct file *f)
{
        int fd = fs_open_beneath(s->sandbox, f->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        struct stat st;
        if (fd < 0)
                return fd;
        int r = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
        EVP_MD_CTX *md = EVP_MD_CTX_new();
        EVP_DigestInit_ex(md, EVP_sha256(), NULL);
        MEM_CLEANUP char *room = mem_alloc(1 << 17);
        while (r == 0) {
                ssize_t n = read(fd, room, 1 << 17);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        r = -errno;
                if (n <= 0)
                        break;
                f->size += (uint64_t)n;
                EVP_DigestUpdate(md, room, (size_t)n);
        }
        EVP_DigestFinal_ex(md, f->sha256, NULL);
        EVP_MD_CTX_free(md);
        close(fd);
        f->mode = st.st_mode & 0777;
        return r;
}

static int do_file(struct stage *s, struct file *f)
{
        if (s->kind == KIND_IN)
                return move_in(f->from, s->sandbox, f->to, f->contents, f->executable ? 0111 : 0, &s->bytes,
                               &s->err);
        int r;
        if (s->kind == KIND_OUT) {
                r = move_out(s->sandbox, f->from, f->to, s->fence, false, &s->bytes, &s->err);
        } else {
                r = hash_file(s, f);
                s->bytes += f->size;
                if (r < 0)
                        err_set(&s->err, r, "cannot read the output %s: %s", f->from, strerror(-r));
        }
        if (r == -ENOENT && f->optional && faccessat(s->sandbox, f->from, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
                f->missing = true;
                r = 0;
        }
        return r;
}

static void do_stage(struct stage *s)
{
        for (size_t i = 0; i < s->count && s->result == 0 && !s->cancelled; i++)
                s->result = do_file(s, &s->files[i]);
}

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
                        s->cancelled = true;
                pthread_mutex_unlock(&w->lock);
                do_stage(s);
                mailbox_post(w->back, &s->mail);
                pthread_mutex_lock(&w->lock);
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

static void hand_over(struct stage *s)
{
        struct worker *w = s->at->a->worker;
        s->at->stage = s;
        pthread_mutex_lock(&w->lock);
        s->next = NULL;
        *w->last = s;
        w->last = &s->next;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
}

void stage_cancel(struct attempt *at)
{
        if (at->stage) {
                at->stage->at = NULL;
                at->stage->cancelled = true;
                at->stage = NULL;
        }
        spool_forget(at);
}

/* ---- inputs */

static void remember_input(struct attempt *at, int sandbox, const char *name)
{
        struct stat st;
        if (strchr(name, '/') || fstatat(sandbox, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return;
        MEM_GROW(at->inputs, at->input_cap, at->input_count + 1);
        at->inputs[at->input_count++] = (struct staged_input){
                mem_dupz(name), (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
                (uint64_t)st.st_size};
}

static void done_in(struct attempt *at, struct stage *s)
{
        at->bytes_in += s->bytes;
        for (size_t i = 0; i < s->count && s->result == 0; i++)
                remember_input(at, s->sandbox, s->files[i].to);
        at->hold_subcode = s->result < 0 ? -s->result : 0;
        attempt_staged(at, s->result < 0 ? HOLD_INPUT : 0, s->err.text);
}

static char *join(const char *dir, struct str name)
{
        struct buf b = {0};
        if (!str_starts(name, STR("/"))) {
                buf_addz(&b, dir);
                buf_char(&b, '/');
        }
        buf_str(&b, name);
        return buf_take(&b);
}

static struct str base_name(struct str path)
{
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

/* The file itself, or something in the folder of that name. */
static bool is_or_is_in(struct str file, struct str name)
{
        return str_starts(file, name) && (file.n == name.n || file.p[name.n] == '/');
}

static bool is_spooled(const Drover__Template *m, struct str name)
{
        for (size_t i = 0; i < m->n_spooled; i++)
                if (is_or_is_in(str_of(m->spooled[i]->name), name))
                        return true;
        return false;
}

static void shipped_add(const struct attempt *at, const char *text, struct shipped *s)
{
        BUF_CLEANUP struct buf b = {.max = 1 << 20};
        if (expand_text(at, text, &b, NULL) < 0)
                return; /* said where it is used */
        struct str rest = buf_view(&b), path;
        while (rest.n && str_cut(&rest, ',', &path)) {
                path = str_trim(path);
                s->all |= path.n > 1 && path.p[path.n - 1] == '/';
                buf_str(&s->names, base_name(path));
                buf_char(&s->names, '\n');
        }
}

void shipped_read(const struct attempt *at, struct shipped *ret)
{
        const Drover__Template *m = at->t->m;
        *ret = (struct shipped){0};
        for (size_t i = 0; i < m->n_steps; i++) {
                shipped_add(at, m->steps[i]->executable, ret);
                shipped_add(at, m->steps[i]->stdin_file, ret);
        }
        for (size_t i = 0; i < m->n_input_files; i++)
                shipped_add(at, m->input_files[i], ret);
}

void shipped_deinit(struct shipped *s)
{
        buf_deinit(&s->names);
}

bool shipped_wants(const struct shipped *s, const char *name)
{
        struct str rest = buf_view(&s->names), one;
        while (!s->all && rest.n && str_cut(&rest, '\n', &one))
                if (one.n && is_or_is_in(str_of(name), one))
                        return true;
        return s->all;
}

bool shipped_name_valid(const char *name)
{
        struct str rest = str_of(name), part;
        if (!*name)
                return false;
        while (str_cut(&rest, '/', &part))
                if (part.n == 0 || str_eqz(part, ".") || str_eqz(part, ".."))
                        return false;
        return true;
}

/* One entry of input_files, which may be a list after expansion. 0 or -EINVAL. */
static int add_inputs(struct stage *s, const char *text, struct err *err)
{
        struct attempt *at = s->at;
        BUF_CLEANUP struct buf b = {.max = 1 << 20};
        int r = expand_text(at, text, &b, err);
        struct str rest = buf_view(&b), path;
        while (r == 0 && rest.n && str_cut(&rest, ',', &path)) {
                path = str_trim(path);
                bool contents = path.n > 1 && path.p[path.n - 1] == '/';
                while (path.n > 1 && path.p[path.n - 1] == '/')
                        path.n--;
                struct str name = base_name(path);
                if (!path.n || is_spooled(at->t->m, name) ||
                    (contents && !at->t->same_domain && at->t->m->n_spooled))
                        continue;
                if (str_search(path, STR("://")) > 0)
                        return err_set(err, -EINVAL, "this agent cannot fetch the input " STR_FMT,
                                       STR_ARG(path));
                if (!at->t->same_domain)
                        return err_set(err, -EINVAL,
                                       "the input " STR_FMT " is neither in the spool nor visible here",
                                       STR_ARG(path));
                if (str_eqz(name, ".") || str_eqz(name, ".."))
                        return err_set(err, -EINVAL, "the input " STR_FMT " has no name of its own",
                                       STR_ARG(path));
                struct file *f = stage_file(s, join(at->iwd, path), str_dupz(name));
                f->contents = contents;
        }
        return r;
}

void stage_in(struct attempt *at)
{
        const Drover__Template *m = at->t->m;
        struct agent *a = at->a;
        if ((m->n_spooled == 0 && m->n_input_files == 0) || m->transfer == DROVER__TRANSFER__TRANSFER_NO) {
                attempt_staged(at, 0, NULL);
                return;
        }
        if (!spool_want(at))
                return; /* called again when they are here */
        int r = sandbox_make(at);
        struct stage *s = stage_new(at, KIND_IN);
        char name[64];
        sandbox_name(at, name);
        struct shipped shipped;
        shipped_read(at, &shipped);
        for (size_t i = 0; i < m->n_spooled; i++) {
                struct buf path = {0};
                if (!shipped_wants(&shipped, m->spooled[i]->name))
                        continue;
                spool_path(a, m->spooled[i]->sha256.data, &path);
                stage_file(s, buf_take(&path), mem_dupz(m->spooled[i]->name))->executable =
                        m->spooled[i]->executable;
        }
        shipped_deinit(&shipped);
        struct err err = {""};
        for (size_t i = 0; i < m->n_input_files && r == 0; i++)
                r = add_inputs(s, m->input_files[i], &err);
        if (r == 0 && s->count > 0) {
                s->sandbox = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                hand_over(s);
                return;
        }
        stage_free(s);
        attempt_staged(at, r < 0 ? HOLD_INPUT : 0, err.text);
}

/* ---- outputs */

static bool is_new(const struct attempt *at, int sandbox, const char *name)
{
        struct stat st;
        if (fstatat(sandbox, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return false;
        int64_t mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        for (size_t i = 0; i < at->input_count; i++)
                if (!strcmp(at->inputs[i].name, name))
                        return at->inputs[i].mtime_ns != mtime || at->inputs[i].size != (uint64_t)st.st_size;
        return !at->adopted || mtime / 1000000 >= (int64_t)at->started_ms;
}

/* Where an output belongs: what the job remaps it to, else its last component; relative to iwd. */
static int destination(const struct attempt *at, const char *name, struct buf *out, struct err *err)
{
        const Drover__Template *m = at->t->m;
        for (size_t i = 0; i < m->n_output_remaps; i++) {
                BUF_CLEANUP struct buf from = {.max = 65536};
                int r = expand_text(at, m->output_remaps[i]->name, &from, err);
                if (r < 0)
                        return r;
                if (str_eqz(buf_view(&from), name))
                        return expand_text(at, m->output_remaps[i]->path, out, err);
        }
        buf_str(out, base_name(str_of(name)));
        return 0;
}

static int add_output(struct stage *s, struct str name, bool required, struct err *err)
{
        struct attempt *at = s->at;
        MEM_CLEANUP char *from = str_dupz(name);
        BUF_CLEANUP struct buf to = {.max = 65536};
        int r = destination(at, from, &to, err);
        if (r < 0)
                return r;
        if (s->count >= FILES_MAX)
                return err_set(err, -E2BIG, "the job has more than %d outputs", FILES_MAX);
        struct file *f = stage_file(s, str_dupz(name),
                                    s->kind == KIND_OUT ? join(at->iwd, buf_view(&to)) : buf_take(&to));
        f->required = required;
        f->optional = at->adopted; /* it may have been delivered before the restart */
        return 0;
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
                        struct file *f = stage_file(s, mem_dupz(from),
                                                    s->kind == KIND_OUT ? join(at->iwd, buf_view(&path))
                                                                        : buf_take(&path));
                        f->optional = true;
                }
        }
        return 0;
}

static int add_outputs(struct stage *s, int sandbox, struct err *err)
{
        struct attempt *at = s->at;
        const Drover__Template *m = at->t->m;
        const Drover__StepResult *last = at->result_count ? &at->results[at->result_count - 1] : NULL;
        bool failed =
                at->outcome != DROVER__OUTCOME__EXITED || (last && (last->signaled || last->exit_code != 0));
        int r = 0;
        if (m->transfer == DROVER__TRANSFER__TRANSFER_NO || at->outcome != DROVER__OUTCOME__EXITED ||
            (failed && !m->outputs_on_failure))
                return 0;
        for (size_t i = 0; i < m->n_output_files && r == 0; i++) {
                BUF_CLEANUP struct buf b = {.max = 1 << 20};
                r = expand_text(at, m->output_files[i], &b, err);
                struct str rest = buf_view(&b), name;
                while (r == 0 && rest.n && str_cut(&rest, ',', &name)) {
                        name = str_trim(name);
                        if (name.n)
                                r = add_output(s, name, !failed, err);
                }
        }
        if (m->n_output_files || !m->all_outputs || r < 0)
                return r;
        int fd = openat(sandbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        while (dir && r == 0 && (e = readdir(dir)))
                if (e->d_name[0] != '.' || (strncmp(e->d_name, ".drover_", 8) != 0 &&
                                            strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0))
                        if (is_new(at, sandbox, e->d_name))
                                r = add_output(s, str_of(e->d_name), false, err);
        if (dir)
                closedir(dir);
        return r;
}

static void done_out(struct attempt *at, struct stage *s)
{
        at->bytes_out += s->bytes;
        if (s->result < 0) {
                at->hold_subcode = -s->result;
                attempt_delivered(at, HOLD_OUTPUT, s->err.text);
                return;
        }
        if (s->kind == KIND_OUT) {
                attempt_delivered(at, 0, NULL);
                return;
        }
        char **paths = mem_array(NULL, s->count + 1, sizeof(*paths));
        for (size_t i = 0; i < s->count; i++) {
                struct file *f = &s->files[i];
                if (f->missing)
                        continue;
                MEM_GROW(at->outputs, at->output_cap, at->output_count + 1);
                struct output_ref *o = &at->outputs[at->output_count];
                *o = (struct output_ref){.name = mem_dupz(f->to), .size = f->size, .mode = f->mode};
                memcpy(o->sha256, f->sha256, 32);
                paths[at->output_count++] = mem_dupz(f->from);
        }
        spool_upload(at, paths);
}

/* What can be done at once, is; true when nothing is left. */
static bool quick(struct stage *s)
{
        size_t kept = 0;
        for (size_t i = 0; i < s->count; i++) {
                struct file *f = &s->files[i];
                int r = move_out(s->sandbox, f->from, f->to, s->fence, true, &s->bytes, &s->err);
                if (r == -ENOENT && f->optional &&
                    faccessat(s->sandbox, f->from, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        r = 0;
                if (r == -EXDEV) {
                        s->files[kept++] = *f;
                        continue;
                }
                free(f->from);
                free(f->to);
                if (r < 0 && s->result == 0)
                        s->result = r;
        }
        s->count = kept;
        return kept == 0 || s->result < 0;
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

void stage_out(struct attempt *at)
{
        struct agent *a = at->a;
        if (!at->has_sandbox) {
                attempt_delivered(at, 0, NULL);
                return;
        }
        struct stage *s = stage_new(at, at->t->same_domain ? KIND_OUT : KIND_HASH);
        int r = add_streams(s, &s->err);
        char name[64];
        sandbox_name(at, name);
        /* most often that is all, and the folder is empty then: removing it says so */
        bool maybe_all =
                r == 0 && s->kind == KIND_OUT && at->t->m->n_output_files == 0 && at->input_count == 0;
        if (maybe_all && s->count == 0 && leave_empty(at, name, s))
                return;
        s->sandbox = openat(a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->sandbox < 0)
                r = err_set(&s->err, -errno, "the job's folder is gone: %s", strerror(errno));
        if (r == 0 && maybe_all && s->count > 0 && quick(s) && s->result == 0 && leave_empty(at, name, s))
                return;
        if (r == 0 && s->result == 0)
                r = add_outputs(s, s->sandbox, &s->err);
        if (r == 0)
                r = s->result;
        s->result = r;
        if (r < 0 || (s->kind == KIND_OUT && quick(s)) || s->count == 0) {
                done_out(at, s);
                stage_free(s);
                return;
        }
        hand_over(s);
}

/* ---- the worker and the way back */

static void on_back(void *arg, struct mail *mail)
{
        struct agent *a = arg;
        struct stage *s = (struct stage *)(void *)mail;
        struct attempt *at = s->at;
        if (at) {
                at->stage = NULL;
                if (s->kind == KIND_IN)
                        done_in(at, s);
                else
                        done_out(at, s);
                agent_turn_later(a);
        }
        stage_free(s);
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
}
