#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/machine/devices.h"
#include "agent/machine/machine.h"
#include "base/system/fs.h"

static size_t one_wanted(const void *arg, const char *name)
{
        (void)arg;
        return !strcmp(name, "GPUs");
}

static void one_job_at_a_time(void **state)
{
        (void)state;
        struct devices *d = devices_new();
        struct device_set fast = {0}, slow = {0};
        BUF_CLEANUP struct buf out = {0}, ad = {0};
        assert_int_equal(devices_add(d, &fast, STR("GPUs 3"), NULL), 0);
        assert_int_equal(devices_add(d, &fast, STR("Licence: left right"), NULL), 0);
        assert_int_equal(devices_add(d, &slow, STR("gpus: 2 GPU-5c1e"), NULL), 0);
        assert_int_equal(devices_total(d, &fast, "gpus"), 3);
        assert_true(devices_take(d, &fast, "GPUs", 1, &out));
        assert_true(devices_take(d, &fast, "Licence", 2, &out));
        assert_string_equal(buf_z(&out), "GPUs=0;Licence=left,right;");
        assert_true(devices_take(d, &slow, "GPUs", 2, &out)); /* 2 is the same device in both */
        assert_int_equal(devices_available(d, &fast, "GPUs"), 1);
        assert_false(devices_take(d, &fast, "GPUs", 2, &out));
        assert_int_equal(devices_available(d, &fast, "GPUs"), 1);
        devices_advertise(d, &fast, one_wanted, NULL, &ad);
        assert_string_equal(buf_z(&ad), "GPUs = 0; TotalGPUs = 3; Licence = 0; TotalLicence = 2; ");
        devices_mark(d, STR("GPUs=0,7;Other=1;Licence=right;"), false);
        assert_int_equal(devices_available(d, &fast, "GPUs"), 2);
        assert_int_equal(devices_available(d, &fast, "Licence"), 1);
        devices_mark(d, STR("Licence=right;"), true); /* as after a restart */
        assert_int_equal(devices_available(d, &fast, "Licence"), 0);
        device_set_deinit(&fast);
        device_set_deinit(&slow);
        devices_free(d);
}

static void refuses_names(void **state)
{
        (void)state;
        static const char *const bad[] = {"",          "GPUs",  "GPUs x", "GPUs: 0 0", "GPUs: a,b",
                                          "GPUs: a;b", "1st 3", "a-b 3",  "GPUs -1",   "GPUs 100000"};
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct devices *d = devices_new();
                struct device_set s = {0};
                struct err err = {""};

                assert_int_equal(devices_add(d, &s, str_of(bad[i]), &err), -EINVAL);
                assert_true(*err.text);
                device_set_deinit(&s);
                devices_free(d);
        }
}

static void put(const char *root, const char *name, const char *text, mode_t mode)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "%s/%s", root, name);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&b), str_of(text), mode, false, NULL), 0);
}

static void touch(const char *root, const char *name, mode_t mode)
{
        put(root, name, "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n",
            mode);
}

static void make_folder(const char *root, const char *name)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "%s/%s", root, name);
        assert_int_equal(fs_mkdirs(buf_z(&b), 0700), 0);
}

static void finds_what_is_usable(void **state)
{
        (void)state;
        char top[] = "/tmp/drover-machine-XXXXXX", path[64];
        BUF_CLEANUP struct buf out = {0}, gpus = {0}, dev = {0};
        assert_non_null(mkdtemp(top));
        snprintf(path, sizeof(path), "relative:%s:%s/none", top, top);
        touch(top, "conda", 0700);
        touch(top, "podman", 0700);
        touch(top, "cwltool", 0600); /* not executable */
        buf_printf(&dev, "%s/etc", top);
        assert_int_equal(fs_mkdirs(buf_z(&dev), 0700), 0);
        touch(top, "etc/os-release", 0600);
        machine_capabilities(path, top, &out);
        assert_string_equal(
                buf_z(&out),
                "OpSysName = \"Debian\"; OpSysShortName = \"Debian\"; OpSysMajorVer = 12; "
                "OpSysVer = 1200; OpSysAndVer = \"Debian12\"; OpSysLongName = \"Debian GNU/Linux 12\"; "
                "ContainerEngines = {\"podman\"}; HasConda = true; HasJava = false; HasModules = false; "
                "HasCWL = false; ");
        machine_gpus(top, &gpus);
        assert_int_equal(gpus.n, 0);
        buf_reset(&dev);
        buf_printf(&dev, "%s/dev", top);
        assert_int_equal(fs_mkdirs(buf_z(&dev), 0700), 0);
        touch(top, "dev/nvidia10", 0600);
        touch(top, "dev/nvidia2", 0600);
        touch(top, "dev/nvidiactl", 0600);
        machine_gpus(top, &gpus);
        assert_string_equal(buf_z(&gpus), " 2 10");
        assert_int_equal(fs_remove_tree(AT_FDCWD, top), 0);
}

static void says_what_the_processors_are(void **state)
{
        (void)state;
        char top[] = "/tmp/drover-machine-XXXXXX";
        BUF_CLEANUP struct buf none = {0}, old = {0}, newer = {0}, arm = {0};
        assert_non_null(mkdtemp(top));
        machine_processors(top, &none);
        assert_int_equal(none.n, 0);
        make_folder(top, "proc");
        put(top, "proc/cpuinfo",
            "processor\t: 0\ncpu MHz\t\t: 2593.904\nflags\t\t: fpu lm sse2 ssse3 cx16 sse4_1 sse4_2 popcnt "
            "lahf_lm avx\n"
            "\nprocessor\t: 1\ncpu MHz\t\t: 800.0\nflags\t\t: lm sse2\n",
            0600);
        machine_processors(top, &old);
        assert_string_equal(buf_z(&old),
                            "Microarch = \"x86_64-v2\"; has_ssse3 = true; has_sse4_1 = true; "
                            "has_sse4_2 = true; has_avx = true; KFlops = 2500000; Mips = 10000; ");
        make_folder(top, "sys/devices/system/cpu/cpu0/cpufreq");
        put(top, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3600000\n", 0600);
        put(top, "proc/cpuinfo",
            "flags : lm sse2 cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe "
            "xsave "
            "avx512f avx512bw avx512cd avx512dq avx512vl avx512_vnni\n",
            0600);
        machine_processors(top, &newer);
        assert_string_equal(
                buf_z(&newer),
                "Microarch = \"x86_64-v4\"; has_ssse3 = true; has_sse4_1 = true; has_sse4_2 = true; "
                "has_avx = true; has_avx2 = true; has_avx512f = true; has_avx512dq = true; "
                "has_avx512dnni = true; KFlops = 3600000; Mips = 14400; ");
        put(top, "proc/cpuinfo", "processor : 0\nFeatures : fp asimd\n", 0600);
        put(top, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "nonsense\n", 0600);
        machine_processors(top, &arm);
        assert_int_equal(arm.n, 0);
        assert_int_equal(fs_remove_tree(AT_FDCWD, top), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(says_what_the_processors_are),
                cmocka_unit_test(one_job_at_a_time),
                cmocka_unit_test(refuses_names),
                cmocka_unit_test(finds_what_is_usable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
