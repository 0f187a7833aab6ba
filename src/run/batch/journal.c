/* DIR/journal: lines are appended; the last one may be incomplete.
 *
 *   submission NAME [USER OWNER]   its tasks follow; on disk before it is submitted
 *   count NAME COUNT               number of tasks that it was made with, forgotten ones included
 *   task NAME INDEX ID BOX         ID is request.member.fence.step
 *   native NAME NUMBER             the system's id
 *   kill ID
 *   hold ID                        while it waits; suspend: it is also stopped if it begins nevertheless;
 *   suspend ID                     release: neither
 *   release ID
 *   gone ID
 *
 * USER and OWNER are present with a map of users: the submitting user and the jobs' owner. The file is
 * rewritten from memory when it is opened, when most of it is obsolete, and after an error: nothing is
 * appended after a failed append.
 */
#include "run/batch/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/batch/acts.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"

#define JOURNAL_MAX   (1u << 30)
#define REWRITE_BYTES (8u << 20)
#define AGAIN_MS      1000 /* interval of tries to rewrite it after an error */

void batch_journal_submission(struct batch *b, const struct submission *s)
{
        const struct submit_user *p = s->submit_user;

        buf_printf(&b->journal.out, p->user ? "submission %s %s %s\n" : "submission %s\n", s->name, p->user,
                   p->owner);
        buf_printf(&b->journal.out, "count %s %u\n", s->name, s->count);
}

void batch_journal_task(struct batch *b, const struct task *t)
{
        buf_printf(&b->journal.out, "task %s %u ", t->s->name, t->index);
        run_id_print(&b->journal.out, t->id);
        buf_printf(&b->journal.out, " %s\n", t->box);
}

void batch_journal_native(struct batch *b, const struct submission *s)
{
        buf_printf(&b->journal.out, "native %s %s\n", s->name, s->native);
}

static void put_task_line(struct buf *out, const char *what, const struct task *t)
{
        buf_printf(out, "%s ", what);
        run_id_print(out, t->id);
        buf_char(out, '\n');
}

void batch_journal_kill(struct batch *b, const struct task *t)
{
        put_task_line(&b->journal.out, "kill", t);
}

void batch_journal_held(struct batch *b, const struct task *t)
{
        if (t->s)
                put_task_line(&b->journal.out, t->suspended ? "suspend" : t->held ? "hold" : "release", t);
}

void batch_journal_gone(struct batch *b, const struct task *t)
{
        put_task_line(&b->journal.gone, "gone", t);
}

void batch_journal_may_go(struct batch *b)
{
        buf_str(&b->journal.out, buf_view(&b->journal.gone));
        buf_reset(&b->journal.gone);
}

static void put_all(struct batch *b)
{
        struct str key;
        void *value;

        for (size_t at = 0; map_next(b->table.submissions, &at, &key, &value);)
                batch_journal_submission(b, value);
        for (struct task *t = b->table.all; t; t = t->next) {
                if (!t->s) /* never submitted */
                        continue;
                batch_journal_task(b, t);
                if (t->killing)
                        batch_journal_kill(b, t);
                if (t->held || t->suspended)
                        batch_journal_held(b, t);
        }
        for (size_t at = 0; map_next(b->table.submissions, &at, &key, &value);)
                if (((struct submission *)value)->native)
                        batch_journal_native(b, value);
}

