/* The process runner: runs tasks as processes on this machine, under the shepherd.
 *
 * It keeps no table of its own: the shepherd knows the tasks, and the agent its attempts. A task submitted
 * while there is no shepherd is reported as lost at once, because an earlier shepherd may have started it.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "run/process/shepherd_client.h"
#include "run/runner.h"
#include "run/task/event_queue.h"

_Static_assert(sizeof(struct run_id) == sizeof(struct shepherd_id), "the same bytes");

struct process_runner {
        struct runner base;
        struct shepherd_client *client;
        struct event_queue *events;
        bool listed, takes_guests, takes_terminals;
        uint32_t parts; /* parts of containment */
        int no_view;
};

static const char *what_failed(uint32_t where)
{
        static const char *const names[] = {
                [SHEPHERD_AT_REQUEST] = "request",
                [SHEPHERD_AT_FORK] = "process",
                [SHEPHERD_AT_CGROUP] = "control group",
                [SHEPHERD_AT_RLIMIT] = "limit",
                [SHEPHERD_AT_USER] = "user",
                [SHEPHERD_AT_SANDBOX] = "sandbox",
                [SHEPHERD_AT_CWD] = "folder",
                [SHEPHERD_AT_STDIN] = "stdin",
                [SHEPHERD_AT_STDOUT] = "stdout",
                [SHEPHERD_AT_STDERR] = "stderr",
                [SHEPHERD_AT_EXEC] = "program",
                [SHEPHERD_AT_CONTAINMENT] = "containment",
                [SHEPHERD_AT_DEADLINE] = RUN_TOO_LATE,
        };

        return where < sizeof(names) / sizeof(*names) ? names[where] : "start";
}

static void on_child(struct process_runner *r, const struct shepherd_child *c)
{
        static const enum run_state states[] = {[SHEPHERD_RUNNING] = RUN_RUNNING,
                                                [SHEPHERD_EXITED] = RUN_ENDED,
                                                [SHEPHERD_FAILED] = RUN_FAILED};

        if (c->record.size < sizeof(*c) || c->state > SHEPHERD_FAILED)
                return;
        struct run_event e = {
                .state = states[c->state],
                .known = !r->listed,
                .slot = c->slot,
                .native = c->pid,
                .why = (enum run_why)c->why,
                .signaled = WIFSIGNALED(c->status),
                .exit_code = WIFSIGNALED(c->status) ? WTERMSIG(c->status) : WEXITSTATUS(c->status),
                .started_ms = c->started_ms,
                .ended_ms = c->ended_ms,
                .cpu_user_ms = c->cpu_user_us / 1000,
                .cpu_system_ms = c->cpu_system_us / 1000,
                .memory_peak_bytes = c->memory_peak_bytes,
                .error = (int)c->error,
                .what = c->state == SHEPHERD_FAILED ? what_failed(c->where) : NULL,
        };
        memcpy(&e.id, &c->id, sizeof(e.id));
        event_queue_task(r->events, &e);
}

static void on_record(void *arg, const struct shepherd_record *record)
{
        struct process_runner *r = arg;

        if (record->kind == SHEPHERD_WELCOME) {
                const struct shepherd_hello *w = (const void *)record;
                bool whole = record->size >= sizeof(*w);

                r->listed = false;
                r->takes_guests = whole && w->version >= 4;
                r->takes_terminals = whole && w->version >= 5;
                r->parts = whole ? w->parts & SHEPHERD_CONTAINMENT : 0;
                r->no_view = whole ? w->no_view : 0;
        } else if (record->kind == SHEPHERD_CHILD) {
                on_child(r, (const void *)record);
        } else if (record->kind == SHEPHERD_LISTED) {
                r->listed = true;
                event_queue_ready(r->events, r->parts, r->no_view);
        }
}

static void on_batch(void *arg)
{
        event_queue_tell(((struct process_runner *)arg)->events);
}

static void on_gone(void *arg)
{
        struct process_runner *r = arg;

        r->listed = false;
        event_queue_unreachable(r->events, NULL);
}

static void on_silent(void *arg, bool silent)
{
        struct process_runner *r = arg;

        event_queue_silent(r->events, silent ? "the agent's shepherd does not answer" : NULL);
}

