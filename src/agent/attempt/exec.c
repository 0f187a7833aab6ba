#include "agent/attempt/exec.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/attempt/streams.h"
#include "agent/container/container_step.h"
#include "agent/model/sandbox.h"
#include "agent/outbox/outbox.h"
#include "agent/step/submit.h"
#include "agent/transfer/stage.h"
#include "base/system/clock.h"

#define INPUT_MS 10000 /* time for a command to make room for more input */

static void exec_reply(struct agent *a, uint64_t serial, const char *error)
{
        outbox_streams(a, &(struct streams_answer){.serial = serial, .error = error});
}

/* Why no command can be run beside it; NULL: it can. */
static const char *refused(const struct attempt *at, const struct exec_request *m)
{
        if (!at || at->state != ATTEMPT_RUNNING || !at->stepping || !at->task_runs)
                return "the job's program is not running at this moment";
        if (!queue_is_local(at->q))
                return "the job runs in a batch system or at another server, where its agent runs no "
                       "commands";
        if (m->argc == 0 || m->number == 0 || m->number == EXEC_ADOPTED)
                return "there is no command";
        return container_step_exec_refused(at);
}

static void on_console(void *arg)
{
        struct followed *f = arg;

        exec_answer_input(f, clock_boot_ms());
        streams_changed(f);
}

/* *ret_fd: the command's end of its console, the caller's; -1: it has none. */
static int open_console(struct followed *f, const struct exec_request *m, int *ret_fd)
{
        const struct console_config config = {.loop = f->a->loop,
                                              .terminal = m->terminal,
                                              .rows = m->rows,
                                              .columns = m->columns,
                                              .changed = on_console,
                                              .arg = f};

        *ret_fd = -1;
        f->exec.terminal = m->terminal;
        return m->input || m->terminal ? console_new(&config, &f->exec.console, ret_fd) : 0;
}

static int start_task(struct followed *f, const struct exec_request *m, struct err *err)
{
        int fd, r = open_console(f, m, &fd);
        const struct step_exec exec = {.argv = m->argv,
                                       .argc = m->argc,
                                       .fd = fd,
                                       .terminal = m->terminal,
                                       .term = m->term,
                                       .unbounded = m->stays};

        if (r < 0)
                err_set(err, r, "cannot open a terminal: %s", strerror(-r));
        else
                r = step_exec(f->at, f->exec.task, &exec, err);
        if (fd >= 0)
                close(fd);
        return r;
}

void exec_start(struct agent *a, const struct exec_request *m)
{
        struct attempt *at = agent_find(a, m->request, m->member, m->fence);
        const char *why = refused(at, m);
        struct err err = {""};

        if (why) {
                exec_reply(a, m->serial, why);
                return;
        }
        const struct run_id task = {at->request, at->member, at->fence,
                                    m->stays ? followed_stays_step(m->number) : stage_task_step(a), 0};
        struct followed *f = followed_new_exec(streams_followed(a), at, m->number, task);
        if (!f) {
                exec_reply(a, m->serial, "too many of your jobs are followed at its agent");
                return;
        }
        f->exec.stays = m->stays;
        f->asked_ms = clock_boot_ms();
        if (start_task(f, m, &err) < 0) {
                f->over = true;
                followed_free(streams_followed(a), f);
                exec_reply(a, m->serial, err.text);
                return;
        }
        exec_reply(a, m->serial, NULL);
        agent_turn_later(a);
        streams_changed(f);
}

void exec_kill_all(struct attempt *at)
{
        for (struct followed *f = streams_followed(at->a)->first; f; f = f->next)
                if (f->exec.number && f->at == at && !f->over) {
                        followed_open_files(streams_followed(at->a), f);
                        runner_kill(at->a->runner, f->exec.task, 0);
                }
}

/* ---- input */

void exec_answer_input(struct followed *f, int64_t now_ms)
{
        struct followed_exec *x = &f->exec;

        if (!x->input_serial || (!f->over && !console_is_deaf(x->console) && !console_has_room(x->console) &&
                                 now_ms < x->input_until_ms))
                return;
        outbox_streams(f->a, &(struct streams_answer){.serial = x->input_serial,
                                                      .input_next = console_taken(x->console),
                                                      .over = f->over || console_is_deaf(x->console)});
        x->input_serial = 0;
}

void exec_take_input(struct agent *a, const struct exec_input *m)
{
        struct followed *f = followed_find(streams_followed(a), m->request, m->member, m->fence, m->number);
        int64_t now = clock_boot_ms();

        if (!f || !f->exec.console) {
                outbox_streams(a, &(struct streams_answer){.serial = m->serial, .unknown = true});
                return;
        }
        f->exec.input_until_ms = now;
        exec_answer_input(f, now); /* a repeated input replaces the earlier one */
        console_resize(f->exec.console, m->rows, m->columns);
        console_take(f->exec.console, m->offset, m->data, m->end);
        f->exec.input_serial = m->serial;
        f->exec.input_until_ms = now + INPUT_MS;
        exec_answer_input(f, now);
        streams_changed(f);
}

/* ---- ends */

static void remove_files(const struct followed *f)
{
        int sandbox = f->at && !f->a->users_path ? sandbox_open(f->at) : -1;

        for (int k = 0; k < 2 && sandbox >= 0; k++) {
                BUF_CLEANUP struct buf name = {0};

                followed_file_name(f, k, &name);
                unlinkat(sandbox, buf_z(&name), 0);
        }
        if (sandbox >= 0)
                close(sandbox);
}

/* Follows a command that stays, and was started by an earlier agent. Returns NULL if the task is none, or
 * nobody can ask for it. */
static struct followed *adopt(struct agent *a, const struct run_event *e)
{
        struct attempt *at = agent_find(a, e->id.request, e->id.member, e->id.fence);

        if (!e->known || !(e->id.step & STEP_NO_JOBS) || !(e->id.step & STEP_STAYS) || !at ||
            at->state > ATTEMPT_RUNNING)
                return NULL;
        struct followed *f = followed_new_exec(streams_followed(a), at, EXEC_ADOPTED, e->id);
        if (!f)
                return NULL;
        f->exec.stays = true;
        f->asked_ms = clock_boot_ms();
        streams_changed(f);
        return f;
}

/* Why it has not ended by itself; NULL: it has. */
static char *what_happened(const struct run_event *e)
{
        BUF_CLEANUP struct buf why = {0};

        if (e->state == RUN_FAILED)
                buf_printf(&why, "it could not be started (%s): %s", e->what, strerror(e->error));
        else if (e->state == RUN_LOST)
                buf_addz(&why, "the agent's shepherd is gone, and the command with it");
        return why.n ? buf_take(&why) : NULL;
}

bool exec_event(struct agent *a, const struct run_event *e)
{
        struct followed *f = streams_followed(a)->first;

        while (f && !(f->exec.number && run_id_eq(f->exec.task, e->id)))
                f = f->next;
        if (!f)
                f = adopt(a, e);
        if (!f || e->state == RUN_WAITING || e->state == RUN_RUNNING)
                return f != NULL;
        runner_forget(a->runner, e->id);
        followed_open_files(streams_followed(a), f);
        remove_files(f);
        f->over = true;
        f->exec.signaled = e->state == RUN_ENDED && e->signaled;
        f->exec.exit_code = e->state == RUN_ENDED ? e->exit_code : 0;
        f->exec.error = what_happened(e);
        if (f->exec.console)
                console_end(f->exec.console);
        exec_answer_input(f, clock_boot_ms());
        streams_changed(f);
        return true;
}
