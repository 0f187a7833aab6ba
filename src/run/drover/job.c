/* What became of a job at the far server, and its files home. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/u64.h"
#include "base/url.h"
#include "run/batch/append.h"
#include "run/drover/far_number.h"
#include "run/drover/private.h"

#define HOLD_USER         1 /* HTCondor's codes: somebody there held it, and may release it */
#define HOLD_SUBMIT       15
#define HOLD_MEMORY       34
#define HOLD_JOB_DURATION 46
#define HOLD_WALLTIME     47
#define OUTPUTS_MAX       100000 /* as many as an agent delivers */
#define MEMORY_MAX_MIB    (INT64_C(1) << 40)
#define CLOCK_AHEAD_MS    86400000 /* another server's clock may be so much ahead */

static const char *text(const json_t *o, const char *name)
{
        const char *z = json_string_value(json_object_get(o, name));
        return z ? z : "";
}

/* ---- how it ended */

static void measured(const json_t *job, struct run_event *e)
{
        const json_t *ad = json_object_get(job, "ad");
        e->started_ms = far_number_time(ad, "DroverStartedMs", 1);
        if (!e->started_ms)
                e->started_ms = far_number_time(ad, "JobCurrentStartDate", 1000);
        e->ended_ms = far_number_time(job, "ended_ms", 1);
        if (!e->ended_ms)
                e->ended_ms = far_number_time(ad, "CompletionDate", 1000);
        e->ended_ms = u64_min(e->ended_ms, (uint64_t)clock_wall_ms() + CLOCK_AHEAD_MS);
        e->started_ms = u64_min(e->started_ms, e->ended_ms);
        e->cpu_user_ms = far_number_time(ad, "RemoteUserCpu", 1000);
        e->cpu_system_ms = far_number_time(ad, "RemoteSysCpu", 1000);
        e->memory_peak_bytes = (uint64_t)far_number_within(ad, "MemoryUsage", 0, MEMORY_MAX_MIB) << 20;
}

static void completed(struct far_task *t, const json_t *job)
{
        const json_t *file, *outputs = json_object_get(json_object_get(job, "ad"), "DroverOutputs");
        size_t i;
        t->result = (struct run_event){.state = RUN_ENDED};
        t->result.signaled = json_is_integer(json_object_get(job, "exit_signal"));
        t->result.exit_code = t->result.signaled ? (int)far_number_within(job, "exit_signal", 1, SIGRTMAX)
                                                 : (int)far_number_within(job, "exit_code", INT_MIN, INT_MAX);
        measured(job, &t->result);
        if (!t->begun) {
                t->begun = true;
                t->started_ms = t->result.started_ms;
                if (t->far->listed)
                        far_tell(t->far, t, false);
        }
        far_files_deinit(&t->files);
        if (json_array_size(outputs) > OUTPUTS_MAX) {
                BUF_CLEANUP struct buf b = {0};
                buf_printf(&b, "it has %zu outputs, and more than %d are not brought here",
                           json_array_size(outputs), OUTPUTS_MAX);
                far_fail(t, "output", E2BIG, buf_z(&b));
                return;
        }
        json_array_foreach (outputs, i, file) {
                MEM_GROW(t->files.v, t->files.cap, t->files.n + 1);
                t->files.v[t->files.n++] =
                        (struct far_file){.name = mem_dupz(text(file, "Name")),
                                          .size = (uint64_t)far_number_within(file, "Size", 0, INT64_MAX),
                                          .mode = (unsigned)far_number_within(file, "Mode", 0, INT_MAX)};
        }
        t->state = FAR_FETCHING;
        far_settled(t);
        timer_start(t->far->later, 0);
}

static void ended(struct far_task *t, enum run_why why)
{
        uint64_t now = (uint64_t)clock_wall_ms();
        far_over(t,
                 &(struct run_event){.state = RUN_ENDED,
                                     .why = why,
                                     .signaled = true,
                                     .exit_code = 15,
                                     .started_ms = u64_min(t->started_ms, now),
                                     .ended_ms = now},
                 NULL);
}

