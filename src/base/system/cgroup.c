/* Each controller that matters is used under our own group of its hierarchy (cgroup_mount.h). Version 2
 * forbids processes in a group whose controllers are handed to children, so when we are alone in ours we move
 * into a leaf first ("drover-self"). In the hybrid layout version 2 has no controllers but still kills and
 * freezes whole trees, which version 1 cannot: it is used for that.
 *
 * Version 1's memory.max_usage_in_bytes can be reset, and version 2's memory.peak since Linux 6.12; on older
 * kernels version 2 slots are not used twice, since their peak would be that of another job. Cache that an
 * earlier job left in a slot is dropped when it is more than SLOT_CACHE_MAX, and otherwise subtracted. */
#include "base/system/cgroup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/cgroup_mount.h"
#include "base/system/fs.h"

#define SLOT_CACHE_MAX (16u << 20)
#define DIRS_MAX       6

enum part { PART_MEMORY, PART_CPU, PART_CPUACCT, PART_PIDS, PART_FREEZER, PART_UNIFIED, PARTS };
static const char *const part_names[PARTS] = {"memory", "cpu", "cpuacct", "pids", "freezer", ""};

enum file {
        FILE_MEMORY_MAX,
        FILE_MEMORY_SWAP,
        FILE_MEMORY_PEAK,
        FILE_MEMORY_NOW,
        FILE_MEMORY_EVENTS,
        FILE_MEMORY_FAILCNT,
        FILE_MEMORY_EMPTY,
        FILE_CPU_WEIGHT,
        FILE_CPU_STAT,
        FILE_CPU_USAGE,
        FILE_PIDS_MAX,
        FILE_KILL,
        FILE_FREEZE, /* of version 1 */
        FILE_FREEZE_V2,
        FILE_PROCS,
        FILES
};

struct part_place {
        char *dir; /* our group there; NULL: not usable */
        bool v2;
};

struct cgroup {
        struct cgroups *owner;
        struct cgroup *next;
        unsigned number;
        bool used;
        bool measured; /* since it was given out; else the baseline is taken anew */
        bool adopted;  /* the cpu counters at the start of its job are not known */
        uint64_t seen_oom, seen_fail;
        char *dirs[DIRS_MAX + 1];
        int fds[FILES];
        uint64_t memory_set, weight_set, pids_set; /* UINT64_MAX: not known */
        uint64_t memory_base, oom_base, fail_base, user_base, system_base;
        uint64_t used_cpu_ms[2]; /* by the present user, when last looked at */
};

struct cgroups {
        struct part_place parts[PARTS];
        unsigned limits;
        bool peak_resets;
        struct cgroup **slots;
        size_t slot_count, slot_cap;
        struct cgroup *idle;
};

static int put_file(const char *dir, const char *name, const char *text)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/%s", dir, name);
        int fd = open(buf_z(&path), O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
        close(fd);
        return r;
}

static char *sub_dir(const char *dir, const char *name)
{
        struct buf b = {0};

        buf_printf(&b, "%s/%s", dir, name);
        return buf_take(&b);
}

/* Returns whether we are the only process in that group. */
static bool alone_in(const char *dir)
{
        MEM_CLEANUP char *path = sub_dir(dir, "cgroup.procs");
        BUF_CLEANUP struct buf b = {0};

        if (fs_read(AT_FDCWD, path, 65536, &b, NULL) < 0)
                return false;
        int64_t pid;
        return str_to_i64(str_trim(buf_view(&b)), &pid) == 0 && pid == getpid();
}

