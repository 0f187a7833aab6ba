/* How a task ended: what its script has written of it, and where that is missing the system's word. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "run/batch_private.h"

#define WORDLESS_MS 10000
#define DONE_MAX    4096

/* ---- files */

static void step_path(const struct task *t, const char *end, struct buf *out)
{
        buf_printf(out, "%s/" BATCH_STEP ".%u.%s", t->box, t->id.step, end);
}

/* When a file of the step was written last, by the file system's clock; 0: it is not there. A folder is of
 * the days when scripts made one. */
static uint64_t written_ms(const struct task *t, const char *end)
{
        BUF_CLEANUP struct buf path = {0};
        struct stat st;
        step_path(t, end, &path);
        if (lstat(buf_z(&path), &st) < 0)
                return 0;
        return (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
}

void batch_see_begin(struct batch *b, struct task *t)
{
        uint64_t at = t->begun ? 0 : written_ms(t, "began");
        if (!at)
                return;
        t->started_ms = at;
        t->begun = true;
        t->begun_ms = clock_boot_ms();
        if (b->listed)
                batch_tell(b, t, false);
}

/* The first line of ours, with this beginning, in what the system caught of the script. */
static bool caught_line(const struct batch *b, const struct task *t, struct str begin, struct buf *out)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        struct str rest, line;
        batch_log_path(b, t, &path);
        if (fs_read_regular(AT_FDCWD, buf_z(&path), 1 << 16, &text, NULL) < 0)
                return false;
        for (rest = buf_view(&text); rest.n && str_cut(&rest, '\n', &line);)
                if (str_starts(line, begin)) {
                        buf_str(out, str_skip(line, begin.n));
                        return true;
                }
        return false;
}

/* The system has run it again, which its script has refused. */
static bool ran_again(struct batch *b, const struct task *t)
{
        BUF_CLEANUP struct buf nothing = {0};
        return caught_line(b, t, STR("drover again"), &nothing);
}

static void say_why(const struct batch *b, const char *what, struct str reason, struct buf *out)
{
        buf_printf(out, "%s: %s", b->system->name, what);
        if (reason.n && !str_ieqz(reason, "None")) {
                buf_addz(out, " (");
                batch_clean(out, reason);
                buf_char(out, ')');
        }
}

/* As the same attempt it cannot begin once more, for nobody knows what it has done; so it is taken out. */
void batch_put_back(struct batch *b, struct task *t, struct str reason)
{
        BUF_CLEANUP struct buf text = {0};
        say_why(b, "it was put back into the queue there after it had begun", reason, &text);
        batch_act(b, t, BATCH_END);
        batch_over(b, t, &(struct run_event){.state = RUN_LOST}, buf_z(&text));
}

/* A script that was told to end says `killed`; by whom only the system knows. */
static void somebody_ended_it(struct batch *b, struct task *t, struct run_event *e, struct str reason)
{
        BUF_CLEANUP struct buf text = {0};
        if (t->phase == BATCH_OVER && ran_again(b, t)) {
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
        case BATCH_OVER: /* nobody else tells a script to end */
        case BATCH_CANCELLED:
                say_why(b, "it was cancelled there", reason, &text);
                batch_over(b, t,
                           &(struct run_event){.state = RUN_FAILED, .what = "batch", .error = ECANCELED},
                           buf_z(&text));
                return;
        case BATCH_WAITING:
        case BATCH_RUNNING: t->told_to_end = true; return; /* a later query tells by whom */
        default:
                say_why(b, "it was ended there", reason, &text);
                batch_over(b, t, &(struct run_event){.state = RUN_LOST}, buf_z(&text));
        }
}

/* How late a file may be seen after its task has ended; or a task be missing. */
static int64_t wordless_ms(const struct batch *b)
{
        return b->system->wordless_s ? b->system->wordless_s * 1000 : WORDLESS_MS;
}