static void removed(struct far_task *t, const json_t *job)
{
        BUF_CLEANUP struct buf b = {0};
        const char *reason = text(json_object_get(job, "ad"), "RemoveReason");
        if (t->killing) {
                ended(t, t->lease_ended ? RUN_LEASE_ENDED : RUN_KILLED);
        } else if (t->in->lease_over || str_starts(str_of(reason), STR("the submitter's lease ended"))) {
                far_over(t, &(struct run_event){.state = RUN_LOST},
                         "the other server had not heard of this agent for the lease's time");
        } else {
                buf_printf(&b, "removed at %s as %llu.%u: %s", t->far->queue,
                           (unsigned long long)far_number(t), t->member,
                           *reason ? reason : "no reason was given");
                far_fail(t, "job", ECANCELED, buf_z(&b));
        }
}

static void failed(struct far_task *t, const json_t *job)
{
        int64_t code = far_number_within(job, "hold_code", 0, INT_MAX);
        far_act(t, FAR_REMOVE);
        if (code == HOLD_WALLTIME || code == HOLD_JOB_DURATION)
                ended(t, RUN_WALLTIME);
        else if (code == HOLD_MEMORY)
                ended(t, RUN_MEMORY);
        else
                far_fail(t, "job", (int)far_number_within(job, "hold_subcode", INT_MIN, INT_MAX),
                         text(job, "hold_reason"));
}

/* Where on the way it failed. Without an answer it has failed all the same. */
static void on_failed_path(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        json_t *doc = status == 200 ? far_json(body) : NULL, *job = t->failed;
        const json_t *hops = json_object_get(doc, "hops");
        t->call = NULL;
        if (json_is_array(hops)) {
                far_set_hops(t, hops);
        }
        json_decref(doc);
        if (!status) {
                t->dirty = true;
                far_away(t->far, err->text);
                return;
        }
        t->failed = NULL;
        failed(t, job);
        json_decref(job);
}

/* Held by what happened to it, not by somebody there: it is not released there, but where it came from. True:
 * it waits to be released there. */
static bool held(struct far_task *t, json_t *job)
{
        BUF_CLEANUP struct buf path = {0};
        int64_t code = far_number_within(job, "hold_code", 0, INT_MAX);
        if (code == HOLD_USER || code == HOLD_SUBMIT) {
                far_settled(t);
                return true;
        }
        json_decref(t->failed);
        t->failed = json_incref(job);
        buf_printf(&path, "/v1/jobs/%llu.%u/path", (unsigned long long)far_number(t), t->member);
        const struct http_call_spec spec = {.method = "GET", .path = buf_z(&path)};
        t->call = http_client_call(t->far->client, &spec, on_failed_path, t);
        return false;
}

static void runs(struct far_task *t, const json_t *job)
{
        if (!t->begun) {
                t->begun = true;
                t->started_ms = far_number_time(job, "started_ms", 1);
                if (!t->started_ms || t->started_ms > (uint64_t)clock_wall_ms()) /* by its own clock */
                        t->started_ms = (uint64_t)clock_wall_ms();
                if (t->far->listed)
                        far_tell(t->far, t, false);
        }
        if (t->suspended && t->held) { /* it began before the hold came */
                t->held = false;
                far_act(t, FAR_SUSPEND);
        }
        if (str_eqz(str_of(text(job, "state")), "running"))
                far_signals_due(t);
        far_settled(t);
}

/* Else a job that was suspended before the agent was restarted could not be resumed. */
static void learn(struct far_task *t, const json_t *job, const char *state)
{
        bool held = !strcmp(state, "held") && far_number_within(job, "hold_code", 0, INT_MAX) == HOLD_USER &&
                    !strcmp(text(job, "hold_reason"), FAR_REASON);
        t->restored = false;
        t->held = held;
        t->suspended = held || !strcmp(state, "suspended");
}

/* True: it waits there. */
static bool see(struct far_task *t, json_t *job)
{
        const char *state = text(job, "state");
        bool past = json_object_get(json_object_get(job, "ad"), "DroverLog") != NULL;
        if (t->restored)
                learn(t, job, state);
        if (!strcmp(state, "completed") || !strcmp(state, "removed")) {
                if (!past) { /* its row is not written yet */
                        t->dirty = true;
                        t->not_before_ms = clock_boot_ms() + 200;
                        return false;
                }
                if (*state == 'c')
                        completed(t, job);
                else
                        removed(t, job);
        } else if (!strcmp(state, "held")) {
                return held(t, job);
        } else if (!strcmp(state, "running") || !strcmp(state, "suspended")) {
                runs(t, job);
        } else {
                far_settled(t);
                return strcmp(state, "vacating") != 0;
        }
        return false;
}

