/* Decides how a task ended: from its script's files, and without them from the system's report. */
#include "run/batch/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "run/batch/acts.h"
#include "run/batch/calls.h"
#include "run/batch/orders.h"
#include "run/batch/remote.h"
#include "run/batch/state.h"
#include "run/batch/tasks.h"
#include "run/call/answer.h"

#define WORDLESS_MS 10000
#define PAST_MS     600000 /* longest wait for accounting that does not answer or is late */
#define BEHIND_MS   60000  /* time after an outage in which accounting may be late */
#define DONE_MAX    4096
#define SETTLES_MAX 8 /* looks for a task's end between two status queries */

/* ---- files */

/* Reads the output that the system collected of the script. */
static bool caught(const struct batch *b, const struct task *t, struct buf *out)
{
        BUF_CLEANUP struct buf path = {0};

        batch_log_path(b, t, &path);
        return fs_read_regular(AT_FDCWD, buf_z(&path), 1 << 16, out, NULL) == 0;
}

/* Finds the first line that starts with `begin` in the output that the system collected from the script, and
 * appends the rest of that line. Returns false: there is no such line. */
static bool caught_line(const struct batch *b, const struct task *t, struct str begin, struct buf *out)
{
        BUF_CLEANUP struct buf text = {0};
        struct str rest, line;

        if (!caught(b, t, &text))
                return false;
        for (rest = buf_view(&text); rest.n && str_cut(&rest, '\n', &line);)
                if (str_starts(line, begin)) {
                        buf_str(out, str_skip(line, begin.n));
                        return true;
                }
        return false;
}

/* Returns whether the system has run the script again, which the script has refused. */
static bool ran_again(const struct task *t)
{
        return batch_written_ms(t, "again");
}

static void say_why(const struct batch *b, const char *what, struct str reason, struct buf *out)
{
        buf_printf(out, "%s: %s", b->system->name, what);
        if (reason.n && !str_ieqz(reason, "None")) {
                buf_addz(out, " (");
                answer_clean(out, reason);
                buf_char(out, ')');
        }
}

/* Returns whether the task was killed for its memory, which not every system reports as a state. */
static bool killed_for_memory(const struct batch *b, const struct task *t)
{
        BUF_CLEANUP struct buf text = {0};

        return b->system->memory_words && caught(b, t, &text) &&
               str_search(buf_view(&text), str_of(b->system->memory_words)) >= 0;
}

/* Removes a requeued task from the system: an attempt cannot begin twice, since the effects of its first run
 * are unknown. */
void batch_put_back(struct batch *b, struct task *t, struct str reason)
{
        BUF_CLEANUP struct buf text = {0};

        say_why(b, "it was put back into the queue there after it had begun", reason, &text);
        batch_act_unasked(b, t, BATCH_END); /* no query names it any more */
        batch_over(b, t, &(struct run_event){.state = RUN_LOST}, buf_z(&text));
}

/* Derives who ended the task when its script reports `killed`, from the system's state. */
static void somebody_ended_it(struct batch *b, struct task *t, struct run_event *e, struct str reason)
{
        BUF_CLEANUP struct buf text = {0};

        if (t->phase == BATCH_OVER && ran_again(t)) {
                batch_put_back(b, t, STR(""));
                return;
        }
        switch (t->phase) {
        case BATCH_TIMEOUT:
                e->why = RUN_WALLTIME;
                batch_over(b, t, e, NULL);
                return;
        case BATCH_MEMORY:
                e->why = RUN_MEMORY;
                batch_over(b, t, e, NULL);
                return;
        case BATCH_OVER: /* only the system tells a script to end */
        case BATCH_CANCELLED:
                say_why(b, "it was cancelled there", reason, &text);
                batch_over(b, t,
                           &(struct run_event){.state = RUN_FAILED, .what = "batch", .error = ECANCELED},
                           buf_z(&text));
                return;
        case BATCH_WAITING:
        case BATCH_RUNNING: t->told_to_end = true; return; /* a later query tells who ended it */
        default:
                say_why(b, "it was ended there", reason, &text);
                batch_over(b, t, &(struct run_event){.state = RUN_LOST}, buf_z(&text));
        }
}

/* Returns how long after a task's end its files may appear, or it may be missing from answers, in ms. */
static int64_t wordless_ms(const struct batch *b)
{
        return b->system->wordless_s ? b->system->wordless_s * 1000 : WORDLESS_MS;
}

/* Returns whether accounting may still have the outcome: it is unreachable, late, or being asked. */
static bool in_the_books(const struct batch *b, const struct task *t, int64_t waited_ms)
{
        bool behind = b->query.past_away_ms && clock_boot_ms() - b->query.past_away_ms < BEHIND_MS;

        return waited_ms < PAST_MS &&
               (behind || t->owed || (b->system->past_away && batch_busy(b, SLOT_PAST)));
}

/* Returns whether the system must be asked who ended the task. A system that ends a job may signal the
 * program before the script, which then knows only that a SIGTERM or SIGKILL has ended the program. The
 * system's state, or its accounting, tells the cause. A job that is over has been ended by its own signal,
 * unless the system has requeued it, which it does not do with a job that ended by itself. */
static bool must_ask(const struct batch *b, struct task *t, const struct run_event *e)
{
        if (e->state != RUN_ENDED || e->why != RUN_ITSELF || !e->signaled ||
            (e->exit_code != SIGTERM && e->exit_code != SIGKILL) || t->killing)
                return false;
        if (t->phase == BATCH_OVER)
                return ran_again(t);
        if (!t->term_ms)
                t->term_ms = clock_boot_ms();
        int64_t waited = clock_boot_ms() - t->term_ms;
        return (t->phase != BATCH_WAITING && t->phase != BATCH_RUNNING) || waited < wordless_ms(b) ||
               in_the_books(b, t, waited);
}

