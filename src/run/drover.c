/* The drover runner: another Drover server as a place. See drover_private.h for how.
 *
 * It speaks the far server's HTTP API on the agent's own loop, as one of its users. Nothing of the far server
 * is believed further than that: a document that is not as docs/openapi.json says is an error, a file's name
 * that would leave the sandbox is refused. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/uuid.h"
#include "run/drover_private.h"

#define WORKING_MAX  6  /* tasks whose files are on the way at the same time */
#define LOOK_MAX     64 /* tasks whose files are looked at in one turn */
#define GATHER_MS    100
#define GATHER_TASKS 1000

static struct far *self(struct runner *r)
{
        return (struct far *)(void *)r;
}

static struct far_task *find(struct far *f, struct run_id id)
{
        return map_get(f->tasks, run_key(&id));
}

/* ---- telling */

static void tell(void *arg)
{
        struct far *f = arg;
        struct run_event *events = f->told;
        size_t count = f->told_count;
        if (count) {
                f->told = NULL;
                f->told_count = f->told_cap = 0;
                f->events(f->arg, events, count);
                for (size_t i = 0; i < count; i++)
                        free((char *)(uintptr_t)events[i].text);
                free(events);
        }
        far_work(f);
}

void far_gather(struct far *f, struct run_event e)
{
        MEM_GROW(f->told, f->told_cap, f->told_count + 1);
        if (e.text)
                e.text = mem_dupz(e.text);
        f->told[f->told_count++] = e;
        timer_start(f->later, 0);
}

void far_tell(struct far *f, const struct far_task *t, bool known)
{
        struct run_event e = {.state = t->begun ? RUN_RUNNING : RUN_WAITING, .started_ms = t->started_ms};
        if (t->state == FAR_OVER) {
                e = t->result;
                e.text = t->text;
        }
        e.id = t->id;
        e.known = known;
        e.slot = UINT32_MAX;
        e.native = (int64_t)far_number(t);
        far_gather(f, e);
}

void far_tell_runner(struct far *f, enum run_state state)
{
        far_gather(f, (struct run_event){.state = state});
}

void far_over(struct far_task *t, const struct run_event *result, const char *text)
{
        if (t->state == FAR_OVER)
                return;
        far_settled(t);
        http_call_cancel(t->call);
        t->call = NULL;
        if (t->fd >= 0)
                close(t->fd);
        t->fd = -1;
        t->state = FAR_OVER;
        t->result = *result;
        t->text = text ? mem_dupz(text) : NULL;
        if (t->far->listed)
                far_tell(t->far, t, false);
        timer_start(t->far->later, 0);
}

void far_fail(struct far_task *t, const char *what, int error, const char *text)
{
        far_over(t, &(struct run_event){.state = RUN_FAILED, .what = what, .error = error}, text);
}

/* ---- the table */

struct far_task *far_task_new(struct far *f, struct run_id id)
{
        struct far_task *t = mem_new(struct far_task);
        t->far = f;
        t->id = id;
        t->fd = -1;
        t->link = f->last;
        *f->last = t;
        f->last = &t->next;
        map_put(f->tasks, run_key(&id), t);
        return t;
}

static void task_free(struct far_task *t)
{
        struct far *f = t->far;
        far_settled(t);
        http_call_cancel(t->call);
        map_take(f->tasks, run_key(&t->id));
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        if (f->last == &t->next)
                f->last = t->link;
        if (t->fd >= 0)
                close(t->fd);
        far_words_deinit(t);
        far_credentials_free(&t->credentials);
        free(t->sandbox);
        free(t->out);
        free(t->err);
        free(t->upload);
        free(t->text);
        free(t->hops);
        free(t);
}

int far_path(struct buf *out, const char *dir, const char *name)
{
        struct str rest = str_of(name), one;
        while (rest.n && str_cut(&rest, '/', &one))
                if (one.n == 0 || str_eqz(one, ".") || str_eqz(one, ".."))
                        return -EINVAL;
        buf_printf(out, "%s/%s", dir, name);
        return *name && *name != '/' ? 0 : -EINVAL;
}

