/* Finds capabilities without running any program: a capability is a program in PATH that we may execute, a
 * socket that we may use, or a file that the software installs. */
#include "agent/machine/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"

#define MEASURE_MS 15000
#define INODES_MIN 64 /* inodes that a job needs before it runs */
#define GPUS_MAX   256

static uint64_t processors(void)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint64_t)CPU_COUNT(&set) * 1000 : 1000;
}

static void upper(char *to, size_t size, const char *from)
{
        size_t i = 0;

        for (; from[i] && i + 1 < size; i++)
                to[i] = from[i] >= 'a' && from[i] <= 'z' ? (char)(from[i] - 32) : from[i];
        to[i] = 0;
}

/* ---- capabilities */

static bool usable(const char *root, const char *path, int mode)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "%s%s", root, path);
        return access(buf_z(&b), mode) == 0;
}

static bool find_program(const char *path, const char *name, struct buf *out)
{
        struct str rest = str_of(path), dir;

        while (str_cut(&rest, ':', &dir)) {
                if (dir.n == 0 || dir.p[0] != '/')
                        continue;
                buf_reset(out);
                buf_printf(out, STR_FMT "/%s", STR_ARG(dir), name);
                if (access(buf_z(out), X_OK) == 0)
                        return true;
        }
        buf_reset(out);
        return false;
}

static bool has_program(const char *path, const char *name)
{
        BUF_CLEANUP struct buf b = {0};

        return find_program(path, name, &b);
}

bool machine_find_program(const char *name, struct buf *out)
{
        const char *path = getenv("PATH");

        return find_program(path ? path : "/usr/bin:/bin", name, out);
}

static bool has_any(const char *path, const char *const *names)
{
        for (; *names; names++)
                if (has_program(path, *names))
                        return true;
        return false;
}

static bool has_modules(const char *root)
{
        static const char *const files[] = {"/etc/profile.d/modules.sh", "/etc/profile.d/lmod.sh",
                                            "/usr/share/modules/init/sh", "/usr/share/lmod/lmod/init/sh"};

        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
                if (usable(root, files[i], R_OK))
                        return true;
        return false;
}

/* Appends the container engines that a user of this machine can use: Docker by its daemon's socket. */
static void engines(const char *path, const char *root, struct buf *out)
{
        static const char *const programs[] = {"apptainer", "singularity", "podman"};
        size_t n = 0;

        buf_addz(out, "ContainerEngines = {");
        for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
                if (has_program(path, programs[i]))
                        buf_printf(out, "%s\"%s\"", n++ ? ", " : "", programs[i]);
        if (has_program(path, "docker") && usable(root, "/var/run/docker.sock", R_OK | W_OK))
                buf_printf(out, "%s\"docker\"", n ? ", " : "");
        buf_addz(out, "}; ");
}

/* NAME="value" of os-release(5), without what a ClassAd's string would have to escape. */
static void os_release(struct str text, const char *name, struct buf *out)
{
        struct str line;

        while (str_cut(&text, '\n', &line)) {
                struct str key;

                if (!str_cut(&line, '=', &key) || !str_eqz(key, name))
                        continue;
                for (size_t i = 0; i < line.n; i++)
                        if (line.p[i] != '"' && line.p[i] != '\\' && line.p[i] != '\'' &&
                            (unsigned char)line.p[i] >= ' ')
                                buf_char(out, line.p[i]);
                return;
        }
}

