/* A task of the process runner like a job's step, with an id of no job. Who runs it is found by `env`, so
 * that PATH is looked through with the user's rights. */
#include "run/process/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"

#define ERRAND_MEMBER 1
#define ERRAND_STEP   0x80000000u
#define GONE          "the agent's shepherd is gone"

struct errand {
        struct command base;
        struct errands *all;
        struct run_id id;
        char *folder;
        command_done_fn *done;
        void *arg;
        bool away; /* nothing was heard of it since the runner went away */
        struct errand *next;
};
struct errands {
        struct runner *local;
        int jobs;
        const char *jobs_path;
        uint32_t serial;
        struct errand *first;
};

struct errands *errands_new(struct runner *local, int jobs, const char *jobs_path)
{
        struct errands *e = mem_new(struct errands);
        e->local = local;
        e->jobs = jobs;
        e->jobs_path = jobs_path;
        e->serial = (uint32_t)clock_boot_ms() *
                    16; /* not those of an earlier life, which the shepherd may know */
        return e;
}

void errands_stop(struct errands *e)
{
        if (e)
                e->local = NULL;
}

void errands_free(struct errands *e)
{
        free(e);
}

void errand_folder(const struct errands *e, const char *name, struct buf *out)
{
        buf_printf(out, "%s/%s", e->jobs_path, name);
}

static void add_variable(struct args *env, const char *name, const char *value)
{
        BUF_CLEANUP struct buf one = {0};
        buf_printf(&one, "%s=%s", name, value);
        args_add(env, buf_view(&one));
}

void errand_environment(struct args *env, const char *user)
{
        const struct passwd *pw = getpwnam(user);
        add_variable(env, "HOME", pw && *pw->pw_dir ? pw->pw_dir : "/");
        add_variable(env, "USER", user);
        add_variable(env, "LOGNAME", user);
}

static void stream_name(const struct errand *r, const char *which, struct buf *out)
{
        buf_printf(out, ".errand.%08x.%s", r->id.step, which);
}

static struct errand *take(struct errands *e, struct run_id id)
{
        struct errand **link = &e->first;
        while (*link && !run_id_eq((*link)->id, id))
                link = &(*link)->next;
        struct errand *r = *link;
        if (r)
                *link = r->next;
        return r;
}

static void errand_free(struct errand *r)
{
        free(r->folder);
        free(r);
}

static void cancel(struct command *c)
{
        struct errand *r = (struct errand *)(void *)c;
        struct runner *local = r->all->local;
        take(r->all, r->id);
        if (local) {
                runner_kill(local, r->id, 0);
                local->kind->flush(local);
        }
        errand_free(r);
}

/* If the shepherd is away it is gone with it, and errands_back tells. */
static void end(struct command *c, int64_t grace_ms)
{
        struct errand *r = (struct errand *)(void *)c;
        struct runner *local = r->all->local;
        if (local) {
                runner_kill(local, r->id, (uint64_t)grace_ms);
                local->kind->flush(local);
        }
}