static void on_failed(void *arg, const char *why)
{
        event_queue_unreachable(((struct process_runner *)arg)->events, why);
}

static int process_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        static const struct shepherd_client_ops ops = {on_record, on_batch, on_gone, on_silent, on_failed};

        (void)err;
        struct process_runner *r = mem_new(struct process_runner);
        r->base.kind = &runner_process;
        r->events = event_queue_new(c->loop, c->observer, c->arg);
        struct shepherd_client_config config = {c->dir,
                                                c->instance,
                                                c->program,
                                                c->users_path,
                                                c->min_uid,
                                                c->agent_uid,
                                                {c->cgroups[0], c->cgroups[1]},
                                                c->hidden,
                                                c->silence_ms};
        r->client = shepherd_client_new(c->loop, &config, &ops, r);
        *ret = &r->base;
        return 0;
}

static struct process_runner *self(struct runner *r)
{
        return (struct process_runner *)(void *)r;
}

static void name_record(struct process_runner *r, enum shepherd_kind kind, struct run_id id)
{
        struct shepherd_name n = {.record = {sizeof(n), kind}};

        memcpy(&n.id, &id, sizeof(id));
        buf_add(shepherd_client_out(r->client), &n, sizeof(n));
}

static void process_flush(struct runner *base)
{
        shepherd_client_flush(self(base)->client);
}

static void process_close(struct runner *base, bool kill_all)
{
        struct process_runner *r = self(base);

        if (kill_all)
                name_record(r, SHEPHERD_QUIT, (struct run_id){0});
        shepherd_client_free(r->client);
        event_queue_free(r->events);
        free(r);
}

static void string(struct buf *b, const char *z)
{
        buf_add(b, z ? z : "", z ? strlen(z) + 1 : 1);
}

static void fail_now(struct process_runner *r, struct run_id id, enum run_state state, const char *what,
                     int error)
{
        event_queue_task(r->events,
                         &(struct run_event){
                                 .id = id, .state = state, .what = what, .error = error, .slot = UINT32_MAX});
}

static void process_submit(struct runner *base, const struct run_spec *s)
{
        struct process_runner *r = self(base);

        if (!shepherd_client_up(r->client)) {
                fail_now(r, s->id, RUN_LOST, "shepherd", ENOTCONN);
                return;
        }
        if (((s->flags & RUN_GUEST) && !r->takes_guests) ||
            ((s->flags & RUN_TERMINAL) && !r->takes_terminals)) {
                fail_now(r, s->id, RUN_FAILED, "shepherd",
                         ENOSYS); /* sent by an agent of an earlier version */
                return;
        }
        struct buf *out = shepherd_client_out(r->client);
        const struct shepherd_start_by by = {{sizeof(by), SHEPHERD_START_BY}, (uint64_t)s->begin_by_boot_ms};
        size_t before = out->n;
        if (s->begin_by_boot_ms)
                buf_add(out, &by, sizeof(by));
        size_t start = out->n;
        struct shepherd_start h = {.record = {0, SHEPHERD_START},
                                   .flags = s->flags,
                                   .slot = s->slot,
                                   .walltime_ms = s->walltime_ms,
                                   .rlimit_count = s->rlimit_count};
        memcpy(&h.id, &s->id, sizeof(h.id));
        for (unsigned i = 0; i < s->rlimit_count && i < SHEPHERD_RLIMITS_MAX; i++)
                h.rlimits[i] = (struct shepherd_rlimit){(uint32_t)s->rlimits[i].resource, 0,
                                                        s->rlimits[i].soft, s->rlimits[i].hard};
        buf_add(out, &h, sizeof(h));
        string(out, s->owner);
        string(out, s->user);
        string(out, s->sandbox);
        string(out, s->cwd);
        string(out, s->stdin_path);
        string(out, s->stdout_path);
        string(out, s->stderr_path);
        string(out, s->path);
        for (const char *const *d = s->cgroup_dirs; d && *d; d++, h.cgroup_count++)
                string(out, *d);
        for (char *const *a = s->argv; *a; a++, h.argc++)
                string(out, *a);
        for (char *const *e = s->envp; e && *e; e++, h.envc++)
                string(out, *e);
        size_t size = out->n - start, padded = (size + 7) & ~(size_t)7;
        buf_add(out, "\0\0\0\0\0\0\0", padded - size);
        h.record.size = (uint32_t)padded;
        if (padded > SHEPHERD_BATCH_MAX || h.argc + h.envc > SHEPHERD_WORDS_MAX) {
                buf_truncate(out, before);
                fail_now(r, s->id, RUN_FAILED, "program", E2BIG);
                return;
        }
        memcpy(out->p + start, &h, sizeof(h));
        if (s->flags & RUN_STDIN_FD)
                shepherd_client_pass(r->client, s->stdin_fd);
}

