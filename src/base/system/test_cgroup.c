/* Two ways: against files that look like a version 2 or version 1 tree, and against the real kernel where
 * groups can be made (skipped elsewhere). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/cgroup.h"
#include "base/system/fs.h"

static char top[64];

static char *under(const char *name)
{
        struct buf b = {0};

        buf_printf(&b, "%s/%s", top, name);
        return buf_take(&b);
}

static void place(const char *name, const char *text)
{
        MEM_CLEANUP char *path = under(name);

        assert_int_equal(fs_write(AT_FDCWD, path, str_of(text), 0600, false, NULL), 0);
}

static void nothing_mounted(void **state)
{
        (void)state;
        place("mounts", "22 1 0:20 / /proc rw - proc proc rw\n");
        place("self", "0::/\n");
        MEM_CLEANUP char *mounts = under("mounts"), *self = under("self");
        struct cgroups *cs;
        struct cgroup *cg;
        struct err err;
        assert_int_equal(cgroups_open("drover-test", mounts, self, &cs, &err), 0);
        assert_int_equal(cgroups_limits(cs), 0);
        assert_int_equal(cgroup_get(cs, &(struct cgroup_limits){0}, &cg, &err), -ENOTSUP);
        BUF_CLEANUP struct buf b = {0};
        cgroups_describe(cs, &b);
        assert_string_equal(buf_z(&b), "none");
        cgroups_free(cs);
}

static void not_a_kernel_tree(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf b = {0};
        MEM_CLEANUP char *point = under("point"), *mounts = under("mounts"), *self = under("self");
        assert_int_equal(fs_mkdirs(point, 0700), 0);
        buf_printf(&b, "30 24 0:26 / %s rw shared:4 - cgroup2 cgroup2 rw\n", point);
        place("mounts", buf_z(&b));
        place("self", "0::/\n");
        struct cgroups *cs;
        assert_int_equal(cgroups_open("drover-test", mounts, self, &cs, NULL), 0);
        assert_int_equal(cgroups_limits(cs), 0); /* the directory could be made, but has no cgroup.procs */
        cgroups_free(cs);
}

static pid_t start_in(struct cgroup *cg, size_t touch_bytes)
{
        pid_t pid = fork();

        if (pid == 0) {
                for (const char *const *d = cgroup_dirs(cg); *d; d++) {
                        char path[512];

                        snprintf(path, sizeof(path), "%s/cgroup.procs", *d);
                        int fd = open(path, O_WRONLY);
                        if (fd < 0 || write(fd, "0", 1) != 1)
                                _exit(3);
                        close(fd);
                }
                if (fork() == 0) { /* a grandchild in its own session, which only the group can find */
                        setsid();
                        pause();
                }
                volatile char *p = malloc(touch_bytes + 1);
                for (size_t i = 0; i < touch_bytes; i += 1024)
                        p[i] = 1;
                pause();
        }
        return pid;
}

static void wait_empty(struct cgroup *cg)
{
        for (int i = 0; i < 500 && !cgroup_empty(cg); i++)
                usleep(10000);
        assert_true(cgroup_empty(cg));
}