static unsigned enable_v2(const char *own, const char *group)
{
        static const struct {
                const char *name, *word;
                unsigned limit;
        } wanted[] = {{"memory", "+memory", CGROUP_MEMORY},
                      {"cpu", "+cpu", CGROUP_CPU},
                      {"pids", "+pids", CGROUP_PIDS}};
        unsigned got = 0;

        for (unsigned i = 0; i < 3; i++) {
                int r = put_file(own, "cgroup.subtree_control", wanted[i].word);

                if (r == -EBUSY && alone_in(own)) {
                        MEM_CLEANUP char *leaf = sub_dir(own, "drover-self");

                        if ((mkdir(leaf, 0755) == 0 || errno == EEXIST) &&
                            put_file(leaf, "cgroup.procs", "0") == 0)
                                r = put_file(own, "cgroup.subtree_control", wanted[i].word);
                }
                if (r == 0 && put_file(group, "cgroup.subtree_control", wanted[i].word) == 0)
                        got |= wanted[i].limit;
        }
        return got;
}

static bool make_group(const char *own, const char *name, char **ret)
{
        char *dir = sub_dir(own, name);

        if (mkdir(dir, 0755) == 0 || errno == EEXIST) {
                /* a kernel's file, and ours to write? */
                MEM_CLEANUP char *procs = sub_dir(dir, "cgroup.procs");

                if (access(procs, W_OK) == 0) {
                        *ret = dir;
                        return true;
                }
                rmdir(dir);
        }
        free(dir);
        return false;
}

int cgroups_open(const char *name, const char *mountinfo_path, const char *self_path, struct cgroups **ret,
                 struct err *err)
{
        BUF_CLEANUP struct buf mounts = {0}, self = {0};
        int r = fs_read(AT_FDCWD, mountinfo_path ? mountinfo_path : "/proc/self/mountinfo", 4u << 20, &mounts,
                        err);

        if (r == 0)
                r = fs_read(AT_FDCWD, self_path ? self_path : "/proc/self/cgroup", 1u << 20, &self, err);
        if (r < 0)
                return r;
        struct cgroups *cs = mem_new(struct cgroups);
        static const unsigned gives[PARTS] = {
                CGROUP_MEMORY, CGROUP_CPU, CGROUP_USAGE, CGROUP_PIDS, CGROUP_FREEZE | CGROUP_KILL, 0};
        MEM_CLEANUP char *own2 = cgroup_mount_own(buf_view(&mounts), buf_view(&self), "");
        struct part_place *unified = &cs->parts[PART_UNIFIED];
        if (own2 && make_group(own2, name, &unified->dir)) {
                unified->v2 = true;
                cs->limits |= enable_v2(own2, unified->dir) | CGROUP_USAGE;
                MEM_CLEANUP char *kill_path = sub_dir(unified->dir, "cgroup.kill");
                if (access(kill_path, W_OK) == 0)
                        cs->limits |= CGROUP_KILL | CGROUP_FREEZE;
                MEM_CLEANUP char *stat_path = sub_dir(unified->dir, "cpu.stat");
                if (access(stat_path, R_OK) < 0)
                        cs->limits &= ~(unsigned)CGROUP_USAGE;
        }
        for (int p = 0; p < PART_UNIFIED; p++) {
                if ((cs->limits & gives[p]) == gives[p])
                        continue;
                MEM_CLEANUP char *own = cgroup_mount_own(buf_view(&mounts), buf_view(&self), part_names[p]);
                if (own && make_group(own, name, &cs->parts[p].dir))
                        cs->limits |= gives[p];
        }
        cs->peak_resets = true;
        *ret = cs;
        return 0;
}

char *cgroups_own(bool v2)
{
        BUF_CLEANUP struct buf mounts = {0}, self = {0};

        if (fs_read(AT_FDCWD, "/proc/self/mountinfo", 4u << 20, &mounts, NULL) < 0 ||
            fs_read(AT_FDCWD, "/proc/self/cgroup", 1u << 20, &self, NULL) < 0)
                return NULL;
        return cgroup_mount_own(buf_view(&mounts), buf_view(&self), v2 ? "" : part_names[PART_FREEZER]);
}

unsigned cgroups_limits(const struct cgroups *cs)
{
        return cs->limits;
}

