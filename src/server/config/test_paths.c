#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/config/paths.h"

static struct paths paths;

static int setup(void **state)
{
        char dir[] = "/tmp/test-paths-XXXXXX";
        struct err err = {""};

        (void)state;
        return mkdtemp(dir) ? paths_init(&paths, dir, &err) : -1;
}

static int teardown(void **state)
{
        (void)state;
        unlink(paths.lock);
        rmdir(paths.dir);
        paths_deinit(&paths);
        return 0;
}

/* A server that is killed while it makes a child: the child has the lock until it executes its program. */
static void lock_of_a_dead_servers_child(void **state)
{
        int fd, status;
        struct err err = {""};
        pid_t server = fork();

        (void)state;
        if (server == 0) {
                if (paths_lock(&paths, &fd, NULL) != 0)
                        _exit(1);
                if (fork() == 0) {
                        usleep(300000);
                        _exit(0);
                }
                _exit(0);
        }
        assert_int_equal(waitpid(server, &status, 0), server);
        assert_int_equal(status, 0);
        assert_int_equal(paths_lock(&paths, &fd, &err), 0);
        close(fd);
}

static void lock_of_a_living_server(void **state)
{
        int first, second;
        char pid[32];
        struct err err = {""};

        (void)state;
        assert_int_equal(paths_lock(&paths, &first, &err), 0);
        assert_int_equal(paths_lock(&paths, &second, &err), -EBUSY);
        snprintf(pid, sizeof(pid), "(pid %ld)", (long)getpid());
        assert_non_null(strstr(err.text, pid));
        close(first);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lock_of_a_dead_servers_child),
                cmocka_unit_test(lock_of_a_living_server),
        };

        return cmocka_run_group_tests_name("server paths", tests, setup, teardown);
}