/* Another one under its number: the far server was made anew, or set back. */
static bool is_another(struct far_task *t, const json_t *job)
{
        const char *global = text(json_object_get(job, "ad"), "GlobalJobId");
        if (!t->global && *global)
                t->global = mem_dupz(global);
        return t->global && *global && strcmp(t->global, global) != 0;
}

static void on_job(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        json_t *doc = status == 200 ? far_json(body) : NULL;
        t->call = NULL;
        if (doc && !is_another(t, doc)) {
                bool waits = see(t, doc);
                if (!far_keep_here(t, doc) && waits && t->signals)
                        far_tell_waits(t);
        } else if (doc || status == 404) {
                far_over(t, &(struct run_event){.state = RUN_LOST},
                         "the other server does not know it any more");
        } else {
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + (status ? 1000 : 0);
                if (!status)
                        far_away(t->far, err->text);
        }
        json_decref(doc);
}

void far_look(struct far_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        if (t->call)
                return;
        t->dirty = false;
        buf_printf(&path, "/v1/jobs/%llu.%u", (unsigned long long)far_number(t), t->member);
        const struct http_call_spec spec = {.method = "GET", .path = buf_z(&path)};
        t->call = http_client_call(t->far->client, &spec, on_job, t);
}

/* ---- files */

/* A stream's own file, by its end: where it belongs; NULL: it is none. */
static const char *stream_of(const struct far_task *t, const char *name, bool *ret_append)
{
        char out[40], err[40];
        snprintf(out, sizeof(out), ".drover_hop.%u.out", t->id.step);
        snprintf(err, sizeof(err), ".drover_hop.%u.err", t->id.step);
        *ret_append = !strcmp(name, out) ? t->out_append : t->err_append;
        return !strcmp(name, out) ? t->out : !strcmp(name, err) ? t->err : NULL;
}

int far_path_in(struct buf *out, const char *dir, const char *name)
{
        struct str rest = str_of(name), one;
        while (rest.n && str_cut(&rest, '/', &one))
                if (one.n == 0 || str_eqz(one, ".") || str_eqz(one, ".."))
                        return -EINVAL;
        buf_printf(out, "%s/%s", dir, name);
        return *name && *name != '/' ? 0 : -EINVAL;
}

int far_destination(const struct far_task *t, const char *dir, const char *name, struct buf *out,
                    bool *ret_append)
{
        bool appending = false;
        const char *stream = stream_of(t, name, &appending);
        *ret_append = stream && appending;
        if (!stream && str_starts(str_of(name), STR(".drover_")) &&
            !str_starts(str_of(name), STR(".drover_out.")))
                return -EINVAL; /* such names are the agent's own */
        if (!stream || *stream != '/')
                return far_path_in(out, dir, stream ? stream : name);
        buf_addz(out, stream);
        return 0;
}

/* From its own file to where it belongs: the sandbox's stream, or the output's name. */
static int put(const struct far_task *t, const char *from, const char *name, unsigned mode)
{
        BUF_CLEANUP struct buf to = {0}, dir = {0};
        bool appending;
        if (far_destination(t, t->sandbox, name, &to, &appending) < 0)
                return -EINVAL;
        buf_str(&dir, str_head(buf_view(&to), (size_t)str_rfind(buf_view(&to), '/')));
        int r = fs_mkdirs(buf_z(&dir), 0755);
        if (r < 0)
                return r;
        if (appending) {
                BUF_CLEANUP struct buf mark = {0};
                buf_printf(&mark, "%s/%s.at", t->sandbox, name);
                return append_once(from, buf_z(&to), buf_z(&mark));
        }
        if (mode)
                chmod(from, (mode & 0777) | 0600);
        return rename(from, buf_z(&to)) < 0 ? -errno : 0;
}