/* Those without a call under way, whose files are to go up or come down: a few at a time. True: more FRESH
 * ones are on their way, or next. */
static bool work_tasks(struct far *f, int64_t now)
{
        size_t busy = 0, looked = 0;
        bool more = false;
        for (struct far_task *t = f->all; t; t = t->next)
                busy += t->call && (t->state == FAR_FRESH || t->state == FAR_FETCHING);
        for (struct far_task *t = f->all, *next; t; t = next) {
                next = t->next;
                more |= t->call && t->state == FAR_FRESH;
                if (t->call || t->given || now < t->not_before_ms)
                        continue;
                if (t->state == FAR_IN && t->dirty) {
                        far_look(t);
                } else if (t->state == FAR_FRESH && (busy >= WORKING_MAX || looked >= LOOK_MAX)) {
                        more = true;
                } else if (t->state == FAR_FRESH) {
                        looked += t->files.n > 0;
                        far_send_files(t);
                        busy += t->call != NULL;
                        more |= t->call != NULL;
                } else if (t->state == FAR_FETCHING && busy < WORKING_MAX) {
                        busy++, far_fetch(t);
                }
        }
        if (looked >= LOOK_MAX)
                timer_start(f->later, 0);
        return more;
}

/* Jobs are handed on together; one whose files are there does not wait long for others' files. */
static bool is_time(const struct far *f, int64_t now, bool more)
{
        size_t ready = 0;
        for (const struct far_task *t = f->all; t; t = t->next) {
                if (t->state != FAR_READY)
                        continue;
                ready++;
                if (!more || now - t->ready_ms >= GATHER_MS || ready >= GATHER_TASKS)
                        return true;
        }
        if (ready)
                timer_start(f->gather, GATHER_MS);
        return false;
}

void far_work(struct far *f)
{
        int64_t now = clock_boot_ms();
        if (!f->up)
                return;
        bool more = work_tasks(f, now);
        if (is_time(f, now, more))
                far_group(f);
        for (struct far_request *r = f->sent, *next; r && f->up; r = next) {
                next = r->next;
                if (r->call || now < r->not_before_ms)
                        continue;
                if (r->number)
                        far_carry(r);
                else
                        far_submit(r);
        }
}

static void gathered(void *far)
{
        far_work(far);
}

/* ---- the verbs */

static void drover_submit(struct runner *r, const struct run_spec *spec)
{
        struct far *f = self(r);
        if (find(f, spec->id))
                return;
        struct far_task *t = far_task_new(f, spec->id);
        t->state = FAR_FRESH;
        t->given = f->gathering = true;
        far_describe(t, spec);
}

static void kill_task(struct far_task *t, enum run_why why)
{
        if (t->state == FAR_OVER || t->killing)
                return;
        t->killing = true;
        t->lease_ended = why == RUN_LEASE_ENDED;
        if (t->state == FAR_FRESH || t->state == FAR_READY)
                far_over(t,
                         &(struct run_event){
                                 .state = RUN_ENDED, .why = why, .signaled = true, .exit_code = 15},
                         NULL);
        else if (far_number(t))
                far_act(t, FAR_REMOVE);
}

static void drover_kill(struct runner *r, struct run_id id, uint64_t grace_ms)
{
        struct far_task *t = find(self(r), id);
        (void)grace_ms; /* the last agent's own */
        if (t)
                kill_task(t, RUN_KILLED);
}

static void drover_suspend(struct runner *r, struct run_id id)
{
        struct far_task *t = find(self(r), id);
        if (!t || t->suspended)
                return;
        t->suspended = true;
        t->held = !t->begun;
        if (far_number(t))
                far_act(t, t->held ? FAR_HOLD : FAR_SUSPEND);
}

