/* What a far server answers to the agent that hands jobs on to it: the drover runner as it is, on a client, a
 * clock and a loop of this file's own, so that an input is the same each time and waits for nothing.
 *
 * An input is a byte of options and then a row of steps "kind, status, two bytes of length, contents": the
 * answer to the oldest call of that kind, once there is one, or something that the agent does meanwhile. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "ev/children.h"
#include "ev/http_client.h"
#include "run/runner.h"

#define STEPS_MAX 200
#define TURNS_MAX 40 /* of timers, until a call of the wanted kind is there */
#define TASKS     3
#define WALL_MS   INT64_C(1767323045000)
#define FILE_MAX  4096 /* bytes of an output: what is said of its size is the server's to say */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(x)                                                                                             \
        do {                                                                                                 \
                if (!(x)) {                                                                                  \
                        fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                      \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

/* ---- a loop whose time goes on when nothing else is to be done */

struct timer {
        void (*fn)(void *arg);
        void *arg;
        int64_t at; /* -1: it does not run */
        uint64_t serial;
        struct timer *next, **link;
};
static struct timer *timers;
static int64_t now_ms;
static uint64_t serial;

int64_t clock_wall_ms(void)
{
        return WALL_MS + now_ms;
}

int64_t clock_boot_ms(void)
{
        return 1000 + now_ms;
}

int64_t clock_mono_ns(void)
{
        return clock_boot_ms() * 1000000;
}

int64_t clock_thread_ns(void)
{
        return 0;
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
        struct timer *t = calloc(1, sizeof(*t));

        (void)l;
        check(t);
        *t = (struct timer){.fn = fn, .arg = arg, .at = -1, .next = timers, .link = &timers};
        if (timers)
                timers->link = &t->next;
        timers = t;
        return t;
}

void timer_start(struct timer *t, int64_t after_ms)
{
        check(after_ms >= 0);
        t->at = now_ms + after_ms;
        t->serial = serial++;
}

void timer_stop(struct timer *t)
{
        t->at = -1;
}

bool timer_running(const struct timer *t)
{
        return t->at >= 0;
}

void timer_free(struct timer *t)
{
        if (!t)
                return;
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        free(t);
}

/* False: none runs, or with now_only, none is due. */
static bool turn(bool now_only)
{
        struct timer *first = NULL;

        for (struct timer *t = timers; t; t = t->next)
                if (t->at >= 0 &&
                    (!first || t->at < first->at || (t->at == first->at && t->serial < first->serial)))
                        first = t;
        if (!first || (now_only && first->at > now_ms))
                return false;
        if (first->at > now_ms)
                now_ms = first->at;
        first->at = -1;
        first->fn(first->arg);
        return true;
}

/* No program is started without a map of users. */
int child_spawn(struct loop *l, const struct child_spec *spec,
                void (*exited)(void *arg, struct child *c, int status), void *arg, struct child **ret,
                struct err *err)
{
        (void)l, (void)spec, (void)exited, (void)arg, (void)ret;
        return err_set(err, -ENOSYS, "no programs here");
}

pid_t child_pid(const struct child *c)
{
        (void)c;
        abort();
}

void child_kill(struct child *c, int signo)
{
        (void)c, (void)signo;
        abort();
}

void child_forget(struct child *c)
{
        (void)c;
        abort();
}

/* ---- a client whose server is the input */

struct http_call {
        struct http_call *next;
        http_call_fn *fn;
        void *arg;
        int kind, fd;
        bool to_fd, limited;
        uint64_t limit;
};
static struct http_call *calls;

enum { HELLO, EVENTS, CAPACITY, PATHS, REQUESTS, JOB, PATH, FILES, UPLOADS, ACTIONS, READY, OTHER, KINDS };

static int kind_of(const char *path)
{
        static const char *const starts[] = {
                [HELLO] = "/v1/server",      [EVENTS] = "/v1/events",   [CAPACITY] = "/v1/capacity",
                [PATHS] = "/v1/paths",       [UPLOADS] = "/v1/uploads", [ACTIONS] = "/v1/actions",
                [REQUESTS] = "/v1/requests", [JOB] = "/v1/jobs/",       [READY] = "/readyz"};

        if (strstr(path, "/files/"))
                return FILES;
        if (!strncmp(path, "/v1/jobs/", 9) && strstr(path, "/path"))
                return PATH;
        if (!strncmp(path, "/v1/requests/", 13))
                return OTHER;
        for (int i = 0; i < KINDS; i++)
                if (i < (int)(sizeof(starts) / sizeof(*starts)) && starts[i] &&
                    !strncmp(path, starts[i], strlen(starts[i])))
                        return i;
        return OTHER;
}

struct http_client *http_client_new(struct loop *l, const struct http_client_config *c)
{
        (void)l, (void)c;
        return malloc(1);
}

void http_client_free(struct http_client *c)
{
        while (calls) {
                struct http_call *call = calls;

                calls = call->next;
                free(call);
        }
        free(c);
}

void http_client_bearer(struct http_client *c, const char *bearer)
{
        (void)c, (void)bearer;
}

void http_client_move(struct http_client *c, const char *address)
{
        (void)c, (void)address;
        abort(); /* there is one server */
}

struct http_call *http_client_call(struct http_client *c, const struct http_call_spec *spec, http_call_fn *fn,
                                   void *arg)
{
        struct http_call *call = calloc(1, sizeof(*call)), **at = &calls;

        (void)c;
        check(call && spec->path[0] == '/' && fn);
        for (const char *p = spec->path; *p; p++) /* nothing of a server's gets into the head of a call */
                check((unsigned char)*p > ' ' && (unsigned char)*p < 127);
        *call = (struct http_call){.fn = fn,
                                   .arg = arg,
                                   .kind = kind_of(spec->path),
                                   .to_fd = spec->to_fd,
                                   .fd = spec->fd,
                                   .limited = spec->limited,
                                   .limit = spec->limit};
        while (*at)
                at = &(*at)->next;
        *at = call;
        return call;
}

void http_call_cancel(struct http_call *call)
{
        struct http_call **at = &calls;

        while (call && *at && *at != call)
                at = &(*at)->next;
        if (!call)
                return;
        check(*at == call);
        *at = call->next;
        free(call);
}

static struct http_call *find_call(int kind)
{
        struct http_call *c = calls;

        while (c && c->kind != kind)
                c = c->next;
        return c;
}

/* The server leads: the input begins with the answer to HELLO. */
static void answer_ready(void)
{
        struct http_call *call = find_call(READY);

        if (!call)
                return;
        struct http_call ready = *call;
        http_call_cancel(call);
        ready.fn(ready.arg, 200, STR("ready\n"), &(struct err){""});
}

/* The oldest call of its kind, or of any. */
static void answer(int kind, int status, struct str body)
{
        struct http_call *call = find_call(kind), **at = &calls;
        struct err err = {""};

        for (int i = 0; !call && i < TURNS_MAX && turn(false); i++) {
                answer_ready();
                call = find_call(kind);
        }
        if (!call)
                return;
        while (*at != call)
                at = &(*at)->next;
        *at = call->next;
        if (call->to_fd && status == 200) {
                size_t most = call->limited && call->limit < body.n ? (size_t)call->limit : body.n;

                check(write(call->fd, body.p, most) == (ssize_t)most);
                if (most < body.n)
                        status = -1;
                body.n = 0;
        }
        if (status <= 0) {
                err_set(&err, -EIO, "it went away");
                body.n = 0;
        }
        char *exact = malloc(body.n + 1); /* not more than there is may be read */
        check(exact);
        if (body.n)
                memcpy(exact, body.p, body.n);
        char *copy = realloc(exact, body.n ? body.n : 1);
        call->fn(call->arg, status, str_make(copy, body.n), &err);
        free(copy);
        free(call);
        while (turn(true))
                continue;
}

/* ---- what the agent is told */

static char folder[64];
static struct runner *runner;
static bool final[TASKS], told_ready;
static struct run_id ids[TASKS];

static bool is_line(const char *z)
{
        for (; z && *z; z++)
                if ((unsigned char)*z < ' ')
                        return false;
        return true;
}

static bool is_utf8(const char *z)
{
        struct str rest = str_of(z);

        for (size_t n; rest.n && (n = str_utf8(rest)) > 0;)
                rest = str_skip(rest, n);
        return rest.n == 0;
}

static void check_text(const char *text)
{
        if (!text)
                return;
        check(is_utf8(text));
        check(strlen(text) < 100000);
        check(is_line(text));
}

/* Where files of a checkpoint are, and what they shall be: beneath the sandbox. */
static void check_names(const char *text)
{
        struct str rest = str_of(text), line;
        size_t n = 0;

        for (; rest.n && str_cut(&rest, '\n', &line); n++) {
                struct str part;

                check(line.n > 0 && line.p[0] != '/');
                while (line.n && str_cut(&line, '/', &part))
                        check(part.n > 0 && !str_eqz(part, "..") && !str_eqz(part, "."));
        }
        check(n % 2 == 0);
}

/* True: its end was told. */
static bool *final_of(struct run_id id)
{
        check(id.member < TASKS && run_id_eq(id, ids[id.member]));
        return &final[id.member];
}

static void on_tasks(void *arg, const struct run_event *events, size_t count)
{
        (void)arg;
        for (size_t i = 0; i < count; i++) {
                const struct run_event *e = &events[i];
                bool *over = final_of(e->id);

                check_text(e->text);
                check(!*over || e->known || e->state == RUN_WAITING);
                check(!*over || e->state != RUN_RUNNING);
                *over |= e->state == RUN_ENDED || e->state == RUN_FAILED || e->state == RUN_LOST;
                if (e->state == RUN_ENDED) {
                        check(!e->signaled || (e->exit_code >= 1 && e->exit_code <= SIGRTMAX));
                        check(e->started_ms <= e->ended_ms || !e->ended_ms);
                        check(e->ended_ms <= (uint64_t)clock_wall_ms() + 86400000);
                        check(e->memory_peak_bytes <= UINT64_C(1) << 60);
                        check(e->cpu_user_ms < UINT64_MAX / 2 && e->cpu_system_ms < UINT64_MAX / 2);
                }
                check(e->state != RUN_FAILED || e->what);
                check(e->state != RUN_RUNNING || e->started_ms <= (uint64_t)clock_wall_ms() + 86400000);
        }
}

static void on_signal_waits(void *arg, struct run_id id)
{
        (void)arg;
        (void)final_of(id);
}

static void on_checkpointed(void *arg, struct run_id id, const char *files)
{
        (void)arg;
        check(!*final_of(id));
        check(is_utf8(files) && strlen(files) < 100000);
        check_names(files);
}

static void on_quoted(void *arg, const struct run_quote *q)
{
        (void)arg;
        check_text(q->why);
}

static void on_ready(void *arg, uint32_t containment, int hide_error)
{
        (void)arg;
        (void)containment;
        (void)hide_error;
        told_ready = true;
}

static void on_unreachable(void *arg, const char *why)
{
        (void)arg;
        check_text(why);
}

static const struct run_observer observer = {.tasks = on_tasks,
                                             .signal_waits = on_signal_waits,
                                             .checkpointed = on_checkpointed,
                                             .quoted = on_quoted,
                                             .ready = on_ready,
                                             .unreachable = on_unreachable};

static void check_capacity(void)
{
        struct run_capacity c = {0};

        runner->kind->capacity(runner, &c);
        check(c.cpus_milli < UINT64_C(1) << 60 && c.idle_cpus_milli < UINT64_C(1) << 60);
        check(c.memory_bytes <= UINT64_C(1) << 60 && c.node_memory_bytes <= UINT64_C(1) << 60);
        for (unsigned i = 0; i < TASKS; i++) {
                struct run_where w;

                if (runner->kind->where(runner, ids[i], &w) == 0 && w.said)
                        check(is_line(w.said) && is_utf8(w.said));
        }
}

/* ---- the agent's own part */

static void task(unsigned n, unsigned options, bool only_ask)
{
        static char *argv[] = {(char *)"/bin/true", (char *)"x", NULL}, *envp[] = {(char *)"A=b", NULL};
        BUF_CLEANUP struct buf box = {0}, out = {0};

        buf_printf(&box, "%s/box.%u", folder, n);
        buf_printf(&out, "%s/ours/out", folder);
        struct run_spec s = {.id = ids[n],
                             .job = "7",
                             .delegation = {.owner = "ann@here",
                                            .servers = "00000000-0000-4000-8000-00000000d71e",
                                            .label = "",
                                            .path = "",
                                            .credentials = options & 2 ? "token" : NULL,
                                            .checkpoints = {.made = true, .files = "", .when_evicted = true},
                                            .hops_left = 4},
                             .sandbox = buf_z(&box),
                             .path = argv[0],
                             .argv = argv,
                             .envp = envp,
                             .stdout_path = options & 4 ? buf_z(&out) : "out",
                             .stderr_path = "sub/err",
                             .flags = options & 8 ? RUN_STDOUT_APPEND | RUN_STDERR_APPEND : 0,
                             .slot = UINT32_MAX,
                             .cpus_milli = 1000,
                             .memory_bytes = 16 << 20};
        if (only_ask) {
                runner->kind->quote(runner, &s);
                return;
        }
        mkdir(s.sandbox, 0755);
        if (n == 2) {
                BUF_CLEANUP struct buf input = {0};

                buf_printf(&input, "%s/input", s.sandbox);
                fs_write(AT_FDCWD, buf_z(&input), STR("some text"), 0644, false, NULL);
        }
        runner_submit(runner, &s);
        if (options & 2)
                runner->kind->credential(runner, ids[n],
                                         &(struct run_credential){"token", "bearer", STR("secret")});
}

static void act(int what, unsigned n, unsigned options)
{
        struct run_id id = ids[n % TASKS];

        switch (what) {
        case 0: runner_kill(runner, id, 0); break;
        case 1: runner->kind->suspend(runner, id); break;
        case 2: runner->kind->resume(runner, id); break;
        case 3: runner->kind->hold(runner, id); break;
        case 4: runner->kind->release(runner, id); break;
        case 5: runner_signal(runner, id, (int)(n >> 2)); break;
        case 6: task(n % TASKS, options, true); break;
        case 7: runner->kind->status(runner, &id, 1); break;
        case 8: runner->kind->lease(runner, clock_boot_ms() + (int64_t)n * 1000); break;
        case 9: turn(false); break;
        case 10:
                if (final[n % TASKS])
                        runner_forget(runner, id);
                break;
        default: break;
        }
        runner->kind->flush(runner);
        while (turn(true))
                continue;
}

/* ---- the folder */

static void remove_all(int dir, const char *name)
{
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        while (d && (e = readdir(d)))
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                    unlinkat(fd, e->d_name, 0) < 0)
                        remove_all(fd, e->d_name);
        if (d)
                closedir(d);
        unlinkat(dir, name, AT_REMOVEDIR);
}

static void remove_folder(void)
{
        remove_all(AT_FDCWD, folder);
}

/* Nothing was written but into sandboxes, the runner's own folder, and where a stream was meant to go. */
static void check_folder(void)
{
        DIR *d = opendir(folder);
        const struct dirent *e;

        check(d);
        while ((e = readdir(d)))
                check(e->d_name[0] == '.' || !strncmp(e->d_name, "box.", 4) || !strcmp(e->d_name, "hop.q") ||
                      !strcmp(e->d_name, "ours"));
        closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const int statuses[] = {200, 201, 0, 404, 409, 401, 503, 500, 400, -1, 202, 204, 413, -2};
        static const struct run_word settings[] = {{"server", "unix:/nobody"}, {"files", "copied"}},
                                     shared[] = {{"server", "unix:/nobody"}, {"files", "shared"}};
        struct err err = {""};

        if (size < 1)
                return 0;
        if (!*folder) {
                log_init("fuzz", LOG_ERROR);
                snprintf(folder, sizeof(folder), "%s/fuzz-far-%d",
                         access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
                atexit(remove_folder);
        }
        check(mkdir(folder, 0700) == 0);
        unsigned options = data[0];
        now_ms = 0;
        told_ready = false;
        memset(final, 0, sizeof(final));
        const struct runner_config c = {.dir = folder,
                                        .queue = "q",
                                        .instance = "i",
                                        .filesystem_domain = "here",
                                        .settings = options & 1 ? shared : settings,
                                        .setting_count = 2,
                                        .observer = &observer};
        for (unsigned i = 0; i < TASKS; i++)
                ids[i] = (struct run_id){.request = 7, .member = i, .fence = 1};
        check(runner_drover.open(&c, &runner, &err) == 0);
        data++, size--;
        bool submitted = false;
        for (int i = 0; i < STEPS_MAX && size >= 4; i++) {
                size_t n = data[2] + (size_t)data[3] * 256;

                n = n < size - 4 ? n : size - 4;
                if (data[0] < 'a')
                        act(data[0] - 'A', data[1], options);
                else
                        answer((data[0] - 'a') % KINDS,
                               statuses[data[1] % (sizeof(statuses) / sizeof(*statuses))],
                               str_make((const char *)data + 4, n));
                data += 4 + n;
                size -= 4 + n;
                for (unsigned k = 0; told_ready && !submitted && k < TASKS; k++)
                        task(k, options, false);
                submitted = submitted || told_ready;
                runner->kind->flush(runner);
                while (turn(true))
                        continue;
                check_capacity();
        }
        runner->kind->close(runner, false);
        check(!calls);
        check(!timers);
        check_folder();
        remove_folder();
        return 0;
}
