/* A user command is a task of the process runner like a job's step, with an id that no job has. The program
 * is found by `env`, so PATH is searched with the user's rights. */
#include "run/process/user_command.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"

#define USER_COMMAND_MEMBER 1 /* member of request 0 */
#define USER_COMMAND_STEP   0x80000000u
#define GONE                "the agent's shepherd is gone"

struct user_command {
        struct command base;
        struct user_commands *all;
        struct run_id id;
        char *folder;
        command_done_fn *done;
        void *arg;
        bool away; /* no report of it since the runner became unreachable */
        struct user_command *next;
};
struct user_commands {
        struct runner *local;
        int jobs;
        const char *jobs_path;
        uint32_t serial;
        struct user_command *first;
};

struct user_commands *user_commands_new(struct runner *local, int jobs, const char *jobs_path)
{
        struct user_commands *e = mem_new(struct user_commands);

        e->local = local;
        e->jobs = jobs;
        e->jobs_path = jobs_path;
        e->serial = (uint32_t)clock_boot_ms() * 16; /* differ from an earlier run's ids, which */
        return e;
}

void user_commands_stop(struct user_commands *e)
{
        if (e)
                e->local = NULL;
}

void user_commands_free(struct user_commands *e)
{
        free(e);
}

void user_command_folder(const struct user_commands *e, const char *name, struct buf *out)
{
        buf_printf(out, "%s/%s", e->jobs_path, name);
}

static void add_variable(struct args *env, const char *name, const char *value)
{
        BUF_CLEANUP struct buf one = {0};

        buf_printf(&one, "%s=%s", name, value);
        args_add(env, buf_view(&one));
}

void user_command_environment(struct args *env, const char *user)
{
        const struct passwd *pw = getpwnam(user);

        add_variable(env, "HOME", pw && *pw->pw_dir ? pw->pw_dir : "/");
        add_variable(env, "USER", user);
        add_variable(env, "LOGNAME", user);
}

static void stream_name(const struct user_command *r, const char *which, struct buf *out)
{
        buf_printf(out, ".user_command.%08x.%s", r->id.step, which);
}

static struct user_command *take_command(struct user_commands *e, struct run_id id)
{
        struct user_command **link = &e->first;

        while (*link && !run_id_eq((*link)->id, id))
                link = &(*link)->next;
        struct user_command *r = *link;
        if (r)
                *link = r->next;
        return r;
}

static void user_command_free(struct user_command *r)
{
        free(r->folder);
        free(r);
}

static void cancel(struct command *c)
{
        struct user_command *r = (struct user_command *)(void *)c;
        struct runner *local = r->all->local;

        take_command(r->all, r->id);
        if (local) {
                runner_kill(local, r->id, 0);
                local->kind->flush(local);
        }
        user_command_free(r);
}

/* Ends a user command. If the shepherd has died the command died too, and user_commands_back reports it. */
static void end_command(struct command *c, int64_t grace_ms)
{
        struct user_command *r = (struct user_command *)(void *)c;
        struct runner *local = r->all->local;

        if (local) {
                runner_kill(local, r->id, (uint64_t)grace_ms);
                local->kind->flush(local);
        }
}

/* Reads a stream. The folder belongs to the user: symbolic links are not followed, and only regular files
 * are read. */
static int read_stream(const struct user_command *r, const char *which, struct buf *out)
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

static void user_command_end(struct user_command *r, int status, struct str out, struct str errors)
{
        r->done(r->arg, status, out, errors);
        user_command_free(r);
}

void user_commands_away(struct user_commands *e)
{
        for (struct user_command *r = e->first; r; r = r->next)
                r->away = true;
}

void user_commands_back(struct user_commands *e)
{
        for (struct user_command *r = e->first, *next; r; r = next) {
                next = r->next;
                if (!r->away)
                        continue;
                take_command(e, r->id);
                user_command_end(r, USER_COMMAND_LOST, STR_NONE, STR(GONE));
                next = e->first; /* the list may have changed */
        }
}

bool user_commands_event(struct user_commands *e, const struct run_event *event)
{
        BUF_CLEANUP struct buf out = {0}, errors = {0};

        if (event->state == RUN_WAITING || event->state == RUN_RUNNING)
                for (struct user_command *r = e->first; r; r = r->next)
                        if (run_id_eq(r->id, event->id)) {
                                r->away = false;
                                return true;
                        }
        struct user_command *r = event->state == RUN_WAITING || event->state == RUN_RUNNING
                                         ? NULL
                                         : take_command(e, event->id);
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
                status = USER_COMMAND_LEASE_ENDED;
                buf_addz(&errors, "the lease ended while the agent was away");
        } else if (event->state == RUN_ENDED && event->why == RUN_KILLED) {
                status = USER_COMMAND_LOST;
                buf_addz(&errors, "it was ended");
        } else if (event->state == RUN_ENDED) {
                buf_addz(&errors, "it did not answer in time");
        } else if (event->state == RUN_FAILED) {
                buf_printf(&errors, "it could not be run as the job's user (%s): %s", event->what,
                           strerror(event->error));
        } else {
                status = USER_COMMAND_LOST;
                buf_addz(&errors, GONE);
        }
        user_command_end(r, status, buf_view(&out), buf_view(&errors));
        return true;
}

struct command *user_command_run(struct user_commands *e, const struct user_command_spec *s,
                                 command_done_fn *done, void *arg)
{
        struct user_command *r = mem_new(struct user_command);
        BUF_CLEANUP struct buf path = {0}, out = {0}, errors = {0};
        ARGS_CLEANUP struct args argv = {0};

        *r = (struct user_command){.base = {cancel, end_command},
                                   .all = e,
                                   .id = {0, USER_COMMAND_MEMBER, 0, USER_COMMAND_STEP | ++e->serial, 0},
                                   .folder = mem_dupz(s->folder),
                                   .done = done,
                                   .arg = arg,
                                   .next = e->first};
        e->first = r;
        user_command_folder(e, s->folder, &path);
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