static void drover_resume(struct runner *r, struct run_id id)
{
        struct far_task *t = find(self(r), id);
        if (!t || !t->suspended)
                return;
        t->suspended = false;
        if (far_number(t) && !(t->held && t->waits))
                far_act(t, t->held ? FAR_RELEASE : FAR_RESUME);
        t->held = false;
}

static void drover_hold(struct runner *r, struct run_id id)
{
        struct far_task *t = find(self(r), id);
        if (!t || t->begun || t->waits)
                return;
        t->waits = true;
        if (far_number(t))
                far_act(t, FAR_HOLD);
}

static void drover_release(struct runner *r, struct run_id id)
{
        struct far_task *t = find(self(r), id);
        if (!t || !t->waits)
                return;
        t->waits = false;
        if (far_number(t) && !t->held)
                far_act(t, FAR_RELEASE);
}

static void drover_signal(struct runner *r, struct run_id id, int signal)
{
        struct far_task *t = find(self(r), id);
        if (t && t->state == FAR_IN && t->begun)
                far_signal(t, signal);
}

static void drover_credential(struct runner *r, struct run_id id, const struct run_credential *c)
{
        struct far *f = self(r);
        struct far_task *t = find(f, id);
        if (!t || t->state == FAR_OVER)
                return;
        far_credential_set(t->in ? &t->in->credentials : &t->credentials, c);
        timer_start(f->later, 0);
}

static void drover_quote(struct runner *r, const struct run_spec *spec)
{
        far_quote(self(r), spec);
}

static void drover_status(struct runner *r, const struct run_id *ids, size_t count)
{
        struct far *f = self(r);
        for (size_t i = 0; i < count; i++) {
                struct far_task *t = find(f, ids[i]);
                if (t)
                        far_tell(f, t, true);
        }
}

static void forget(struct far_task *t)
{
        struct far *f = t->far;
        struct far_request *in = t->in;
        uint32_t member = t->member;
        if (far_number(t)) {
                if (t->state != FAR_OVER || t->result.state != RUN_ENDED)
                        far_act(t, FAR_REMOVE); /* nobody wants it */
                far_taken(f, in->number, member);
        }
        task_free(t);
        if (in)
                far_request_left(in, member);
}

static void drover_forget(struct runner *r, struct run_id id)
{
        struct far *f = self(r);
        struct far_task *t = find(f, id);
        if (t)
                t->forgotten = f->gathering = true;
}

static void drover_lease(struct runner *r, int64_t until_boot_ms)
{
        struct far *f = self(r);
        f->lease_serial++;
        f->lease_until_ms = until_boot_ms;
        f->lease_given_ms = far_lease_ms(f);
}

void far_lease_ended(struct far *f)
{
        for (struct far_task *t = f->all, *next; t; t = next) {
                next = t->next;
                kill_task(t, RUN_LEASE_ENDED);
        }
}

static void drover_capacity(struct runner *r, struct run_capacity *ret)
{
        *ret = self(r)->capacity;
}

static int drover_where(struct runner *r, struct run_id id, struct run_where *ret)
{
        struct far_task *t = find(self(r), id);
        static const char *const words[] = {"sending", "sending", "sending", "delegated", "fetching", "over"};
        if (!t)
                return -ENOENT;
        *ret = (struct run_where){.word = words[t->state], .hops = str_of(t->hops)};
        if (far_number(t))
                snprintf(ret->native, sizeof(ret->native), "%llu.%u", (unsigned long long)far_number(t),
                         t->member);
        return 0;
}

/* What the agent has written down: now it may leave here, or be gone. */
static void drover_flush(struct runner *r)
{
        struct far *f = self(r);
        if (f->gathering) {
                f->gathering = false;
                timer_start(f->later, 0);
                for (struct far_task *t = f->all, *next; t; t = next) {
                        next = t->next;
                        t->given = false;
                        if (t->forgotten)
                                forget(t);
                }
        }
        far_flush(f);
}

/* ---- open and close */