/* The folder is the user's: a link of his there is not followed, and nothing but a file is read. */
static int read_stream(const struct errand *r, const char *which, struct buf *out)
{
        BUF_CLEANUP struct buf name = {0};
        int dir = openat(r->all->jobs, r->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        stream_name(r, which, &name);
        if (dir < 0)
                return -errno;
        int e = fs_read_regular(dir, buf_z(&name), COMMAND_OUTPUT_MAX, out, NULL);
        unlinkat(dir, buf_z(&name), 0);
        close(dir);
        return e;
}

static void errand_end(struct errand *r, int status, struct str out, struct str errors)
{
        r->done(r->arg, status, out, errors);
        errand_free(r);
}

void errands_away(struct errands *e)
{
        for (struct errand *r = e->first; r; r = r->next)
                r->away = true;
}

void errands_back(struct errands *e)
{
        for (struct errand *r = e->first, *next; r; r = next) {
                next = r->next;
                if (!r->away)
                        continue;
                take(e, r->id);
                errand_end(r, ERRAND_LOST, STR_NONE, STR(GONE));
                next = e->first; /* others may have come, or gone */
        }
}

bool errands_event(struct errands *e, const struct run_event *event)
{
        BUF_CLEANUP struct buf out = {0}, errors = {0};
        if (event->state == RUN_WAITING || event->state == RUN_RUNNING)
                for (struct errand *r = e->first; r; r = r->next)
                        if (run_id_eq(r->id, event->id)) {
                                r->away = false;
                                return true;
                        }
        struct errand *r =
                event->state == RUN_WAITING || event->state == RUN_RUNNING ? NULL : take(e, event->id);
        if (!r)
                return false;
        int status = -1, unread = 0;
        runner_forget(e->local, r->id);
        if (event->state == RUN_ENDED) {
                unread = read_stream(r, "out", &out);
                read_stream(r, "err", &errors);
        }
        if (event->state == RUN_ENDED && event->why == RUN_ITSELF && unread) {
                buf_printf(&errors, "what it printed cannot be read: %s", strerror(-unread));
        } else if (event->state == RUN_ENDED && event->why == RUN_ITSELF) {
                status = event->signaled ? event->exit_code : event->exit_code << 8;
        } else if (event->state == RUN_ENDED && event->why == RUN_LEASE_ENDED) {
                status = ERRAND_LEASE_ENDED;
                buf_addz(&errors, "the lease ended while the agent was away");
        } else if (event->state == RUN_ENDED && event->why == RUN_KILLED) {
                status = ERRAND_LOST;
                buf_addz(&errors, "it was ended");
        } else if (event->state == RUN_ENDED) {
                buf_addz(&errors, "it did not answer in time");
        } else if (event->state == RUN_FAILED) {
                buf_printf(&errors, "it could not be run as the job's user (%s): %s", event->what,
                           strerror(event->error));
        } else {
                status = ERRAND_LOST;
                buf_addz(&errors, GONE);
        }
        errand_end(r, status, buf_view(&out), buf_view(&errors));
        return true;
}

struct command *errand_run(struct errands *e, const struct errand_spec *s, command_done_fn *done, void *arg)
{
        struct errand *r = mem_new(struct errand);
        BUF_CLEANUP struct buf path = {0}, out = {0}, errors = {0};
        ARGS_CLEANUP struct args argv = {0};
        *r = (struct errand){.base = {cancel, end},
                             .all = e,
                             .id = {0, ERRAND_MEMBER, 0, ERRAND_STEP | ++e->serial, 0},
                             .folder = mem_dupz(s->folder),
                             .done = done,
                             .arg = arg,
                             .next = e->first};
        e->first = r;
        errand_folder(e, s->folder, &path);
        stream_name(r, "out", &out);
        stream_name(r, "err", &errors);
        args_add(&argv, STR("env"));
        for (size_t i = 0; i < s->argv->n; i++)
                args_add(&argv, str_of(s->argv->v[i]));
        int input = s->input_fd > 0 ? s->input_fd : command_input(s->input);
        const struct run_spec spec = {
                .id = r->id,
                .owner = s->owner,
                .user = s->user,
                .sandbox = buf_z(&path),
                .stdout_path = buf_z(&out),
                .stderr_path = buf_z(&errors),
                .flags = RUN_MAKE_SANDBOX | RUN_SHARE_SANDBOX | (input >= 0 ? RUN_STDIN_FD : 0u) | s->contain,
                .stdin_fd = input,
                .path = "/usr/bin/env",
                .argv = argv.v,
                .envp = s->envp,
                .slot = UINT32_MAX,
                .walltime_ms = (uint64_t)s->timeout_ms,
        };
        runner_submit(e->local, &spec);
        e->local->kind->flush(e->local);
        if (input >= 0 && input != s->input_fd)
                close(input);
        return &r->base;
}