/* HTCondor's: OpSysName = "Debian", OpSysMajorVer = 12, OpSysAndVer = "Debian12" */
static void distribution(const char *root, struct buf *out)
{
        BUF_CLEANUP struct buf path = {0}, text = {0}, name = {0}, version = {0}, whole = {0};
        char *end;

        buf_printf(&path, "%s/etc/os-release", root);
        if (fs_read(AT_FDCWD, buf_z(&path), 65536, &text, NULL) < 0)
                return;
        os_release(buf_view(&text), "NAME", &name);
        os_release(buf_view(&text), "VERSION_ID", &version);
        struct str first, rest = buf_view(&name);
        if (!str_cut(&rest, ' ', &first) || first.n == 0)
                return;
        unsigned long major = strtoul(buf_z(&version), &end, 10), minor;
        minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
        buf_printf(out, "OpSysName = \"" STR_FMT "\"; OpSysShortName = \"" STR_FMT "\"; ", STR_ARG(first),
                   STR_ARG(first));
        if (major && major < 10000 && minor < 100)
                buf_printf(out, "OpSysMajorVer = %lu; OpSysVer = %lu; OpSysAndVer = \"" STR_FMT "%lu\"; ",
                           major, major * 100 + minor, STR_ARG(first), major);
        os_release(buf_view(&text), "PRETTY_NAME", &whole);
        if (whole.n)
                buf_printf(out, "OpSysLongName = \"%s\"; ", buf_z(&whole));
}

/* The value of the first line "name : value". */
static struct str cpuinfo(struct str text, const char *name)
{
        struct str line, key;

        while (str_cut(&text, '\n', &line))
                if (str_cut(&line, ':', &key) && str_eqz(str_trim(key), name))
                        return str_trim(line);
        return STR_NONE;
}

static bool has_flags(struct str flags, const char *names)
{
        struct str wanted = str_of(names), name, rest, one;
        bool all = true;

        while (all && str_word(&wanted, &name)) {
                all = false;
                for (rest = flags; !all && str_word(&rest, &one);)
                        all = str_eq(one, name);
        }
        return all;
}

/* Appends the extensions as HTCondor advertises them; levels are those of the x86-64 psABI. */
static void processor_extensions(struct str flags, struct buf *out)
{
        static const char *const levels[] = {"cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
                                             "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
                                             "avx512f avx512bw avx512cd avx512dq avx512vl"};
        static const char *const shown[][2] = {
                {"has_ssse3", "ssse3"},       {"has_sse4_1", "sse4_1"},
                {"has_sse4_2", "sse4_2"},     {"has_avx", "avx"},
                {"has_avx2", "avx2"},         {"has_avx512f", "avx512f"},
                {"has_avx512dq", "avx512dq"}, {"has_avx512dnni", "avx512_vnni"}};
        unsigned level = 0;

        if (!has_flags(flags, "lm sse2"))
                return;
        while (level < 3 && has_flags(flags, levels[level]))
                level++;
        buf_printf(out, level ? "Microarch = \"x86_64-v%u\"; " : "Microarch = \"x86_64\"; ", level + 1);
        for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++)
                if (has_flags(flags, shown[i][1]))
                        buf_printf(out, "%s = true; ", shown[i][0]);
}

/* HTCondor runs benchmarks for KFlops and Mips. Here they follow from the clock rate, so that equal machines
 * are equal: an operation on reals and four instructions in each cycle. */
void machine_processors(const char *root, struct buf *out)
{
        BUF_CLEANUP struct buf path = {0}, text = {0}, most = {0};
        unsigned long khz = 0;

        buf_printf(&path, "%s/proc/cpuinfo", root);
        if (fs_read(AT_FDCWD, buf_z(&path), 16 << 20, &text, NULL) < 0)
                return;
        processor_extensions(cpuinfo(buf_view(&text), "flags"), out);
        buf_reset(&path);
        buf_printf(&path, "%s/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", root);
        if (fs_read(AT_FDCWD, buf_z(&path), 64, &most, NULL) >= 0)
                khz = strtoul(buf_z(&most), NULL, 10);
        if (khz == 0) {
                buf_reset(&most);
                buf_str(&most, cpuinfo(buf_view(&text), "cpu MHz"));
                khz = strtoul(buf_z(&most), NULL, 10) * 1000;
        }
        khz = khz / 100000 * 100000;
        if (khz > 0 && khz < 100000000)
                buf_printf(out, "KFlops = %lu; Mips = %lu; ", khz, khz / 1000 * 4);
}