static void real_groups(void **state)
{
        (void)state;
        char name[64];
        snprintf(name, sizeof(name), "drover-unit-%d", (int)getpid());
        struct cgroups *cs;
        struct cgroup *cg, *again;
        struct err err;
        assert_int_equal(cgroups_open(name, NULL, NULL, &cs, &err), 0);
        if (!(cgroups_limits(cs) & CGROUP_KILL)) {
                cgroups_free(cs);
                skip();
        }
        struct cgroup_limits limits = {.memory_bytes = 256u << 20, .cpus_milli = 2000, .pids = 50};
        assert_int_equal(cgroup_get(cs, &limits, &cg, &err), 0);
        assert_true(cgroup_empty(cg));
        pid_t pid = start_in(cg, 32u << 20);
        struct cgroup_usage u = {0};
        for (int i = 0; i < 500 && (cgroup_empty(cg) || ((cgroups_limits(cs) & CGROUP_MEMORY) &&
                                                         u.memory_peak_bytes < (32u << 20)));
             i++) {
                usleep(10000);
                cgroup_usage(cg, &u);
        }
        assert_false(cgroup_empty(cg));
        if (cgroups_limits(cs) & CGROUP_MEMORY)
                assert_in_range(u.memory_peak_bytes, 32u << 20, 256u << 20);
        /* an agent that starts again finds it */
        unsigned number = cgroup_number(cg);
        cgroups_free(cs);
        assert_int_equal(cgroups_open(name, NULL, NULL, &cs, &err), 0);
        assert_int_equal(cgroup_adopt(cs, number, &cg, &err), 0);
        assert_false(cgroup_empty(cg));
        assert_int_equal(cgroup_adopt(cs, number, &again, &err), -EBUSY);
        assert_int_equal(cgroups_sweep(cs), 0);
        assert_false(cgroup_empty(cg));
        int r = cgroup_kill(cg);
        assert_true(r == 0 || r == -EAGAIN);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        wait_empty(cg);
        cgroup_put(cg);
        assert_int_equal(cgroup_get(cs, &limits, &again, &err), 0);
        cgroup_usage(again, &u);
        assert_true(u.memory_peak_bytes < (32u << 20));
        cgroup_put(again);
        /* somebody removes it: another one is made in its place */
        for (const char *const *d = cgroup_dirs(again); *d; d++)
                assert_int_equal(rmdir(*d), 0);
        assert_int_equal(cgroup_get(cs, &limits, &again, &err), 0);
        pid = start_in(again, 0);
        for (int i = 0; i < 500 && cgroup_empty(again); i++)
                usleep(10000);
        assert_false(cgroup_empty(again));
        cgroup_kill(again);
        waitpid(pid, &status, 0);
        wait_empty(again);
        cgroup_put(again);
        cgroups_free(cs);
}

static void sweep_kills(void **state)
{
        (void)state;
        char name[64];
        snprintf(name, sizeof(name), "drover-unit-%d", (int)getpid());
        struct cgroups *cs;
        struct cgroup *cg;
        assert_int_equal(cgroups_open(name, NULL, NULL, &cs, NULL), 0);
        if (!(cgroups_limits(cs) & CGROUP_KILL)) {
                cgroups_free(cs);
                skip();
        }
        assert_int_equal(cgroup_get(cs, &(struct cgroup_limits){0}, &cg, NULL), 0);
        pid_t pid = start_in(cg, 0);
        while (cgroup_empty(cg))
                usleep(1000);
        cgroups_free(cs);
        assert_int_equal(cgroups_open(name, NULL, NULL, &cs, NULL), 0);
        cgroups_sweep(cs);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == 9);
        cgroups_sweep(cs);
        cgroups_free(cs);
}

static void memory_limit_kills(void **state)
{
        (void)state;
        char name[64];
        snprintf(name, sizeof(name), "drover-unit-%d", (int)getpid());
        struct cgroups *cs;
        struct cgroup *cg;
        assert_int_equal(cgroups_open(name, NULL, NULL, &cs, NULL), 0);
        if (!(cgroups_limits(cs) & CGROUP_MEMORY)) {
                cgroups_free(cs);
                skip();
        }
        assert_int_equal(cgroup_get(cs, &(struct cgroup_limits){.memory_bytes = 64u << 20}, &cg, NULL), 0);
        pid_t pid = start_in(cg, 256u << 20);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == 9);
        struct cgroup_usage u;
        cgroup_usage(cg, &u);
        assert_true(u.oom_kills > 0 || u.limit_hit);
        cgroup_kill(cg);
        wait_empty(cg);
        cgroup_put(cg);
        cgroups_free(cs);
}

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-cg-XXXXXX", sizeof(top) - 1);
        return mkdtemp(top) ? 0 : 1;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_mounted),    cmocka_unit_test(not_a_kernel_tree),
                cmocka_unit_test(real_groups),        cmocka_unit_test(sweep_kills),
                cmocka_unit_test(memory_limit_kills),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
