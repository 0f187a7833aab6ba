#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

static void copies(void **state)
{
        char *p = mem_dup("a\0b", 3);

        (void)state;
        assert_memory_equal(p, "a\0b", 4);
        free(p);
        p = mem_dup(NULL, 0);
        assert_string_equal(p, "");
        free(p);
        assert_null(mem_dupz(NULL));
        p = mem_zalloc(0);
        assert_non_null(p);
        free(p);
}

static void grows(void **state)
{
        uint32_t *v = NULL;
        size_t cap = 0, moved = 0;

        (void)state;
        for (size_t n = 0; n < 10000; n++) {
                size_t was = cap;

                MEM_GROW(v, cap, n + 1);
                moved += was != cap;
                v[n] = (uint32_t)n;
        }
        assert_true(moved < 14);
        for (size_t n = 0; n < 10000; n++)
                assert_int_equal(v[n], n);
        free(v);
}

static void overflow_aborts(void **state)
{
        pid_t pid = fork();
        int status;

        (void)state;
        if (pid == 0) {
                signal(SIGABRT, SIG_DFL);
                close(STDERR_FILENO);
                free(mem_array(NULL, SIZE_MAX / 4, 8));
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(copies),
                cmocka_unit_test(grows),
                cmocka_unit_test(overflow_aborts),
        };

        return cmocka_run_group_tests_name("base/mem", tests, NULL, NULL);
}