static const char *setting(const struct runner_config *c, const char *name)
{
        for (size_t i = 0; i < c->setting_count; i++)
                if (!strcmp(c->settings[i].name, name))
                        return c->settings[i].value;
        return NULL;
}

static int check_settings(const struct runner_config *c, struct err *err)
{
        static const char *const known[] = {"server", "token_file", "files", NULL};
        for (size_t i = 0; i < c->setting_count; i++) {
                size_t k = 0;
                while (known[k] && strcmp(known[k], c->settings[i].name) != 0)
                        k++;
                if (!known[k])
                        return err_set(err, -EINVAL,
                                       "drover has no setting '%s': it has server, token_file and files",
                                       c->settings[i].name);
        }
        const char *files = setting(c, "files");
        if (files && strcmp(files, "copied") != 0 && strcmp(files, "shared") != 0)
                return err_set(err, -EINVAL, "files is copied or shared");
        return 0;
}

/* drover-user-token.v1.<fingerprint of the server's CA>.<id>.<secret>. Read anew when we are not in touch, so
 * that it may be replaced. */
static int read_token(struct far *f, struct buf *token, struct str *ret_fingerprint, struct err *err)
{
        struct str rest, part = STR_NONE;
        int r = fs_read(AT_FDCWD, f->token_file, 4096, token, err);
        if (r < 0)
                return r;
        rest = str_trim(buf_view(token));
        for (int i = 0; i < 3; i++)
                str_cut(&rest, '.', &part);
        if (!str_starts(buf_view(token), STR("drover-user-token.v1.")) || part.n != 64)
                return err_set(err, -EINVAL, "%s holds no token of `drover token user`", f->token_file);
        *ret_fingerprint = part;
        return 0;
}

static int make_client(struct far *f, const char *server, struct err *err)
{
        BUF_CLEANUP struct buf token = {0}, address = {0};
        struct str fingerprint, host = str_of(server);
        struct http_client_config c = {.handshake_ms = 10000};
        int r = 0;
        if (str_starts(host, STR("https://"))) {
                host = str_skip(host, 8);
                while (str_ends(host, STR("/")))
                        host.n--;
                if (!f->token_file)
                        return err_set(err, -EINVAL,
                                       "%s needs a token_file, with what `drover token user` prints there",
                                       server);
                r = read_token(f, &token, &fingerprint, err);
                if (r == 0)
                        r = tls_client_new(&(struct tls_config){.ca_fingerprint = fingerprint}, &f->tls, err);
        } else if (!str_starts(host, STR("unix:"))) {
                return err_set(err, -EINVAL,
                               "server is unix:PATH or https://HOST:PORT, of the other server's API");
        }
        if (r < 0)
                return r;
        buf_str(&address, host);
        MEM_CLEANUP char *bearer = str_dupz(str_trim(buf_view(&token)));
        c.address = buf_z(&address);
        c.tls = f->tls;
        c.bearer = *bearer ? bearer : NULL;
        f->client = http_client_new(f->loop, &c);
        return 0;
}

static int open_folder(struct far *f, const struct runner_config *c, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};
        buf_printf(&path, "%s/hop.%s", c->dir, c->queue);
        int r = fs_mkdirs(buf_z(&path), 0700);
        f->dir = buf_take(&path);
        f->fd = r < 0 ? -1 : open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return f->fd < 0 ? err_set(err, -errno, "cannot use %s: %s", f->dir, strerror(errno)) : 0;
}

/* What an end in the middle has left: half a file, the rest of a request that is gone. */
static void sweep(const struct far *f, const char *name)
{
        struct str s = str_of(name), request = str_head(s, s.n < FAR_UUID - 1 ? s.n : FAR_UUID - 1);
        MEM_CLEANUP char *of = str_dupz(request);
        if (uuid_valid(request) &&
            (str_ends(s, STR(".tmp")) ||
             (str_ends(s, STR(".gone")) && faccessat(f->fd, of, F_OK, AT_SYMLINK_NOFOLLOW) < 0)))
                unlinkat(f->fd, name, 0);
}

