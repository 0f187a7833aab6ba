/* Where our control group is: texts as kernels and containers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/system/cgroup_mount.h"

static const char hybrid[] =
        "22 1 0:20 / /proc rw,nosuid - proc proc rw\n"
        "31 30 0:27 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw,nsdelegate\n"
        "35 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:16 - cgroup cgroup rw,cpu,cpuacct\n"
        "36 30 0:32 / /sys/fs/cgroup/memory rw shared:17 master:3 - cgroup cgroup rw,memory\n";
static const char groups[] = "9:memory:/user/ann\n4:cpu,cpuacct:/\n1:name=systemd:/x\n0::/user.slice/ann:1\n";

static void is(const char *mounts, const char *self, const char *controller, const char *want)
{
        MEM_CLEANUP char *got = cgroup_mount_own(str_of(mounts), str_of(self), controller);

        if (!want)
                assert_null(got);
        else if (!got)
                fail_msg("nothing, not %s", want);
        else
                assert_string_equal(got, want);
}

static void test_each_hierarchy(void **state)
{
        (void)state;
        is(hybrid, groups, "", "/sys/fs/cgroup/unified/user.slice/ann:1");
        is(hybrid, groups, "memory", "/sys/fs/cgroup/memory/user/ann");
        is(hybrid, groups, "cpuacct", "/sys/fs/cgroup/cpu,cpuacct");
        is(hybrid, groups, "cpu", "/sys/fs/cgroup/cpu,cpuacct");
        is(hybrid, groups, "pids", NULL);
        is(hybrid, "4:cpu:/\n", "memory", NULL);
        is("", groups, "", NULL);
        is("36 30 0:32 / /m rw\nx\n- cgroup2 a b\n", groups, "", NULL);
}

/* A container: the mount shows a part of the hierarchy, and the path begins at its root. */
static void test_a_part_of_it(void **state)
{
        static const char mounts[] = "36 30 0:32 /docker/abc /cg ro - cgroup2 cgroup rw\n";

        (void)state;
        is(mounts, "0::/docker/abc/job\n", "", "/cg/job");
        is(mounts, "0::/docker/abc\n", "", "/cg");
        is(mounts, "0::/elsewhere\n", "", "/cg");
        is(mounts, "0::/\n", "", "/cg");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_hierarchy),
                cmocka_unit_test(test_a_part_of_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
