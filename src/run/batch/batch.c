/* Implements the runner's calls on the table of tasks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/batch/acts.h"
#include "run/batch/journal.h"
#include "run/batch/orders.h"
#include "run/batch/remote.h"
#include "run/batch/reservations.h"
#include "run/batch/runner.h"
#include "run/batch/state.h"
#include "run/batch/submit.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/batch/throttle.h"

#define SCRIPT_MAX (4u << 20)

static struct batch *self(struct runner *r)
{
        return (struct batch *)(void *)r;
}

static struct task *find_task(struct batch *b, struct run_id id)
{
        return map_get(b->table.tasks, run_key(&id));
}

/* Writes a script. No rename is needed, since the script is not read before it is submitted, and renames are
 * slow for a whole queue. A file of any kind that an earlier step left in its place is replaced. */
static int write_script(const char *path, struct str text, mode_t mode)
{
        unlink(path);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        int r = fd < 0 ? -errno : fs_write_all(fd, text.p, text.n);
        if (fd >= 0 && r == 0 && fchmod(fd, mode) < 0) /* independent of the umask */
                r = -errno;
        if (fd >= 0 && close(fd) < 0 && r == 0)
                r = -errno;
        return r;
}

void batch_submit(struct runner *r, const struct run_spec *spec)
{
        struct batch *b = self(r);

        if (find_task(b, spec->id))
                return;
        struct task *t =
                batch_task_new(b, batch_submit_user(b, spec->owner, spec->user), spec->id, spec->sandbox);
        BUF_CLEANUP struct buf head = {0}, script = {0}, path = {0}, lease = {0};
        const char *energy = batch_setting(&b->settings, "energy");
        struct batch_guard guard = {.traps = b->system->traps, .every_s = b->watch_s};
        static const char *const reserved[] = {"ReservationId", NULL};
        struct run_spec own = *spec;
        struct err err = {""};
        t->state = TASK_FRESH;
        b->table.fresh++;
        own.reservation = batch_reservation_name(b, batch_word(spec, reserved, &b->settings, NULL));
        if (b->system->resources(&b->settings, &own, &head, &err) < 0) {
                batch_over(b, t, &(struct run_event){.state = RUN_FAILED, .what = "request", .error = EINVAL},
                           err.text);
                return;
        }
        batch_path(b, &lease, "lease", "");
        guard.lease = buf_z(&lease);
        if (energy && !strcmp(energy, "yes"))
                guard.energy = b->system->energy;
        batch_script(spec, buf_z(&head), &guard, &script);
        buf_printf(&path, "%s/" BATCH_STEP ".%u.sh", spec->sandbox, spec->id.step);
        int result = write_script(buf_z(&path), buf_view(&script), b->user_commands ? 0755 : 0700);
        if (result < 0) {
                err_set(&err, result, "cannot write %s: %s", buf_z(&path), strerror(-result));
                batch_unwritten(b, t, -result, err.text);
                return;
        }
        t->head = buf_take(&head);
        batch_submit_later(b);
}

void batch_kill(struct runner *r, struct run_id id, uint64_t grace_ms)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        (void)grace_ms; /* the script and the system have their own grace */
        if (!t || t->state == TASK_OVER)
                return;
        t->killing = true;
        if (t->state == TASK_FRESH) {
                batch_over(b, t,
                           &(struct run_event){
                                   .state = RUN_ENDED, .why = RUN_KILLED, .signaled = true, .exit_code = 15},
                           NULL);
                return;
        }
        batch_journal_kill(b, t);
        if (t->stopped) /* the script may be stopped, too */
                batch_stop(b, t, false);
        batch_act(b, t, BATCH_END);
}

static void hold(struct batch *b, struct task *t, bool on)
{
        if (t->begun || t->held == on)
                return;
        t->held = on;
        batch_act(b, t, on ? BATCH_HOLD : BATCH_RELEASE);
        if (!on)
                batch_submit_later(b);
}

/* Records in the journal what a waiting task was told, so that it can be undone after a restart. */
static void wait_as(struct batch *b, struct task *t, bool held, bool suspended)
{
        bool same = t->held == held && t->suspended == suspended;

        t->suspended = suspended;
        hold(b, t, held);
        if (!same)
                batch_journal_held(b, t);
}

void batch_suspend(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        if (t && t->begun)
                batch_stop(b, t, true);
        else if (t)
                wait_as(b, t, true, true); /* it may begin nevertheless */
}

void batch_resume(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        if (t && t->begun)
                batch_stop(b, t, false);
        if (t)
                wait_as(b, t, false, false);
}

void batch_hold(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        if (t)
                wait_as(b, t, true, t->suspended);
}

void batch_release(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        if (t)
                wait_as(b, t, false, t->suspended);
}

void batch_signal(struct runner *r, struct run_id id, int signal)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        if (t && (signal == SIGSTOP || signal == SIGCONT))
                batch_stop(b, t, signal == SIGSTOP);
        else if (t)
                batch_order(b, t, signal);
}