void machine_capabilities(const char *path, const char *root, struct buf *out)
{
        static const char *const conda[] = {"conda", "mamba", "micromamba", NULL}, *const cwl[] = {
                                                                                           "cwltool",
                                                                                           "cwl-runner",
                                                                                           NULL};

        distribution(root, out);
        engines(path, root, out);
        buf_printf(out, "HasConda = %s; ", has_any(path, conda) ? "true" : "false");
        buf_printf(out, "HasJava = %s; ", has_program(path, "java") ? "true" : "false");
        buf_printf(out, "HasModules = %s; ", has_modules(root) ? "true" : "false");
        buf_printf(out, "HasCWL = %s; ", has_any(path, cwl) ? "true" : "false");
}

static int by_number(const void *a, const void *b)
{
        unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

        return (x > y) - (x < y);
}

void machine_gpus(const char *root, struct buf *out)
{
        BUF_CLEANUP struct buf path = {0};
        unsigned long found[GPUS_MAX];
        size_t n = 0;

        buf_printf(&path, "%s/dev", root);
        DIR *dir = opendir(buf_z(&path));
        struct dirent *e;
        while (dir && (e = readdir(dir)) && n < GPUS_MAX) {
                char *end;

                if (strncmp(e->d_name, "nvidia", 6) != 0 || e->d_name[6] < '0' || e->d_name[6] > '9')
                        continue;
                found[n] = strtoul(e->d_name + 6, &end, 10);
                if (!*end)
                        n++;
        }
        if (dir)
                closedir(dir);
        qsort(found, n, sizeof(*found), by_number);
        for (size_t i = 0; i < n; i++)
                buf_printf(out, " %lu", found[i]);
}

/* ---- measures */

void machine_measure(struct machine *m, int dir)
{
        int64_t now = clock_boot_ms();
        double load;
        struct statvfs v;

        if (m->measured_ms && now - m->measured_ms < MEASURE_MS)
                return;
        m->measured_ms = now;
        if (getloadavg(&load, 1) == 1)
                m->load_milli = (uint64_t)(load * 10) * 100;
        if (fstatvfs(dir, &v) < 0)
                return;
        m->disk_free_bytes = (uint64_t)v.f_bavail * v.f_frsize >> 28 << 28;
        bool lacked = machine_lacks_inodes(m);
        m->inodes_free = v.f_files ? v.f_favail : UINT64_MAX;
        if (!lacked && machine_lacks_inodes(m))
                log_error("msg=\"the disk has no inodes left: no more work is taken\" free=%llu",
                          (unsigned long long)m->inodes_free);
        else if (lacked && !machine_lacks_inodes(m))
                log_info("msg=\"the disk has inodes again\"");
}

bool machine_lacks_inodes(const struct machine *m)
{
        return m->inodes_free < INODES_MIN;
}

bool machine_is_out_of_inodes(struct machine *m, int dir, int error)
{
        if (error != ENOSPC)
                return false;
        m->measured_ms = 0;
        machine_measure(m, dir);
        return machine_lacks_inodes(m);
}

int machine_check_kernel(struct err *err)
{
        static const long calls[] = {SYS_pidfd_open, SYS_close_range, SYS_openat2};
        struct utsname u = {0};

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
                /* none of them can do anything with these arguments */
                if (syscall(calls[i], -1, 0, -1, 0) >= 0 || errno != ENOSYS)
                        continue;
                uname(&u);
                return err_set(err, -ENOSYS, "needs Linux 5.11 or later, and this machine has %s %s",
                               u.sysname, u.release);
        }
        return 0;
}

void machine_init(struct machine *m)
{
        struct utsname u;
        const char *path = getenv("PATH");

        uname(&u);
        *m = (struct machine){.inodes_free = UINT64_MAX,
                              .cpus_milli = processors(),
                              .memory_bytes =
                                      (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE)};
        upper(m->arch, sizeof(m->arch), u.machine);
        upper(m->opsys, sizeof(m->opsys), u.sysname);
        machine_capabilities(path ? path : "/usr/bin:/bin", "", &m->attributes);
        machine_processors("", &m->processor);
}

void machine_deinit(struct machine *m)
{
        buf_deinit(&m->attributes);
        buf_deinit(&m->processor);
}
