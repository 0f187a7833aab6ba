/* The journal of a batch queue, on a real file: after an error, after a restart, and as it grows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "run/batch/acts.h"
#include "run/batch/journal.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"

static char dir[64];

static int setup(void **state)
{
        (void)state;
        snprintf(dir, sizeof(dir), "/tmp/drover-journal-XXXXXX");
        return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, dir);
}

static void begin(struct batch *b)
{
        *b = (struct batch){.system = &batch_slurm, .journal = {.fd = -1}};
        b->dir = dir;
        b->acts = batch_acts_new();
        b->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        b->table.tasks = map_new();
        b->table.natives = map_new();
        b->table.submissions = map_new();
        b->table.last = &b->table.all;
        struct err err = {""};
        assert_int_equal(batch_journal_open(b, &err), 0);
}

static void end(struct batch *b)
{
        batch_journal_close(b);
        batch_tasks_free(b);
        batch_submit_users_free(b);
        batch_acts_free(b->acts);
        close(b->fd);
}

static struct submission *submission(struct batch *b, const char *name, unsigned count)
{
        struct submission *s = batch_submission_new(b, batch_submit_user(b, NULL, NULL), name);

        s->count = s->left = count;
        batch_journal_submission(b, s);
        return s;
}

static struct task *task_in(struct batch *b, struct submission *s, uint64_t request, unsigned index,
                            const char *box)
{
        struct task *t = batch_task_new(b, s->submit_user, (struct run_id){request, index, 1, 0, 0}, box);

        t->s = s;
        t->index = index;
        t->state = TASK_NAMED;
        batch_journal_task(b, t);
        return t;
}

static struct task *task(struct batch *b, struct submission *s, uint64_t request, unsigned index)
{
        return task_in(b, s, request, index, "/box");
}

static struct task *find(struct batch *b, uint64_t request, unsigned index)
{
        return map_get(b->table.tasks, run_key(&(struct run_id){request, index, 1, 0, 0}));
}

static void put_in_place(struct batch *b, const char *file)
{
        close(b->journal.fd);
        b->journal.fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_true(b->journal.fd >= 0);
}

/* After a failed append nothing in the file is relied on: it is rewritten before a flush succeeds. */
static void what_is_submitted_is_known_after_an_error(void **state)
{
        (void)state;
        struct batch b;
        begin(&b);
        struct submission *s = submission(&b, "drover-1", 1);
        task(&b, s, 7, 0);
        put_in_place(&b, "/dev/full");
        assert_int_equal(batch_journal_flush(&b, true), 0);
        task(&b, submission(&b, "drover-2", 1), 8, 0);
        batch_native_known(&b, s, STR("123"));
        batch_journal_native(&b, s);
        assert_int_equal(batch_journal_flush(&b, true), 0);
        end(&b);
        begin(&b);
        assert_non_null(find(&b, 8, 0));
        assert_string_equal(find(&b, 7, 0)->s->native, "123");
        end(&b);
}

static void nothing_is_submitted_while_it_cannot_be_written(void **state)
{
        (void)state;
        struct batch b;
        begin(&b);
        task(&b, submission(&b, "drover-1", 1), 7, 0);
        put_in_place(&b, "/dev/full");
        int fd = b.fd;
        b.fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* no file can be made there */
        for (int i = 0; i < 3; i++)
                assert_true(batch_journal_flush(&b, i != 1) < 0);
        close(b.fd);
        b.fd = fd;
        b.journal.again_ms = 0;
        assert_int_equal(batch_journal_flush(&b, true), 0);
        end(&b);
        begin(&b);
        assert_non_null(find(&b, 7, 0));
        end(&b);
}