void batch_status(struct runner *r, const struct run_id *ids, size_t count)
{
        struct batch *b = self(r);

        for (size_t i = 0; i < count; i++) {
                struct task *t = find_task(b, ids[i]);

                if (t)
                        batch_tell(b, t, true);
        }
}

void batch_forget(struct runner *r, struct run_id id)
{
        struct batch *b = self(r);
        struct task *t = find_task(b, id);

        if (!t)
                return;
        batch_act_unasked(b, t, BATCH_END); /* if it is not over: it is not wanted any more */
        batch_journal_gone(b, t);
        batch_task_free(b, t);
}

/* Sets the time of the file lease.end, by the file system's clock, to the lease's end. Without it scripts
 * compute the end themselves, which takes a few processes. */
static void lease_end(struct batch *b, int64_t term_s)
{
        struct stat st;
        struct timespec times[2];

        if (fs_write(b->fd, BATCH_LEASE_END, STR(""), 0644, false, NULL) < 0 ||
            fstatat(b->fd, BATCH_LEASE_END, &st, 0) < 0)
                goto none;
        st.st_mtim.tv_sec += term_s;
        times[0] = times[1] = st.st_mtim;
        if (utimensat(b->fd, BATCH_LEASE_END, times, 0) == 0)
                return;
none:
        unlinkat(b->fd, BATCH_LEASE_END, 0);
}

/* Overwrites the file in place, which works on a full disk: the text has about the same length, and fits
 * into one block. */
static int write_over(int dirfd, const char *name, struct str text)
{
        int fd = openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : fs_write_all(fd, text.p, text.n);

        if (r == 0 && ftruncate(fd, (off_t)text.n) < 0)
                r = -errno;
        if (fd >= 0)
                close(fd);
        return r;
}

/* Writes the lease. Scripts measure it from the time at which its serial changes, so other machines' clocks
 * do not matter. */
void batch_lease(struct runner *r, int64_t until_boot_ms)
{
        struct batch *b = self(r);
        int64_t left = until_boot_ms - clock_boot_ms();
        BUF_CLEANUP struct buf text = {0};
        struct err err = {""};

        if (until_boot_ms == 0 || left <= 0)
                return;
        int64_t late_ms = !b->remote ? 0 : left / 4 < BATCH_REMOTE_LATE_MS ? left / 4 : BATCH_REMOTE_LATE_MS;
        left -= late_ms;
        int64_t term = batch_script_lease(clock_wall_ms(), ++b->lease_serial, left, b->watch_s, &text);
        lease_end(b, term); /* first, since it holds whatever follows */
        int result = fs_write(b->fd, "lease", buf_view(&text), 0644, false, &err);
        if ((result == -ENOSPC || result == -EDQUOT) && write_over(b->fd, "lease", buf_view(&text)) == 0)
                result = 0;
        if (result < 0)
                log_error("msg=\"cannot renew the lease of batch jobs\" error=\"%s\"",
                          LOG_TEXT(str_of(err.text)));
        batch_remote_lease(b, buf_view(&text), late_ms);
}

int batch_script_of(struct runner *r, struct run_id id, struct buf *out)
{
        const struct task *t = find_task(self(r), id);
        BUF_CLEANUP struct buf path = {0};

        if (!t)
                return archive_read(self(r)->archive, id, out);
        buf_printf(&path, "%s/" BATCH_STEP ".%u.sh", t->box, t->id.step);
        return fs_read_regular(AT_FDCWD, buf_z(&path), SCRIPT_MAX, out, NULL);
}

int batch_where(struct runner *r, struct run_id id, struct run_where *ret)
{
        struct batch *b = self(r);
        const struct task *t = find_task(b, id);
        BUF_CLEANUP struct buf native = {0};

        if (!t)
                return -ENOENT;
        const struct throttle *throttle = t->state == TASK_FRESH || t->state == TASK_NAMED
                                                  ? batch_throttle_find(b, t->submit_user,
                                                                        t->head ? t->head
                                                                        : t->s  ? t->s->head
                                                                                : NULL)
                                                  : NULL;
        *ret = (struct run_where){.said = t->begun                         ? NULL
                                          : batch_throttle_words(throttle) ? batch_throttle_words(throttle)
                                                                           : t->said,
                                  .word = t->state == TASK_OVER            ? "over"
                                          : t->stopped || t->stopped_there ? "suspended"
                                          : t->held                        ? "held"
                                          : t->begun                       ? "running"
                                          : t->s && t->s->native           ? "waiting"
                                          : batch_throttle_words(throttle) ? "refused for now"
                                                                           : "submitting"};
        if (t->s && t->s->native) {
                batch_native_key(b, t, &native);
                snprintf(ret->native, sizeof(ret->native), "%s", buf_z(&native));
        }
        return 0;
}

void batch_flush(struct runner *r)
{
        struct batch *b = self(r);

        batch_journal_may_go(b);
        batch_journal_flush(b, false);
        batch_acts_run(b);
}