/* Streams that the last place wrote where we see them. */
static int put_shared(const struct far_task *t)
{
        static const char *const names[] = {"out", "err"};
        int r = 0;
        for (int i = 0; i < 2 && r == 0; i++) {
                BUF_CLEANUP struct buf path = {0}, name = {0};
                buf_printf(&name, ".drover_hop.%u.%s", t->id.step, names[i]);
                buf_printf(&path, "%s/%s", t->sandbox, buf_z(&name));
                if (access(buf_z(&path), F_OK) == 0)
                        r = put(t, buf_z(&path), buf_z(&name), 0);
        }
        return r;
}

void far_forget_marks(const struct far_task *t)
{
        static const char *const names[] = {"out", "err"};
        for (int i = 0; i < 2; i++) {
                BUF_CLEANUP struct buf path = {0};
                buf_printf(&path, "%s/.drover_hop.%u.%s.at", t->sandbox, t->id.step, names[i]);
                unlink(buf_z(&path));
        }
}

void far_cannot_keep(struct far_task *t, const char *name, const char *why, int error)
{
        BUF_CLEANUP struct buf b = {0};
        buf_printf(&b, "cannot keep its output%s%s: %s", *name ? " " : "", name, why);
        far_fail(t, "output", error, buf_z(&b));
}

static void cannot_keep(struct far_task *t, const char *name, int error)
{
        far_cannot_keep(t, name, strerror(error), error);
}

static void temporary(const struct far_task *t, struct buf *out)
{
        buf_printf(out, "%s/.drover_hop.%u.new", t->sandbox, t->id.step);
}

static void on_file(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        struct far_file *file = &t->files.v[t->files.at];
        BUF_CLEANUP struct buf from = {0}, why = {0};
        t->call = NULL;
        bool whole = lseek(t->fd, 0, SEEK_END) == (off_t)file->size;
        close(t->fd);
        t->fd = -1;
        if (!status) {
                far_away(t->far, err->text);
                return;
        }
        if (status < 0) {
                far_cannot_keep(t, file->name, err->text, EIO);
                return;
        }
        if (far_later(status)) {
                t->not_before_ms = clock_boot_ms() + 1000;
                return;
        }
        if (status != 200) {
                far_error(&why, status, body);
                far_fail(t, "output", EREMOTEIO, buf_z(&why));
                return;
        }
        if (!whole) {
                far_cannot_keep(t, file->name, "it is smaller than was said", EREMOTEIO);
                return;
        }
        if (t->far->user) { /* all at once, when all are here */
                t->files.at++;
                far_fetch(t);
                return;
        }
        temporary(t, &from);
        int r = put(t, buf_z(&from), file->name, file->mode);
        if (r < 0) {
                cannot_keep(t, file->name, -r);
                return;
        }
        t->files.at++;
        far_fetch(t);
}

void far_file_path(const struct far_task *t, const char *name, struct buf *out)
{
        buf_printf(out, "/v1/jobs/%llu.%u/files/", (unsigned long long)far_number(t), t->member);
        struct str rest = str_of(name), part;
        for (bool first = true; str_cut(&rest, '/', &part); first = false) {
                if (!first)
                        buf_char(out, '/');
                url_escape(out, part);
        }
}

static int new_file(struct far_task *t, size_t index)
{
        BUF_CLEANUP struct buf to = {0};
        if (t->far->user)
                return far_user_output(t, index);
        fs_mkdirs(t->sandbox, 0755);
        temporary(t, &to);
        int fd = open(buf_z(&to), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        return fd < 0 ? -errno : fd;
}

void far_fetch(struct far_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        if (t->files.at == t->files.n && t->far->user) {
                far_place(t);
                return;
        }
        if (t->files.at == t->files.n) {
                struct run_event result = t->result;
                int r = put_shared(t);
                if (r < 0)
                        cannot_keep(t, "stream", -r);
                else
                        far_over(t, &result, NULL);
                return;
        }
        struct far_file *file = &t->files.v[t->files.at];
        t->fd = new_file(t, t->files.at);
        if (t->fd < 0) {
                int error = -t->fd;
                t->fd = -1;
                far_cannot_keep(t, file->name, strerror(error), error);
                return;
        }
        far_file_path(t, file->name, &path);
        const struct http_call_spec spec = {.method = "GET",
                                            .path = buf_z(&path),
                                            .fd = t->fd,
                                            .to_fd = true,
                                            .limited = true,
                                            .limit = file->size,
                                            .timeout_ms = 3600000};
        t->call = http_client_call(t->far->client, &spec, on_file, t);
}