void cgroups_describe(const struct cgroups *cs, struct buf *out)
{
        static const struct {
                const char *name;
                unsigned limit;
                enum part part;
        } all[] = {
                {"memory", CGROUP_MEMORY, PART_MEMORY}, {"cpu", CGROUP_CPU, PART_CPU},
                {"pids", CGROUP_PIDS, PART_PIDS},       {"usage", CGROUP_USAGE, PART_CPUACCT},
                {"kill", CGROUP_KILL, PART_FREEZER},    {"freeze", CGROUP_FREEZE, PART_FREEZER},
        };
        const char *comma = "";

        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
                if (cs->limits & all[i].limit) {
                        buf_printf(out, "%s%s (%s)", comma, all[i].name,
                                   cs->parts[all[i].part].dir ? "v1" : "v2");
                        comma = ", ";
                }
        if (!*comma)
                buf_addz(out, "none");
}

/* ---- one slot */

static void file_open(struct cgroup *cg, enum file f, const char *dir, const char *name, int flags)
{
        MEM_CLEANUP char *path = sub_dir(dir, name);

        cg->fds[f] = open(path, flags | O_CLOEXEC);
}

static uint64_t number_of(int fd)
{
        char text[64];
        ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);
        uint64_t v;

        return n > 0 && str_to_u64(str_trim(str_make(text, (size_t)n)), &v) == 0 ? v : 0;
}

/* The values of lines "key value", in one read. Those that are not there are 0. */
static void fields_of(int fd, unsigned count, const char *const keys[], uint64_t values[])
{
        char text[4096];
        ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);
        struct str rest = str_make(text, n > 0 ? (size_t)n : 0), line, name;

        for (unsigned i = 0; i < count; i++)
                values[i] = 0;
        while (n > 0 && str_cut(&rest, '\n', &line)) {
                uint64_t v;

                if (!str_word(&line, &name) || str_to_u64(str_trim(line), &v) < 0)
                        continue;
                for (unsigned i = 0; i < count; i++)
                        if (str_eqz(name, keys[i]))
                                values[i] = v;
        }
}

static uint64_t field_of(int fd, const char *key)
{
        uint64_t v;

        fields_of(fd, 1, &key, &v);
        return v;
}

static int number_put(int fd, uint64_t v)
{
        char text[32];
        int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)v);

        return fd < 0 ? -ENOTSUP : pwrite(fd, text, (size_t)n, 0) < 0 ? -errno : 0;
}

static void slot_free(struct cgroup *cg, bool remove)
{
        for (int f = 0; f < FILES; f++)
                if (cg->fds[f] >= 0)
                        close(cg->fds[f]);
        for (int i = 0; i < DIRS_MAX && cg->dirs[i]; i++) {
                if (remove)
                        rmdir(cg->dirs[i]);
                free(cg->dirs[i]);
        }
        free(cg);
}

