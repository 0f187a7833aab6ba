/* How a task ended, where the batch system says it too often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/system/fs.h"
#include "run/batch/outcome.h"
#include "run/batch/state.h"
#include "run/batch/tasks.h"

static char top[64];

static int setup(void **state)
{
        (void)state;
        snprintf(top, sizeof(top), "/tmp/drover-outcome-XXXXXX");
        return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

/* An answer of 64 MiB names an ended task more than a million times. Of these a few have the task's files
 * looked at; the next answer has them looked at again. */
static void an_end_that_is_said_a_million_times(void **state)
{
        struct batch b = {.system = &batch_slurm, .query = {.generation = 7}};
        struct submission s = {.name = (char *)"drover-1", .count = 1};
        struct task t = {.box = top, .s = &s, .state = TASK_IN};
        BUF_CLEANUP struct buf path = {0};

        (void)state;
        for (unsigned i = 0; i < 100; i++)
                batch_settle(&b, &t, BATCH_OVER, STR(""));
        assert_int_equal(t.state, TASK_IN); /* the report of its script may still come */
        batch_step_path(&t, "done", &path);
        assert_int_equal(
                fs_write(AT_FDCWD, buf_z(&path), STR("ended 3 itself 1000 2500\n"), 0600, false, NULL), 0);
        for (unsigned i = 0; i < 100; i++)
                batch_settle(&b, &t, BATCH_OVER, STR(""));
        assert_int_equal(t.state, TASK_IN);
        b.query.generation++;
        batch_settle(&b, &t, BATCH_OVER, STR(""));
        assert_int_equal(t.state, TASK_OVER);
        assert_int_equal(t.result.exit_code, 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_end_that_is_said_a_million_times, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
