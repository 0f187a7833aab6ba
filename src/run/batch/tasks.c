/* The table of tasks and submissions, and the events about tasks, which are delivered in the loop's next
 * turn. */
#include "run/batch/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "run/batch/remote.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/throttle.h"

/* ---- events */

void batch_tell(struct batch *b, const struct task *t, bool known)
{
        struct run_event e = {.state = t->begun ? RUN_RUNNING : RUN_WAITING};

        if (t->state == TASK_OVER) {
                e = t->result;
                e.text = t->text;
        }
        e.id = t->id;
        e.known = known;
        e.slot = UINT32_MAX;
        if (t->state != TASK_OVER)
                e.started_ms = t->started_ms;
        if (t->s && t->s->native)
                e.native = (int64_t)strtoull(t->s->native, NULL, 10);
        event_queue_task(b->events, &e);
}

static void archive_task(struct batch *b, const struct task *t)
{
        BUF_CLEANUP struct buf path = {0};

        batch_step_path(t, "sh", &path);
        archive_add(b->archive, t->id, buf_z(&path));
}

void batch_over(struct batch *b, struct task *t, const struct run_event *result, const char *text)
{
        if (t->state == TASK_OVER)
                return;
        if (t->state == TASK_FRESH)
                b->table.fresh--;
        t->state = TASK_OVER;
        b->ended_ms = clock_boot_ms();
        if (t->s)
                archive_task(b, t);
        t->result = *result;
        t->text = text ? mem_dupz(text) : NULL;
        if (b->listed)
                batch_tell(b, t, false);
}

void batch_unwritten(struct batch *b, struct task *t, int error, const char *text)
{
        bool full = error == ENOSPC || error == EDQUOT;

        batch_over(
                b, t,
                &(struct run_event){.state = full ? RUN_LOST : RUN_FAILED, .what = "sandbox", .error = error},
                text);
}

/* ---- the table */

struct task *batch_task_new(struct batch *b, struct submit_user *p, struct run_id id, const char *box)
{
        struct task *t = mem_new(struct task);

        t->submit_user = p;
        t->id = id;
        t->box = mem_dupz(box);
        t->link = b->table.last;
        *b->table.last = t;
        b->table.last = &t->next;
        map_put(b->table.tasks, run_key(&id), t);
        return t;
}

struct submission *batch_submission_new(struct batch *b, struct submit_user *p, const char *name)
{
        struct submission *s = mem_new(struct submission);

        s->submit_user = p;
        p->submissions++;
        s->name = mem_dupz(name);
        map_put(b->table.submissions, str_of(name), s);
        return s;
}

void batch_native_key(const struct batch *b, const struct task *t, struct buf *out)
{
        if (t->s->count > 1)
                b->system->native_of(t->s->native, t->index, out);
        else
                buf_addz(out, t->s->native);
}

void batch_submission_unref(struct batch *b, struct submission *s)
{
        if (!s || --s->left > 0 || s->sending)
                return;
        if (s->queued)
                return; /* freed when its turn to be sent comes */
        batch_remote_forget_submission(b, s);
        BUF_CLEANUP struct buf name = {0};
        buf_printf(&name, "%s.sh", s->name);
        unlinkat(b->fd, buf_z(&name), 0);
        for (unsigned i = 0; i * BATCH_LIST_PART < s->count; i++) {
                buf_reset(&name);
                buf_printf(&name, "%s.list.%u", s->name, i);
                unlinkat(b->fd, buf_z(&name), 0);
        }
        batch_throttle_close(s);
        map_take(b->table.submissions, str_of(s->name));
        s->submit_user->submissions--;
        s->submit_user->left_ms = clock_boot_ms();
        free(s->name);
        free(s->native);
        free(s->head);
        free(s);
}

void batch_path(const struct batch *b, struct buf *out, const char *name, const char *end)
{
        buf_printf(out, "%s/%s%s", b->dir, name, end);
}

void batch_step_path(const struct task *t, const char *end, struct buf *out)
{
        buf_printf(out, "%s/" BATCH_STEP ".%u.%s", t->box, t->id.step, end);
}

uint64_t batch_written_ms(const struct task *t, const char *end)
{
        BUF_CLEANUP struct buf path = {0};
        struct stat st;

        batch_step_path(t, end, &path);
        if (lstat(buf_z(&path), &st) < 0)
                return 0;
        return (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
}

void batch_log_path(const struct batch *b, const struct task *t, struct buf *out)
{
        buf_printf(out, "%s/%s.%u.log", t->submit_user->dir, t->s->name,
                   t->index + (t->s->count > 1 ? b->system->index_first : 0));
}

void batch_task_free(struct batch *b, struct task *t)
{
        if (t->s && t->s->native) {
                BUF_CLEANUP struct buf key = {0};

                batch_native_key(b, t, &key);
                if (map_get(b->table.natives, buf_view(&key)) ==
                    t) /* a system that lost its state reuses ids */
                        map_take(b->table.natives, buf_view(&key));
        }
        if (t->s) {
                BUF_CLEANUP struct buf log = {0};

                batch_log_path(b, t, &log);
                unlink(buf_z(&log));
                batch_remote_forget_task(b, t);
        }
        map_take(b->table.tasks, run_key(&t->id));
        if (b->table.cursor == t)
                b->table.cursor = t->next;
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        if (b->table.last == &t->next)
                b->table.last = t->link;
        if (t->state == TASK_FRESH)
                b->table.fresh--;
        batch_submission_unref(b, t->s);
        free(t->box);
        free(t->head);
        free(t->text);
        free(t->said);
        free(t);
}

void batch_tasks_free(struct batch *b)
{
        struct str key;
        void *value;

        for (struct task *t = b->table.all, *next; t; t = next) {
                next = t->next;
                free(t->box);
                free(t->head);
                free(t->text);
                free(t->said);
                free(t);
        }
        for (size_t at = 0; map_next(b->table.submissions, &at, &key, &value);) {
                struct submission *s = value;

                free(s->name);
                free(s->native);
                free(s->head);
                free(s);
        }
        map_free(b->table.tasks);
        map_free(b->table.natives);
        map_free(b->table.submissions);
}
