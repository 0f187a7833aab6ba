#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/machine/energy.h"
#include "base/mem.h"
#include "base/system/fs.h"

static void put(const char *folder, const char *zone, const char *file, const char *text)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/%s", folder, zone);
        assert_int_equal(fs_mkdirs(buf_z(&path), 0755), 0);
        buf_printf(&path, "/%s", file);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), str_of(text), 0644, false, NULL), 0);
}

/* Overwrites the counter, as the kernel does: the file that is open stays the same. */
static void count(const char *folder, const char *zone, uint64_t uj)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        int fd;

        buf_printf(&path, "%s/%s/energy_uj", folder, zone);
        buf_printf(&text, "%llu\n", (unsigned long long)uj);
        fd = open(buf_z(&path), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text.p, text.n), (ssize_t)text.n);
        close(fd);
}

static void zone(const char *folder, const char *name, const char *kind, uint64_t uj)
{
        put(folder, name, "name", kind);
        put(folder, name, "max_energy_range_uj", "1000000\n");
        count(folder, name, uj);
}

static void packages_and_memory_are_counted_once(void **state)
{
        char folder[] = "/tmp/drover-energy-XXXXXX";
        struct energy *e;

        (void)state;
        assert_non_null(mkdtemp(folder));
        assert_null(energy_open(folder));
        zone(folder, "intel-rapl:0", "package-0\n", 900);
        zone(folder, "intel-rapl:0:0", "core\n", 900);
        zone(folder, "intel-rapl:0:1", "dram\n", 50);
        zone(folder, "intel-rapl:1", "psys\n", 900);
        zone(folder, "intel-rapl:2", "package-1\n", 999990);
        zone(folder, "intel-rapl-mmio:0", "package-0\n", 900);
        e = energy_open(folder);
        assert_non_null(e);
        assert_int_equal(energy_look(e, 1000), 0);
        count(folder, "intel-rapl:0", 1900);
        count(folder, "intel-rapl:0:0", 1900);
        count(folder, "intel-rapl:0:1", 250);
        count(folder, "intel-rapl:1", 5000);
        count(folder, "intel-rapl:2", 20); /* it has begun again */
        count(folder, "intel-rapl-mmio:0", 1900);
        assert_int_equal(energy_look(e, 1000 + ENERGY_EVERY_MS - 1), 0); /* not so soon */
        assert_int_equal(energy_look(e, 1000 + ENERGY_EVERY_MS), 1000 + 200 + 30);
        count(folder, "intel-rapl:0", 1901);
        assert_int_equal(energy_look(e, 2000), 1231);
        energy_close(e);
        energy_close(NULL);
        assert_int_equal(energy_look(NULL, 1), 0);
        fs_remove_tree(AT_FDCWD, folder);
}

static void a_share_is_by_processors(void **state)
{
        char folder[] = "/tmp/drover-energy-XXXXXX";
        struct energy *e;
        uint64_t all = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;

        (void)state;
        assert_non_null(mkdtemp(folder));
        zone(folder, "intel-rapl:0", "package-0\n", 0);
        e = energy_open(folder);
        assert_int_equal(energy_share(e, 1000000, all), 1000000);
        assert_int_equal(energy_share(e, 1000000, 2 * all), 1000000);
        assert_int_equal(energy_share(e, 1000000, all / 2), 500000);
        assert_int_equal(energy_share(e, 1000000, 0), 0);
        energy_close(e);
        fs_remove_tree(AT_FDCWD, folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(packages_and_memory_are_counted_once),
                                           cmocka_unit_test(a_share_is_by_processors)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
