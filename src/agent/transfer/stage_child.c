/* Stages done by other processes: with `users` a child of the files' user does the work (see stage_work.h),
 * as a task of the shepherd. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/credential/credentials.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/file_requests.h"
#include "agent/transfer/stage_task.h"
#include "agent/transfer/userlog.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "run/process/shepherd_protocol.h"

#define CHILD_LIMIT_MS (6ull * 3600000u) /* longest time for staging */

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
        bool apart = stage_work_is_apart(&s->w);
        struct run_spec spec = {
                .id = s->id,
                .owner = owner,
                .user = user,
                .sandbox = apart ? NULL : buf_z(&path),
                .cwd = apart ? "/" : NULL,
                .flags = apart ? RUN_STDIN_FD : RUN_STDIN_FD | RUN_MAKE_SANDBOX,
                .stdin_fd = s->w.data,
                .path = program_self(),
                .argv = argv,
                .envp = envp,
                .slot = UINT32_MAX,
                .walltime_ms = CHILD_LIMIT_MS,
        };
        if (s->w.kind == STAGE_CREDENTIALS && !s->at)
                spec.flags &= ~(unsigned)RUN_MAKE_SANDBOX; /* a job that has ended needs none */
        if (s->at && sandbox_is_shared(s->at))
                spec.flags |= RUN_SHARE_SANDBOX;
        if (stage_work_empties(&s->w))
                spec.flags |= RUN_REMOVE_SANDBOX;
        s->steps_ms = clock_boot_ms();
        s->child_next = a->stages->children;
        a->stages->children = s;
        runner_submit(a->runner, &spec);
        agent_turn_later(a);
}

void stage_child_go_on(struct stage *s)
{
        char name[64];

        s->prepare = false;
        if (s->w.result < 0 || !s->at) {
                stage_finish(s);
                return;
        }
        sandbox_name(s->at, name);
        child_start(s, name, s->at->t->m->owner, s->at->t->user.name);
}

uint32_t stage_task_step(struct agent *a)
{
        if (!a->stages->child_serial) /* avoids serials of an earlier agent, which the shepherd may know */
                a->stages->child_serial = (uint32_t)clock_boot_ms() * 16;
        return STEP_NO_JOBS | (++a->stages->child_serial & (STEP_STAYS - 1));
}

static void child_id(struct stage *s, uint64_t request, uint32_t member, uint32_t fence)
{
        s->id = (struct run_id){request, member, fence, stage_task_step(s->a), 0};
}