static void slot_files(struct cgroup *cg, enum part p, const char *dir, bool v2)
{
        unsigned limits = cg->owner->limits;

        if (p == PART_MEMORY || (v2 && (limits & CGROUP_MEMORY) && !cg->owner->parts[PART_MEMORY].dir)) {
                file_open(cg, FILE_MEMORY_MAX, dir, v2 ? "memory.max" : "memory.limit_in_bytes", O_WRONLY);
                file_open(cg, FILE_MEMORY_SWAP, dir, v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
                          O_WRONLY);
                file_open(cg, FILE_MEMORY_PEAK, dir, v2 ? "memory.peak" : "memory.max_usage_in_bytes",
                          O_RDWR);
                if (cg->fds[FILE_MEMORY_PEAK] < 0)
                        file_open(cg, FILE_MEMORY_PEAK, dir, v2 ? "memory.peak" : "memory.max_usage_in_bytes",
                                  O_RDONLY);
                file_open(cg, FILE_MEMORY_NOW, dir, v2 ? "memory.current" : "memory.usage_in_bytes",
                          O_RDONLY);
                file_open(cg, FILE_MEMORY_EVENTS, dir, v2 ? "memory.events" : "memory.oom_control", O_RDONLY);
                if (!v2) {
                        file_open(cg, FILE_MEMORY_FAILCNT, dir, "memory.failcnt", O_RDONLY);
                        file_open(cg, FILE_MEMORY_EMPTY, dir, "memory.force_empty", O_WRONLY);
                }
        }
        if (p == PART_CPU || (v2 && (limits & CGROUP_CPU) && !cg->owner->parts[PART_CPU].dir))
                file_open(cg, FILE_CPU_WEIGHT, dir, v2 ? "cpu.weight" : "cpu.shares", O_WRONLY);
        if (p == PART_PIDS || (v2 && (limits & CGROUP_PIDS) && !cg->owner->parts[PART_PIDS].dir))
                file_open(cg, FILE_PIDS_MAX, dir, "pids.max", O_WRONLY);
        if (p == PART_CPUACCT)
                file_open(cg, FILE_CPU_USAGE, dir, "cpuacct.stat", O_RDONLY);
        if (v2) {
                file_open(cg, FILE_CPU_STAT, dir, "cpu.stat", O_RDONLY);
                file_open(cg, FILE_KILL, dir, "cgroup.kill", O_WRONLY);
                file_open(cg, FILE_FREEZE_V2, dir, "cgroup.freeze", O_WRONLY);
        }
        if (p == PART_FREEZER)
                file_open(cg, FILE_FREEZE, dir, "freezer.state", O_WRONLY);
        if (cg->fds[FILE_PROCS] < 0 || v2)
                file_open(cg, FILE_PROCS, dir, "cgroup.procs", O_RDONLY);
}

static int slot_new(struct cgroups *cs, unsigned number, struct cgroup **ret, struct err *err)
{
        struct cgroup *cg = mem_new(struct cgroup);

        cg->owner = cs;
        cg->number = number;
        cg->memory_set = cg->weight_set = cg->pids_set = UINT64_MAX;
        for (int f = 0; f < FILES; f++)
                cg->fds[f] = -1;
        unsigned count = 0;
        for (int i = 0; i < PARTS; i++) {
                enum part p = i == 0 ? PART_UNIFIED
                                     : (enum part)(i - 1); /* version 2 first: it knows all members */

                if (!cs->parts[p].dir)
                        continue;
                struct buf b = {0};
                buf_printf(&b, "%s/s%u", cs->parts[p].dir, number);
                char *dir = cg->dirs[count++] = buf_take(&b);
                if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
                        int r = -errno;

                        err_set(err, r, "cannot make the control group %s: %s", dir, strerror(-r));
                        slot_free(cg, true);
                        return r;
                }
                slot_files(cg, p, dir, cs->parts[p].v2);
        }
        if (number >= cs->slot_count) {
                MEM_GROW(cs->slots, cs->slot_cap, number + 1);
                memset(cs->slots + cs->slot_count, 0, (number + 1 - cs->slot_count) * sizeof(*cs->slots));
                cs->slot_count = number + 1;
        }
        cs->slots[number] = cg;
        *ret = cg;
        return 0;
}

static void cpu_times(struct cgroup *cg, uint64_t *user_ms, uint64_t *system_ms)
{
        static const char *const v1[2] = {"user", "system"}, *const v2[2] = {"user_usec", "system_usec"};
        bool ticks = cg->fds[FILE_CPU_USAGE] >= 0;
        uint64_t t[2];

        fields_of(cg->fds[ticks ? FILE_CPU_USAGE : FILE_CPU_STAT], 2, ticks ? v1 : v2, t);
        uint64_t tick_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
        *user_ms = ticks ? t[0] * tick_ms : t[0] / 1000;
        *system_ms = ticks ? t[1] * tick_ms : t[1] / 1000;
}