bool batch_see_end(struct batch *b, struct task *t, struct str reason)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        struct run_event e = {0};

        batch_step_path(t, "done", &path);
        if (fs_read_regular(AT_FDCWD, buf_z(&path), DONE_MAX, &text, NULL) < 0 ||
            !batch_script_done(buf_view(&text), &e))
                return false; /* or incomplete */
        batch_see_begin(b, t);
        if (e.state == RUN_ENDED) {
                uint64_t at = batch_written_ms(t, "done");

                e.started_ms = t->started_ms;
                e.ended_ms = at > t->started_ms ? at : t->started_ms;
        }
        if ((e.state == RUN_ENDED && e.why == RUN_KILLED && !t->killing) || must_ask(b, t, &e))
                somebody_ended_it(b, t, &e, reason);
        else
                batch_over(b, t, &e, e.text);
        return t->state == TASK_OVER;
}

/* ---- the end, as the system reports it */

static const struct run_event
        killed = {.state = RUN_ENDED, .why = RUN_KILLED, .signaled = true, .exit_code = 15},
        out_of_time = {.state = RUN_ENDED, .why = RUN_WALLTIME, .signaled = true, .exit_code = 9},
        out_of_memory = {.state = RUN_ENDED, .why = RUN_MEMORY, .signaled = true, .exit_code = 9},
        cancelled = {.state = RUN_FAILED, .what = "batch", .error = ECANCELED};

/* Returns whether a report of the script may still arrive. For a task with an end the system has said
 * everything. */
static bool word_may_come(const struct batch *b, const struct task *t)
{
        int64_t gone = clock_boot_ms() - t->gone_ms;

        return gone < wordless_ms(b) || (t->phase != BATCH_OVER && in_the_books(b, t, gone));
}

/* The batch system no longer lists the task, and has no exit code of it: the end is derived from what is
 * known. */
static void outcome_guess(const struct batch *b, const struct task *t, struct str reason, struct run_event *e,
                          struct buf *text)
{
        bool cut = batch_written_ms(t, "done");

        if (caught_line(b, t, STR("drover: "), text))
                *e = (struct run_event){.state = RUN_FAILED, .what = "batch", .error = ENOENT};
        else if (t->killing)
                *e = killed;
        else if (!cut && killed_for_memory(b, t))
                *e = out_of_memory;
        else if (!cut && t->vanished && !t->begun) {
                *e = cancelled;
                say_why(b, "it was cancelled there while it waited", reason, text);
        } else
                say_why(b,
                        t->told_to_end           ? "it was ended there, and nobody says by whom"
                        : cut                    ? "how it ended cannot be read"
                        : t->phase == BATCH_OVER ? "it ended without a word"
                                                 : "it is not known there any more",
                        reason, text);
}

/* Returns whether the task's files may be looked at again: an answer may say a million times that it is over,
 * and each look takes system calls. */
static bool may_look(const struct batch *b, struct task *t)
{
        if (t->settled != b->query.generation) {
                t->settled = b->query.generation;
                t->settles = 0;
        }
        return t->settles++ < SETTLES_MAX;
}

void batch_settle(struct batch *b, struct task *t, enum batch_phase phase, struct str reason)
{
        BUF_CLEANUP struct buf text = {0};
        struct run_event e = {.state = RUN_LOST};

        if (!may_look(b, t))
                return;
        batch_see_begin(b, t);
        /* a task that has run was not unfit: its script was killed */
        t->phase = phase == BATCH_UNFIT && t->begun ? BATCH_OVER : phase;
        if (batch_see_end(b, t, reason))
                return;
        if (!t->gone_ms)
                t->gone_ms = clock_boot_ms();
        if (batch_remote_may_tell(b, t))
                return;
        switch (t->phase) {
        case BATCH_CANCELLED:
                e = t->killing ? killed : cancelled;
                say_why(b, "it was cancelled there", reason, &text);
                break;
        case BATCH_TIMEOUT: e = out_of_time; break;
        case BATCH_MEMORY: e = out_of_memory; break;
        case BATCH_LOST: say_why(b, "its node failed, or it had to make room", reason, &text); break;
        case BATCH_UNFIT:
                e = (struct run_event){.state = RUN_FAILED, .what = "batch", .error = EINVAL};
                say_why(b, "it cannot run there", reason, &text);
                break;
        default:
                if (word_may_come(b, t))
                        return;
                outcome_guess(b, t, reason, &e, &text);
        }
        if (e.state == RUN_ENDED)
                e.started_ms = t->started_ms, e.ended_ms = (uint64_t)clock_wall_ms();
        batch_over(b, t, &e, text.n ? buf_z(&text) : NULL);
}

/* Handles a task missing from an answer. Some systems drop a cancelled member of an array at once, without
 * accounting. A task that was listed a moment ago, or was submitted since, has not begun and been forgotten
 * in between. */
void batch_missing(struct batch *b, struct task *t)
{
        bool was = t->seen + 1 == b->query.generation ||
                   (b->query.asked_before_ms && t->in_ms >= b->query.asked_before_ms);

        if (!t->gone_ms)
                t->vanished = was && t->phase == BATCH_WAITING && t->s->count > 1 &&
                              t->s->seen == b->query.generation;
        batch_settle(b, t, t->phase, STR(""));
}