void stage_child_begin(struct stage *s)
{
        struct attempt *at = s->at;

        child_id(s, at->request, at->member, at->fence);
        s->w.result = child_file(s->a, s);
        for (size_t i = 0; i < s->w.count && s->w.result == 0; i++)
                s->prepare = s->prepare || s->w.files[i].carried;
        if (s->prepare) {
                stage_to_worker(s);
                return;
        }
        if (s->w.result == 0)
                s->w.result = stage_work_write(&s->w);
        stage_child_go_on(s);
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

/* Returns whether lines of the owner are being written; an owner's lines are written one after the other, in
 * order. */
static bool log_is_under_way(const struct agent *a, const char *owner)
{
        const struct stage *const lists[] = {a->stages->children, a->stages->logs_begun};

        for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
                for (const struct stage *s = lists[i]; s; s = s->child_next)
                        if (s->log_owner && !strcmp(s->log_owner, owner))
                                return true;
        return false;
}

static void log_next(struct agent *a)
{
        struct stage **link = &a->stages->logs;

        while (*link && log_is_under_way(a, (*link)->log_owner))
                link = &(*link)->child_next;
        struct stage *s = *link;
        if (!s)
                return;
        *link = s->child_next;
        if (a->users_path) {
                child_start(s, "", s->log_owner, s->log_user);
                return;
        }
        s->child_next = a->stages->logs_begun;
        a->stages->logs_begun = s;
        stage_to_worker(s);
}

void stage_log_over(struct stage *s)
{
        struct agent *a = s->a;
        struct stage **link = &a->stages->logs_begun;

        while (*link != s)
                link = &(*link)->child_next;
        *link = s->child_next;
        stage_finish(s);
        log_next(a);
}

bool stage_log_is_quick(const struct agent *a, const char *owner, const char *path)
{
        for (const struct stage *s = a->stages->logs; s; s = s->child_next)
                if (!strcmp(s->log_owner, owner))
                        return false;
        return !log_is_under_way(a, owner) && stage_is_near(a, path);
}

static void log_wait(struct stage *s, const char *owner, const char *user)
{
        struct stage **last = &s->a->stages->logs;

        s->log_owner = mem_dupz(owner);
        snprintf(s->log_user, sizeof(s->log_user), "%s", user);
        while (*last)
                last = &(*last)->child_next;
        *last = s;
        log_next(s->a);
}

void stage_log(struct agent *a, const struct userlog_lines *m, const struct users_entry *user)
{
        struct stage *s = mem_new(struct stage);

        s->a = a;
        s->owner = mem_dupz(m->owner);
        s->log_serial = m->serial;
        stage_work_init(&s->w, STAGE_LOG, 0);
        s->w.hidden = a->hidden;
        child_id(s, 0, 0, 0);
        struct stage_file *f = stage_work_file(&s->w, mem_dupz(""), mem_dupz(m->path));
        f->maybe_there = m->maybe_there;
        f->again = true; /* until the child reports otherwise */
        int r = child_file(a, s);
        if (r == 0)
                r = stage_work_text(&s->w, f, m->text);
        if (r == 0)
                r = stage_work_write(&s->w);
        s->w.result = r;
        if (r < 0)
                stage_finish(s);
        else
                log_wait(s, m->owner, user ? user->name : "");
}

void stage_file_call(struct agent *a, const struct file_request *m, const struct users_entry *user)
{
        struct stage *s = mem_new(struct stage);
        BUF_CLEANUP struct buf packed = {0};

        s->a = a;
        s->owner = mem_dupz(m->owner);
        s->log_serial = m->serial;
        a->stages->file_calls++;
        stage_work_init(&s->w, STAGE_FILE, 0);
        s->w.hidden = a->hidden;
        child_id(s, 0, 0, 0);
        struct stage_file *f = stage_work_file(&s->w, mem_dupz(m->folder), mem_dupz(""));
        file_call_pack(&packed, &m->call);
        int r = child_file(a, s);
        if (r == 0)
                r = stage_work_text(&s->w, f, buf_view(&packed));
        if (r == 0)
                r = stage_work_write(&s->w);
        s->w.result = r;
        if (r < 0)
                stage_finish(s);
        else if (user)
                child_start(s, "", m->owner, user->name);
        else
                stage_to_worker(s);
}

/* ---- children that make no progress */

/* Ends the hold of the stage's owner, unless another stage of the owner is held. */
static void allow(const struct stage *s)
{
        for (const struct stage *o = s->a->stages->children; o; o = o->child_next)
                if (o->held && !strcmp(o->owner, s->owner))
                        return;
        log_info("msg=\"staging goes on\" owner=\"%s\"", LOG_TEXT(str_of(s->owner)));
        s->a->news->owner_held(s->a, s->owner, NULL);
}

/* Gives up a stage without progress. The file system that does not answer may be the owner's, so only that
 * owner's jobs go elsewhere until the child has ended; not if the shepherd is silent. */
static void stage_child_give_up(struct stage *s, const char *where)
{
        struct agent *a = s->a;
        const struct backend *b = a->backends[0];
        BUF_CLEANUP struct buf why = {.max = 1024};

        if (b->silent)
                buf_addz(&why, b->unreachable);
        else
                stage_silence(&why, a->config.staging_silence_ms, where);
        log_error("msg=\"%s: its child is ended\" owner=\"%s\"", LOG_TEXT(buf_view(&why)),
                  s->owner ? LOG_TEXT(str_of(s->owner)) : "");
        s->held = s->owner && !b->silent;
        if (s->held)
                a->news->owner_held(a, s->owner, buf_z(&why));
        runner_kill(a->runner, s->id, 0);
        stage_leave(s, buf_z(&why));
}

/* Returns whether the stage may be silent: it has been given up, no file is left to do, or the shepherd is
 * silent and no job waits for its start. */
static bool may_wait(const struct stage *s, uint64_t steps)
{
        bool staging = s->w.kind == STAGE_IN || s->w.kind == STAGE_CREDENTIALS;

        return s->given_up || (s->a->backends[0]->silent ? !staging : steps == STAGE_STEPS_DONE);
}

/* Returns the next stage that is not held yet and has made no progress for so long; NULL: none. */
static struct stage *next_silent(struct agent *a, int64_t now, const char **ret_where)
{
        for (struct stage *s = a->stages->children; s; s = s->child_next) {
                uint64_t steps = s->steps;

                *ret_where = NULL;
                stage_work_look(&s->w, &steps, ret_where);
                if (steps != s->steps || may_wait(s, steps)) {
                        s->steps = steps;
                        s->steps_ms = now;
                } else if ((uint64_t)(now - s->steps_ms) >= a->config.staging_silence_ms) {
                        return s;
                }
        }
        return NULL;
}

void stage_child_tick(struct agent *a, int64_t now, bool still)
{
        const char *where = NULL;

        for (struct stage *s = a->stages->children; s && still; s = s->child_next)
                s->steps_ms = now;
        for (struct stage *s; a->config.staging_silence_ms && (s = next_silent(a, now, &where));) {
                s->given_up = true;
                stage_child_give_up(s, where);
        }
}

/* Reads the child's results from the task file, or sets the reason why there are none. */
static void child_answered(struct stage *s, const struct run_event *e)
{
        bool empties = s->w.kind == STAGE_OUT && stage_work_empties(&s->w);

        if (e->state == RUN_ENDED && !e->signaled && e->exit_code == 0 && stage_work_answer(&s->w) == 0) {
                if (s->at && empties)
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
        struct stage **link = &a->stages->children;

        while (*link && !run_id_eq((*link)->id, e->id))
                link = &(*link)->child_next;
        struct stage *s = *link;
        if (!s || e->state == RUN_WAITING || e->state == RUN_RUNNING)
                return s != NULL;
        *link = s->child_next;
        runner_forget(a->runner, e->id);
        if (s->held)
                allow(s);
        if (e->state == RUN_LOST && s->at) { /* the agent ends now; the next one sees to it */
                s->at->stage = NULL;
                s->at = NULL;
        }
        child_answered(s, e);
        if (s->w.result < 0 && s->w.kind == STAGE_REMOVE)
                log_warn("msg=\"cannot empty a sandbox\" error=\"%s\"", LOG_TEXT(str_of(s->w.err.text)));
        bool log = s->w.kind == STAGE_LOG;
        stage_finish(s);
        if (log)
                log_next(a);
        return true;
}
/* ---- credentials */

void stage_done_credentials(struct attempt *at, struct stage *s)
{
        at->credentials_placed = true;
        at->result.hold_subcode = s->w.result < 0 ? -s->w.result : 0;
        at->a->news->staged(at, s->w.result < 0 ? HOLD_CREDENTIAL : 0, s->w.err.text);
}

static void add_credential(void *arg, const char *file, struct str data)
{
        struct stage *s = arg;

        if (s->w.result == 0)
                s->w.result =
                        stage_work_text(&s->w, stage_work_file(&s->w, mem_dupz(""), mem_dupz(file)), data);
}

/* Credentials of a running job are replaced in the background: nothing waits for it. */
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
                stage_finish(s);
}