/* A system that ends a job may reach the program before the script, which then knows no more than that a
 * SIGTERM has ended it. Whose that was the system's state tells, soon. */
static bool must_ask(const struct batch *b, struct task *t, const struct run_event *e)
{
        if (e->state != RUN_ENDED || e->why != RUN_ITSELF || !e->signaled || e->exit_code != SIGTERM ||
            t->killing || t->phase == BATCH_OVER)
                return false;
        if (!t->term_ms)
                t->term_ms = clock_boot_ms();
        return (t->phase != BATCH_WAITING && t->phase != BATCH_RUNNING) ||
               clock_boot_ms() - t->term_ms < wordless_ms(b);
}

bool batch_see_end(struct batch *b, struct task *t, struct str reason)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        struct run_event e = {0};
        step_path(t, "done", &path);
        if (fs_read_regular(AT_FDCWD, buf_z(&path), DONE_MAX, &text, NULL) < 0 ||
            !batch_script_done(buf_view(&text), &e))
                return false; /* or not whole yet */
        batch_see_begin(b, t);
        if (e.state == RUN_ENDED) {
                uint64_t at = written_ms(t, "done");
                e.started_ms = t->started_ms;
                e.ended_ms = at > t->started_ms ? at : t->started_ms;
        }
        if ((e.state == RUN_ENDED && e.why == RUN_KILLED && !t->killing) || must_ask(b, t, &e))
                somebody_ended_it(b, t, &e, reason);
        else
                batch_over(b, t, &e, e.text);
        return t->state == TASK_OVER;
}

/* ---- the end, by the system's word */

void batch_settle(struct batch *b, struct task *t, enum batch_phase phase, struct str reason)
{
        BUF_CLEANUP struct buf text = {0};
        struct run_event e = {.state = RUN_LOST};
        t->phase = phase;
        if (batch_see_end(b, t, reason))
                return;
        int64_t now = clock_boot_ms();
        if (!t->gone_ms)
                t->gone_ms = now;
        switch (phase) {
        case BATCH_CANCELLED:
                if (t->killing)
                        e = (struct run_event){
                                .state = RUN_ENDED, .why = RUN_KILLED, .signaled = true, .exit_code = 15};
                else
                        e = (struct run_event){.state = RUN_FAILED, .what = "batch", .error = ECANCELED};
                say_why(b, "it was cancelled there", reason, &text);
                break;
        case BATCH_TIMEOUT:
                e = (struct run_event){
                        .state = RUN_ENDED, .why = RUN_WALLTIME, .signaled = true, .exit_code = 9};
                break;
        case BATCH_MEMORY:
                e = (struct run_event){
                        .state = RUN_ENDED, .why = RUN_MEMORY, .signaled = true, .exit_code = 9};
                break;
        case BATCH_LOST: say_why(b, "its node failed, or it had to make room", reason, &text); break;
        case BATCH_UNFIT:
                e = (struct run_event){.state = RUN_FAILED, .what = "batch", .error = EINVAL};
                say_why(b, "it cannot run there", reason, &text);
                break;
        default: /* over, or missing */
                if (now - t->gone_ms < wordless_ms(b))
                        return;
                if (caught_line(b, t, STR("drover: "), &text))
                        e = (struct run_event){.state = RUN_FAILED, .what = "batch", .error = ENOENT};
                else if (t->killing)
                        e = (struct run_event){
                                .state = RUN_ENDED, .why = RUN_KILLED, .signaled = true, .exit_code = 15};
                else
                        say_why(b,
                                written_ms(t, "done") ? "how it ended cannot be read"
                                : phase == BATCH_OVER ? "it ended without a word"
                                                      : "it is not known there any more",
                                reason, &text);
        }
        if (e.state == RUN_ENDED)
                e.started_ms = t->started_ms, e.ended_ms = (uint64_t)clock_wall_ms();
        batch_over(b, t, &e, text.n ? buf_z(&text) : NULL);
}