static void set_memory(struct cgroup *cg, uint64_t bytes)
{
        if (cg->memory_set == bytes || cg->fds[FILE_MEMORY_MAX] < 0)
                return;
        bool v2 = !cg->owner->parts[PART_MEMORY].dir;
        if (bytes) {
                /* in version 1 memory+swap may never be under memory: one of the two orders works */
                bool first = number_put(cg->fds[FILE_MEMORY_MAX], bytes) == 0;

                number_put(cg->fds[FILE_MEMORY_SWAP], v2 ? 0 : bytes);
                if (!first)
                        number_put(cg->fds[FILE_MEMORY_MAX], bytes);
        } else {
                const char *none = v2 ? "max" : "-1";

                (void)!pwrite(cg->fds[FILE_MEMORY_SWAP], none, strlen(none), 0);
                (void)!pwrite(cg->fds[FILE_MEMORY_MAX], none, strlen(none), 0);
        }
        cg->memory_set = bytes;
}

static uint64_t oom_kills(struct cgroup *cg)
{
        return field_of(cg->fds[FILE_MEMORY_EVENTS], "oom_kill");
}

static uint64_t limit_hits(struct cgroup *cg)
{
        return cg->fds[FILE_MEMORY_FAILCNT] >= 0 ? number_of(cg->fds[FILE_MEMORY_FAILCNT])
                                                 : field_of(cg->fds[FILE_MEMORY_EVENTS], "oom");
}

static void slot_begin(struct cgroup *cg, const struct cgroup_limits *l)
{
        set_memory(cg, l->memory_bytes);
        uint64_t cpus = l->cpus_milli ? l->cpus_milli : 1000;
        bool v2 = !cg->owner->parts[PART_CPU].dir;
        uint64_t weight = v2 ? cpus / 10 : cpus * 1024 / 1000;
        weight = weight < 2 ? 2 : weight > (v2 ? 10000 : 262144) ? (v2 ? 10000 : 262144) : weight;
        if (cg->weight_set != weight && number_put(cg->fds[FILE_CPU_WEIGHT], weight) == 0)
                cg->weight_set = weight;
        if (cg->pids_set != l->pids && cg->fds[FILE_PIDS_MAX] >= 0) {
                if (l->pids)
                        number_put(cg->fds[FILE_PIDS_MAX], l->pids);
                else
                        (void)!pwrite(cg->fds[FILE_PIDS_MAX], "max", 3, 0);
                cg->pids_set = l->pids;
        }
        cg->memory_base = number_of(cg->fds[FILE_MEMORY_NOW]);
        if (cg->memory_base > SLOT_CACHE_MAX && cg->fds[FILE_MEMORY_EMPTY] >= 0 &&
            pwrite(cg->fds[FILE_MEMORY_EMPTY], "0", 1, 0) > 0)
                cg->memory_base = number_of(cg->fds[FILE_MEMORY_NOW]);
        if (cg->fds[FILE_MEMORY_PEAK] >= 0 && pwrite(cg->fds[FILE_MEMORY_PEAK], "0", 1, 0) < 0)
                cg->owner->peak_resets = false;
}

/* Records the counters before a job runs. cgroup_usage updates them afterwards: between two jobs
 * nothing in the slot counts. */
static void slot_baseline(struct cgroup *cg)
{
        cg->oom_base = oom_kills(cg);
        cg->fail_base = limit_hits(cg);
        cpu_times(cg, &cg->user_base, &cg->system_base);
}

/* Thaws a slot: a group stays frozen after the processes suspended in it have died. */
static void slot_thaw(struct cgroup *cg)
{
        if (cg->fds[FILE_FREEZE_V2] >= 0)
                (void)!pwrite(cg->fds[FILE_FREEZE_V2], "0", 1, 0);
        if (cg->fds[FILE_FREEZE] >= 0)
                (void)!pwrite(cg->fds[FILE_FREEZE], "THAWED", 6, 0);
}