static int write_anew(struct batch *b, struct err *err)
{
        buf_reset(&b->journal.out);
        put_all(b);
        size_t bytes = b->journal.out.n;
        int r = fs_write(b->fd, "journal", buf_view(&b->journal.out), 0600, true, err);
        buf_reset(&b->journal.out);
        if (r < 0)
                return r;
        int fd = openat(b->fd, "journal", O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return err_set(err, -errno, "cannot open %s/journal: %s", b->dir, strerror(errno));
        if (b->journal.fd >= 0)
                close(b->journal.fd);
        b->journal.fd = fd;
        b->journal.bytes = b->journal.live = bytes;
        b->journal.failed = false;
        return 0;
}

static int has_failed(struct batch *b, int r)
{
        if (!b->journal.failed)
                log_error(
                        "msg=\"cannot write the journal of a batch queue; nothing is submitted until it can "
                        "be\" dir=%s error=\"%s\"",
                        b->dir, strerror(-r));
        b->journal.failed = true;
        b->journal.again_ms = clock_boot_ms() + AGAIN_MS;
        buf_reset(&b->journal.out);
        return r;
}

int batch_journal_flush(struct batch *b, bool sync)
{
        int r = 0;

        if (b->journal.failed) {
                r = clock_boot_ms() < b->journal.again_ms ? -EAGAIN : write_anew(b, NULL);
                return r < 0 && r != -EAGAIN ? has_failed(b, r) : r;
        }
        if (b->journal.out.n == 0)
                return 0;
        r = fs_write_all(b->journal.fd, b->journal.out.p, b->journal.out.n);
        if (r == 0 && sync && fdatasync(b->journal.fd) < 0)
                r = -errno;
        b->journal.bytes += b->journal.out.n;
        buf_reset(&b->journal.out);
        if (r < 0)
                return (r = write_anew(b, NULL)) < 0 ? has_failed(b, r) : 0;
        if (b->journal.bytes > REWRITE_BYTES + 4 * b->journal.live)
                (void)write_anew(b, NULL); /* the old file is intact */
        return 0;
}

/* ---- reading */

static void read_task(struct batch *b, struct str line)
{
        struct str name, index, text;
        uint64_t number;
        struct run_id id;

        if (!str_cut(&line, ' ', &name) || !str_cut(&line, ' ', &index) || !str_cut(&line, ' ', &text) ||
            str_to_u64(index, &number) != 0 || !run_id_parse(text, &id))
                return;
        struct submission *s = map_get(b->table.submissions, name);
        struct task *t = map_get(b->table.tasks, run_key(&id));
        if (!s || (t && t->s == s))
                return;
        MEM_CLEANUP char *box = str_dupz(line);
        if (t) /* the array was refused: the first member was submitted alone */
                batch_submission_unref(b, t->s);
        else
                t = batch_task_new(b, s->submit_user, id, box);
        t->s = s;
        t->index = (unsigned)number;
        t->state = TASK_NAMED;
        s->left++;
        if (number < UINT32_MAX && t->index >= s->count) /* journals of early versions have no count */
                s->count = t->index + 1;
}

static void read_of_task(struct batch *b, struct str word, struct task *t)
{
        bool suspended = str_eqz(word, "suspend");

        if (str_eqz(word, "kill")) {
                t->killing = true;
        } else if (str_eqz(word, "gone")) {
                batch_task_free(b, t);
        } else if (suspended || str_eqz(word, "hold") || str_eqz(word, "release")) {
                t->suspended = suspended;
                t->held = !str_eqz(word, "release");
        }
}

static void read_line(struct batch *b, struct str line)
{
        struct str word;
        struct run_id id;

        if (!str_cut(&line, ' ', &word))
                return;
        if (str_eqz(word, "submission")) {
                struct str first, user = STR("");
                bool whose = str_cut(&line, ' ', &first) && str_cut(&line, ' ', &user);
                MEM_CLEANUP char *name = str_dupz(first), *local = str_dupz(user), *owner = str_dupz(line);

                if (!whose == !b->user_commands) /* not written by an agent of the other kind */
                        batch_submission_new(b, batch_submit_user(b, owner, local), name)->unsure = true;
        } else if (str_eqz(word, "count")) {
                struct str name;
                uint64_t count;
                struct submission *s =
                        str_cut(&line, ' ', &name) ? map_get(b->table.submissions, name) : NULL;

                if (s && str_to_u64(line, &count) == 0 && count <= UINT32_MAX)
                        s->count = (unsigned)count;
        } else if (str_eqz(word, "task")) {
                read_task(b, line);
        } else if (str_eqz(word, "native")) {
                struct str name;
                struct submission *s =
                        str_cut(&line, ' ', &name) ? map_get(b->table.submissions, name) : NULL;

                if (s)
                        batch_native_known(b, s, line);
        } else if (run_id_parse(line, &id)) {
                struct task *t = map_get(b->table.tasks, run_key(&id));

                if (t)
                        read_of_task(b, word, t);
        }
}

int batch_journal_open(struct batch *b, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        int r = fs_read(b->fd, "journal", JOURNAL_MAX, &text, err);

        if (r < 0 && r != -ENOENT)
                return r;
        struct str rest = buf_view(&text), line;
        while (rest.n && str_find(rest, '\n') >= 0 && str_cut(&rest, '\n', &line))
                read_line(b, line);
        bool is_there = r == 0;
        r = write_anew(b, err);
        if (r < 0 && is_there) { /* running tasks go on, and are reported */
                has_failed(b, r);
                r = 0;
        }
        return r;
}

void batch_journal_close(struct batch *b)
{
        if (b->journal.fd >= 0) {
                batch_journal_may_go(b);
                batch_journal_flush(b, false);
                close(b->journal.fd);
        }
        buf_deinit(&b->journal.out);
        buf_deinit(&b->journal.gone);
}