/* A journal truncated at every length, as a kill leaves it: complete lines count, and nothing else. */
static void cut_anywhere(void **state)
{
        (void)state;
        struct batch b;
        BUF_CLEANUP struct buf text = {0};
        begin(&b);
        struct submission *s = submission(&b, "drover-1", 3);
        for (unsigned i = 0; i < 3; i++)
                task(&b, s, 7, i);
        batch_native_known(&b, s, STR("123"));
        batch_journal_native(&b, s);
        batch_journal_kill(&b, find(&b, 7, 1));
        batch_journal_gone(&b, find(&b, 7, 2));
        end(&b);
        int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(fs_read(dirfd, "journal", 1 << 20, &text, NULL), 0);
        for (size_t n = 0; n <= text.n; n++) {
                assert_int_equal(fs_write(dirfd, "journal", str_head(buf_view(&text), n), 0600, false, NULL),
                                 0);
                size_t tasks = 0;
                for (size_t i = 0; i < n; i++) {
                        struct str line = str_skip(buf_view(&text), i);
                        bool first = i == 0 || text.p[i - 1] == '\n';
                        ptrdiff_t stop = str_find(line, '\n');

                        if (first && i + (size_t)stop < n)
                                tasks += str_starts(line, STR("task ")) ? 1 : 0;
                        if (first && i + (size_t)stop < n && str_starts(line, STR("gone ")))
                                tasks--;
                }
                begin(&b);
                assert_int_equal(map_count(b.table.tasks), tasks);
                struct task *t = find(&b, 7, 0);
                if (t && t->s->native)
                        assert_string_equal(t->s->native, "123");
                end(&b);
        }
        close(dirfd);
}

/* The system refused an array, and its members were submitted alone. */
static void a_member_that_was_submitted_by_itself(void **state)
{
        (void)state;
        struct batch b;
        begin(&b);
        struct submission *array = submission(&b, "drover-1", 2);
        task(&b, array, 7, 0);
        struct task *t = task(&b, array, 7, 1);
        struct submission *one = submission(&b, "drover-2", 1);
        t->s = one;
        t->index = 0;
        array->left--;
        batch_journal_task(&b, t);
        batch_native_known(&b, one, STR("124"));
        batch_journal_native(&b, one);
        end(&b);
        begin(&b);
        assert_string_equal(find(&b, 7, 1)->s->name, "drover-2");
        assert_int_equal(find(&b, 7, 1)->state, TASK_IN);
        assert_string_equal(find(&b, 7, 0)->s->name, "drover-1");
        assert_int_equal(find(&b, 7, 0)->s->left, 1);
        end(&b);
}

/* Forgotten tasks leave the journal when the agent's own journal has their results. */
static void gone_is_the_agents_word(void **state)
{
        (void)state;
        struct batch b, other;
        begin(&b);
        struct submission *s = submission(&b, "drover-1", 2);
        struct task *t = task(&b, s, 7, 0);
        task(&b, s, 7, 1);
        batch_journal_gone(&b, t);
        batch_task_free(&b, t);
        assert_int_equal(batch_journal_flush(&b, true), 0);
        begin(&other);
        assert_non_null(find(&other, 7, 0));
        end(&other);
        end(&b);
}

static void it_is_no_longer_than_what_it_holds(void **state)
{
        (void)state;
        struct batch b;
        struct stat st;
        begin(&b);
        char box[2048];
        memset(box, 'x', sizeof(box) - 1);
        box[sizeof(box) - 1] = 0;
        task(&b, submission(&b, "drover-0", 1), 1, 0);
        for (unsigned i = 0; i < 6000; i++) {
                char name[32];

                snprintf(name, sizeof(name), "drover-%x", i + 1);
                struct task *t = task_in(&b, submission(&b, name, 1), 7, i, box);
                batch_journal_gone(&b, t);
                batch_task_free(&b, t);
                if (i % 100 == 0) {
                        batch_journal_may_go(&b);
                        assert_int_equal(batch_journal_flush(&b, false), 0);
                }
        }
        assert_int_equal(fstatat(b.fd, "journal", &st, 0), 0);
        assert_true(st.st_size < 9 << 20);
        end(&b);
        begin(&b);
        assert_int_equal(map_count(b.table.tasks), 1);
        assert_int_equal(map_count(b.table.submissions), 1);
        end(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_is_submitted_is_known_after_an_error, setup, teardown),
                cmocka_unit_test_setup_teardown(nothing_is_submitted_while_it_cannot_be_written, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(cut_anywhere, setup, teardown),
                cmocka_unit_test_setup_teardown(a_member_that_was_submitted_by_itself, setup, teardown),
                cmocka_unit_test_setup_teardown(gone_is_the_agents_word, setup, teardown),
                cmocka_unit_test_setup_teardown(it_is_no_longer_than_what_it_holds, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