bool cgroup_empty(struct cgroup *cg)
{
        char text[32];

        return cg->fds[FILE_PROCS] < 0 || pread(cg->fds[FILE_PROCS], text, sizeof(text), 0) <= 0;
}

int cgroup_get(struct cgroups *cs, const struct cgroup_limits *limits, struct cgroup **ret, struct err *err)
{
        if (!cs || !cs->limits)
                return err_set(err, -ENOTSUP, "no control groups can be written here");
        struct cgroup *cg = NULL;
        for (struct cgroup **at = &cs->idle; *at && !cg;) {
                struct cgroup *idle = *at;
                char c;

                if (idle->fds[FILE_PROCS] >= 0 && pread(idle->fds[FILE_PROCS], &c, 1, 0) < 0) {
                        *at = idle->next; /* the group was removed meanwhile */
                        cs->slots[idle->number] = NULL;
                        slot_free(idle, true);
                } else if (cgroup_kill(idle) == 0) {
                        cg = idle;
                        *at = idle->next;
                } else {
                        at = &idle->next;
                }
        }
        if (!cg) {
                unsigned number = 0;

                while (number < cs->slot_count && cs->slots[number])
                        number++;
                int r = slot_new(cs, number, &cg, err);
                if (r < 0)
                        return r;
        }
        cg->next = NULL;
        cg->used = true;
        if (!cg->measured)
                slot_baseline(cg);
        cg->measured = cg->adopted = false;
        slot_thaw(cg);
        slot_begin(cg, limits);
        *ret = cg;
        return 0;
}

int cgroup_adopt(struct cgroups *cs, unsigned number, struct cgroup **ret, struct err *err)
{
        if (!cs || !cs->limits || number > 100000)
                return err_set(err, -ENOTSUP, "no control groups can be written here");
        if (number < cs->slot_count && cs->slots[number])
                return err_set(err, -EBUSY, "the control group s%u is in use", number);
        struct cgroup *cg;
        int r = slot_new(cs, number, &cg, err);
        if (r < 0)
                return r;
        cg->used = cg->adopted = true;
        cg->oom_base = 0;
        *ret = cg;
        return 0;
}

void cgroup_put(struct cgroup *cg)
{
        struct cgroups *cs = cg->owner;

        assert(cg->used);
        cg->used = false;
        if (cg->measured) {
                cg->user_base += cg->used_cpu_ms[0];
                cg->system_base += cg->used_cpu_ms[1];
                cg->oom_base = cg->seen_oom;
                cg->fail_base = cg->seen_fail;
        }
        if (!cs->peak_resets && cgroup_kill(cg) == 0) {
                cs->slots[cg->number] = NULL;
                slot_free(cg, true);
                return;
        }
        cg->next = cs->idle;
        cs->idle = cg;
}

unsigned cgroup_number(const struct cgroup *cg)
{
        return cg->number;
}

const char *const *cgroup_dirs(const struct cgroup *cg)
{
        return (const char *const *)cg->dirs;
}