static void process_kill(struct runner *base, struct run_id id, uint64_t grace_ms)
{
        struct process_runner *r = self(base);
        struct shepherd_kill k = {.record = {sizeof(k), SHEPHERD_KILL}, .grace_ms = grace_ms};

        memcpy(&k.id, &id, sizeof(id));
        buf_add(shepherd_client_out(r->client), &k, sizeof(k));
}

static void process_suspend(struct runner *base, struct run_id id)
{
        name_record(self(base), SHEPHERD_SUSPEND, id);
}

static void process_resume(struct runner *base, struct run_id id)
{
        name_record(self(base), SHEPHERD_RESUME, id);
}

/* No effect: a submitted task begins at once. */
static void process_hold(struct runner *base, struct run_id id)
{
        (void)base;
        (void)id;
}

static void process_signal(struct runner *base, struct run_id id, int signal)
{
        struct process_runner *r = self(base);
        struct shepherd_signal s = {.record = {sizeof(s), SHEPHERD_SIGNAL}, .signal = signal};

        memcpy(&s.id, &id, sizeof(id));
        buf_add(shepherd_client_out(r->client), &s, sizeof(s));
}

static void process_quote(struct runner *base, const struct run_spec *spec)
{
        struct process_runner *r = self(base);
        bool up = shepherd_client_up(r->client);

        event_queue_quoted(r->events, &(struct run_quote){.id = spec->id,
                                                          .begins_ms = up ? (uint64_t)clock_wall_ms() : 0});
}

static int process_begun(struct runner *base, struct buf *ret)
{
        return shepherd_client_begun(self(base)->client, ret);
}

/* Does nothing for the ids: changes are reported without a request, and a HELLO makes the shepherd report
 * all tasks. */
static void process_status(struct runner *base, const struct run_id *ids, size_t count)
{
        struct process_runner *r = self(base);

        (void)ids;
        if (!count)
                return;
        struct shepherd_hello hello = {
                {sizeof(hello), SHEPHERD_HELLO}, SHEPHERD_VERSION, (int32_t)getpid(), 0, 0};
        buf_add(shepherd_client_out(r->client), &hello, sizeof(hello));
}

static void process_forget(struct runner *base, struct run_id id)
{
        name_record(self(base), SHEPHERD_FORGET, id);
}

static void process_lease(struct runner *base, int64_t until_boot_ms)
{
        struct process_runner *r = self(base);
        struct shepherd_lease l = {{sizeof(l), SHEPHERD_LEASE}, (uint64_t)until_boot_ms};

        buf_add(shepherd_client_out(r->client), &l, sizeof(l));
}

static void process_capacity(struct runner *base, struct run_capacity *ret)
{
        (void)base;
        *ret = (struct run_capacity){
                .known = true,
                .cpus_milli = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000,
                .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                .tasks_max = 8000,
        };
}

const struct runner_kind runner_process = {
        .name = "process",
        .for_users = true,
        .open = process_open,
        .close = process_close,
        .flush = process_flush,
        .submit = process_submit,
        .kill = process_kill,
        .suspend = process_suspend,
        .resume = process_resume,
        .hold = process_hold,
        .release = process_hold,
        .signal = process_signal,
        .quote = process_quote,
        .status = process_status,
        .forget = process_forget,
        .lease = process_lease,
        .capacity = process_capacity,
        .begun = process_begun,
};