static int read_folder(struct far *f, struct err *err)
{
        DIR *d = opendir(f->dir);
        struct dirent *e;
        if (!d)
                return err_set(err, -errno, "cannot read %s: %s", f->dir, strerror(errno));
        while ((e = readdir(d))) {
                BUF_CLEANUP struct buf text = {0};
                if (!uuid_valid(str_of(e->d_name))) {
                        sweep(f, e->d_name);
                        continue;
                }
                if (fs_read(f->fd, e->d_name, 64 << 20, &text, NULL) < 0 ||
                    !far_restore(f, buf_view(&text), e->d_name))
                        log_warn("msg=\"a file of a handed-on job cannot be read\" file=%s/%s", f->dir,
                                 e->d_name);
        }
        closedir(d);
        return 0;
}

static void drover_close(struct runner *r, bool kill_all)
{
        struct far *f = self(r);
        (void)kill_all; /* they end with the lease */
        while (f->all)
                task_free(f->all);
        while (f->sent)
                far_request_free(f->sent);
        far_quotes_drop(f);
        http_client_free(f->client);
        tls_unref(f->tls);
        timer_free(f->later);
        timer_free(f->tick);
        timer_free(f->hello);
        timer_free(f->gather);
        map_free(f->tasks);
        map_free(f->known);
        idmap_free(f->requests);
        for (size_t i = 0; i < f->told_count; i++)
                free((char *)(uintptr_t)f->told[i].text);
        free(f->told);
        for (int i = 0; i < FAR_ACTS; i++)
                buf_deinit(&f->acts[i]);
        buf_deinit(&f->acting_ids);
        buf_deinit(&f->signals);
        buf_deinit(&f->taken);
        set_deinit(&f->taking_members);
        if (f->fd >= 0)
                close(f->fd);
        free(f->queue);
        free(f->dir);
        free(f->address);
        free(f->token_file);
        free(f->domain);
        free(f);
}

static int drover_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        const char *server = setting(c, "server"), *files = setting(c, "files");
        int r = check_settings(c, err);
        if (r < 0)
                return r;
        if (!server)
                return err_set(err, -EINVAL, "a queue of the runner drover needs `drover: {server: …}`");
        struct far *f = mem_new(struct far);
        f->base.kind = &runner_drover;
        f->loop = c->loop;
        f->events = c->events;
        f->arg = c->arg;
        f->queue = mem_dupz(c->queue);
        f->address = mem_dupz(server);
        f->token_file = setting(c, "token_file") ? mem_dupz(setting(c, "token_file")) : NULL;
        f->domain = mem_dupz(c->filesystem_domain ? c->filesystem_domain : "");
        f->shared = files && !strcmp(files, "shared");
        f->fd = -1;
        f->last = &f->all;
        f->sent_last = &f->sent;
        f->tasks = map_new();
        f->known = map_new();
        f->requests = idmap_new();
        f->later = timer_new(f->loop, tell, f);
        f->gather = timer_new(f->loop, gathered, f);
        r = open_folder(f, c, err);
        if (r == 0)
                r = make_client(f, server, err);
        if (r == 0)
                r = read_folder(f, err);
        if (r < 0) {
                drover_close(&f->base, false);
                return r;
        }
        far_link_open(f);
        *ret = &f->base;
        return 0;
}

const struct runner_kind runner_drover = {
        .name = "drover",
        .open = drover_open,
        .close = drover_close,
        .flush = drover_flush,
        .submit = drover_submit,
        .kill = drover_kill,
        .suspend = drover_suspend,
        .resume = drover_resume,
        .hold = drover_hold,
        .release = drover_release,
        .signal = drover_signal,
        .quote = drover_quote,
        .status = drover_status,
        .forget = drover_forget,
        .lease = drover_lease,
        .capacity = drover_capacity,
        .credential = drover_credential,
        .where = drover_where,
};