void cgroup_usage(struct cgroup *cg, struct cgroup_usage *ret)
{
        struct cgroup_usage u = {0};
        uint64_t peak = number_of(cg->fds[FILE_MEMORY_PEAK]), now = number_of(cg->fds[FILE_MEMORY_NOW]);

        u.memory_peak_bytes = peak > cg->memory_base ? peak - cg->memory_base : 0;
        u.memory_now_bytes = now > cg->memory_base ? now - cg->memory_base : 0;
        cpu_times(cg, &u.cpu_user_ms, &u.cpu_system_ms);
        u.cpu_user_ms -= cg->user_base < u.cpu_user_ms ? cg->user_base : u.cpu_user_ms;
        u.cpu_system_ms -= cg->system_base < u.cpu_system_ms ? cg->system_base : u.cpu_system_ms;
        if (cg->adopted)
                u.cpu_user_ms = u.cpu_system_ms = 0;
        cg->measured = !cg->adopted;
        cg->seen_oom = cg->oom_base;
        cg->seen_fail = cg->fail_base;
        cg->used_cpu_ms[0] = u.cpu_user_ms;
        cg->used_cpu_ms[1] = u.cpu_system_ms;
        /* without having come near the limit it was not hit */
        if (cg->memory_set && cg->memory_set != UINT64_MAX &&
            (!peak || peak >= cg->memory_set - cg->memory_set / 16)) {
                cg->seen_oom = oom_kills(cg);
                cg->seen_fail = limit_hits(cg);
                u.oom_kills = cg->seen_oom - cg->oom_base;
                u.limit_hit = cg->seen_fail > cg->fail_base;
        }
        *ret = u;
}

/* ---- killing the processes of a slot */

static int kill_listed(struct cgroup *cg)
{
        char text[65536];
        ssize_t n = cg->fds[FILE_PROCS] < 0 ? 0 : pread(cg->fds[FILE_PROCS], text, sizeof(text), 0);
        struct str rest = str_make(text, n > 0 ? (size_t)n : 0), line;
        int killed = 0;

        while (rest.n && str_cut(&rest, '\n', &line)) {
                int64_t pid;

                if (str_to_i64(line, &pid) == 0 && pid > 1 && pid != getpid() &&
                    kill((pid_t)pid, SIGKILL) == 0)
                        killed++;
        }
        return killed;
}

int cgroup_kill(struct cgroup *cg)
{
        if (cgroup_empty(cg))
                return 0;
        if (cg->fds[FILE_KILL] >= 0 && pwrite(cg->fds[FILE_KILL], "1", 1, 0) == 1)
                return cgroup_empty(cg) ? 0 : -EAGAIN;
        if (cg->fds[FILE_FREEZE] >= 0)
                (void)!pwrite(cg->fds[FILE_FREEZE], "FROZEN", 6, 0);
        for (int round = 0; round < 8 && kill_listed(cg) > 0 && cg->fds[FILE_FREEZE] < 0; round++)
                continue;
        if (cg->fds[FILE_FREEZE] >= 0)
                (void)!pwrite(cg->fds[FILE_FREEZE], "THAWED", 6, 0);
        return cgroup_empty(cg) ? 0 : -EAGAIN;
}

int cgroups_sweep(struct cgroups *cs)
{
        int left = 0;

        for (int p = 0; p < PARTS; p++) {
                DIR *dir = cs->parts[p].dir ? opendir(cs->parts[p].dir) : NULL;
                struct dirent *e;

                while (dir && (e = readdir(dir))) {
                        uint64_t number;
                        struct cgroup *cg;

                        if (e->d_name[0] != 's' || str_to_u64(str_of(e->d_name + 1), &number) < 0 ||
                            number > 100000 || (number < cs->slot_count && cs->slots[number]) ||
                            slot_new(cs, (unsigned)number, &cg, NULL) < 0)
                                continue;
                        for (int round = 0; round < 100 && cgroup_kill(cg) == -EAGAIN; round++)
                                usleep(2000);
                        left += !cgroup_empty(cg);
                        cg->next = cs->idle;
                        cs->idle = cg;
                }
                if (dir)
                        closedir(dir);
        }
        return left;
}

void cgroups_free(struct cgroups *cs)
{
        if (!cs)
                return;
        for (size_t i = 0; i < cs->slot_count; i++)
                if (cs->slots[i])
                        slot_free(cs->slots[i], !cs->slots[i]->used);
        for (int p = 0; p < PARTS; p++) {
                if (cs->parts[p].dir)
                        rmdir(cs->parts[p].dir);
                free(cs->parts[p].dir);
        }
        free(cs->slots);
        free(cs);
}
