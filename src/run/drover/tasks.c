/* The drover runner's tasks: the table, whose turn it is, and what is told of them to the agent: in the next
 * turn of the loop, all at once, and never from within one of the runner's verbs. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/drover/private.h"

#define WORKING_MAX  6   /* tasks whose files are on the way at the same time */
#define LOOK_MAX     64  /* tasks whose files are looked at in one turn */
#define SOON_MS      5   /* what is ready waits for others that may come */
#define GATHER_MS    100 /* and for those that are known to come */
#define GATHER_TASKS 1000

/* ---- telling */

void far_told(struct far *f)
{
        struct run_event *events = f->told;
        size_t count = f->told_count;
        if (count) {
                f->told = NULL;
                f->told_count = f->told_cap = 0;
                f->events(f->arg, events, count);
                for (size_t i = 0; i < count; i++)
                        free((char *)(uintptr_t)events[i].text);
                free(events);
        }
}

static void tell(void *arg)
{
        far_told(arg);
        far_work(arg);
}

void far_gather(struct far *f, struct run_event e)
{
        MEM_GROW(f->told, f->told_cap, f->told_count + 1);
        if (e.text)
                e.text = mem_dupz(e.text);
        f->told[f->told_count++] = e;
        timer_start(f->later, 0);
}

void far_tell(struct far *f, const struct far_task *t, bool known)
{
        struct run_event e = {.state = t->begun ? RUN_RUNNING : RUN_WAITING, .started_ms = t->started_ms};
        if (t->state == FAR_OVER) {
                e = t->result;
                e.text = t->text;
        }
        e.id = t->id;
        e.known = known;
        e.slot = UINT32_MAX;
        e.native = (int64_t)far_number(t);
        far_gather(f, e);
}

void far_tell_waits(struct far_task *t)
{
        far_gather(t->far, (struct run_event){.id = t->id,
                                              .state = RUN_WAITING,
                                              .what = "signal",
                                              .slot = UINT32_MAX,
                                              .native = (int64_t)far_number(t)});
}

void far_tell_runner(struct far *f, enum run_state state, const char *why)
{
        far_gather(f, (struct run_event){.state = state, .text = why});
}

void far_over(struct far_task *t, const struct run_event *result, const char *text)
{
        if (t->state == FAR_OVER)
                return;
        far_settled(t);
        http_call_cancel(t->call);
        t->call = NULL;
        command_cancel(t->errand);
        t->errand = NULL;
        if (t->fd >= 0)
                close(t->fd);
        t->fd = -1;
        t->state = FAR_OVER;
        t->result = *result;
        if (text) {
                struct buf words = {0};
                far_words(&words, str_of(text));
                t->text = buf_take(&words);
        }
        if (t->far->listed || t->far->refused)
                far_tell(t->far, t, false);
        timer_start(t->far->later, 0);
}

void far_fail(struct far_task *t, const char *what, int error, const char *text)
{
        far_over(t, &(struct run_event){.state = RUN_FAILED, .what = what, .error = error}, text);
}

void far_fail_files(struct far_task *t)
{
        BUF_CLEANUP struct buf b = {0};
        buf_printf(&b, "the job's folder has more than %d files, and more are not handed on", FAR_FILES_MAX);
        far_fail(t, "sandbox", E2BIG, buf_z(&b));
}

/* ---- the table */

struct far_task *far_task_new(struct far *f, struct run_id id)
{
        struct far_task *t = mem_new(struct far_task);
        t->far = f;
        t->id = id;
        t->fd = -1;
        t->link = f->last;
        *f->last = t;
        f->last = &t->next;
        map_put(f->tasks, run_key(&id), t);
        return t;
}

void far_task_free(struct far_task *t)
{
        struct far *f = t->far;
        far_settled(t);
        http_call_cancel(t->call);
        command_cancel(t->errand);
        map_take(f->tasks, run_key(&t->id));
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        if (f->last == &t->next)
                f->last = t->link;
        if (t->fd >= 0)
                close(t->fd);
        far_words_deinit(t);
        far_credentials_free(&t->credentials);
        free(t->sandbox);
        free(t->out);
        free(t->err);
        free(t->upload);
        free(t->text);
        free(t->said);
        free(t->hops);
        free(t->global);
        json_decref(t->failed);
        far_kept_drop(t);
        free(t->kept_id);
        free(t->program);
        free(t->stdin);
        free(t);
}

/* ---- turns */

static bool is_busy(const struct far_task *t)
{
        return t->call || t->errand;
}

/* Those without a call under way, whose files are to go up or come down: a few at a time. True: more FRESH
 * ones are on their way, or next. */
static bool work_tasks(struct far *f, int64_t now)
{
        size_t busy = 0, looked = 0;
        bool more = false;
        for (struct far_task *t = f->all; t; t = t->next)
                busy += is_busy(t) && (t->state == FAR_FRESH || t->state == FAR_FETCHING);
        for (struct far_task *t = f->all, *next; t; t = next) {
                next = t->next;
                more |= is_busy(t) && t->state == FAR_FRESH;
                if (is_busy(t) || t->given || now < t->not_before_ms)
                        continue;
                if (t->state == FAR_IN && t->dirty) {
                        far_look(t);
                } else if (t->state == FAR_FRESH && (busy >= WORKING_MAX || looked >= LOOK_MAX)) {
                        more = true;
                } else if (t->state == FAR_FRESH) {
                        looked += t->files.n > 0;
                        far_send_files(t);
                        busy += is_busy(t);
                        more |= is_busy(t);
                } else if (t->state == FAR_FETCHING && busy < WORKING_MAX) {
                        busy++, far_fetch(t);
                }
        }
        if (looked >= LOOK_MAX)
                timer_start(f->later, 0);
        return more;
}

/* Jobs are handed on together; one whose files are there does not wait long for others' files. */
static bool is_time(const struct far *f, int64_t now, bool more)
{
        size_t ready = 0;
        int64_t wait = more ? GATHER_MS : SOON_MS;
        for (const struct far_task *t = f->all; t; t = t->next) {
                if (t->state != FAR_READY)
                        continue;
                ready++;
                if (now - t->ready_ms >= wait || ready >= GATHER_TASKS)
                        return true;
        }
        if (ready)
                timer_start(f->gather, wait);
        return false;
}

void far_work(struct far *f)
{
        int64_t now = clock_boot_ms();
        if (!f->up)
                return;
        bool more = work_tasks(f, now);
        if (is_time(f, now, more))
                far_group(f);
        for (struct far_request *r = f->sent, *next; r && f->up; r = next) {
                next = r->next;
                if (r->call || now < r->not_before_ms)
                        continue;
                if (r->number)
                        far_carry(r);
                else
                        far_submit(r);
        }
}

static void gathered(void *far)
{
        far_work(far);
}

void far_tasks_open(struct far *f)
{
        f->last = &f->all;
        f->tasks = map_new();
        f->later = timer_new(f->loop, tell, f);
        f->gather = timer_new(f->loop, gathered, f);
}

void far_tasks_close(struct far *f)
{
        while (f->all)
                far_task_free(f->all);
        map_free(f->tasks);
        timer_free(f->later);
        timer_free(f->gather);
        for (size_t i = 0; i < f->told_count; i++)
                free((char *)(uintptr_t)f->told[i].text);
        free(f->told);
}
