/* Tests each part of containment on a child, as root and as an ordinary user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shepherd/containment.h"

#define ORDINARY 65533 /* an unused uid */

/* top/way/state has a key and jobs/1, which is the sandbox; anybody may rename top/way */
static char top[64], way[80], state[96], jobs[112], sandbox[128], key[112];

static void put(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        close(fd);
}

static int setup(void **arg)
{
        (void)arg;
        /* not in /tmp, which may be the job's own */
        snprintf(top, sizeof(top), "%s/containment.XXXXXX",
                 access("/var/lib", W_OK) == 0 ? "/var/lib" : "/tmp");
        assert_non_null(mkdtemp(top));
        snprintf(way, sizeof(way), "%s/way", top);
        snprintf(state, sizeof(state), "%s/state", way);
        snprintf(jobs, sizeof(jobs), "%s/jobs", state);
        snprintf(sandbox, sizeof(sandbox), "%s/1", jobs);
        snprintf(key, sizeof(key), "%s/agent.key", state);
        assert_int_equal(mkdir(way, 0755) | mkdir(state, 0755) | mkdir(jobs, 0755) | mkdir(sandbox, 0777), 0);
        chmod(top, 0777);
        chmod(sandbox, 0777);
        put(key, "secret");
        return 0;
}

static int teardown(void **arg)
{
        char command[256];

        (void)arg;
        snprintf(command, sizeof(command), "rm -rf %s", top);
        return system(command);
}

/* Runs `look` in a contained child and returns its exit code; 200: it could not be contained. */
static int contained_as(uid_t uid, uint32_t flags, int (*look)(void))
{
        int status, why;
        pid_t pid = fork();

        if (pid == 0) {
                if (uid != getuid() && (setgid(uid) < 0 || setuid(uid) < 0))
                        _exit(201);
                const char *const hidden[] = {state}, *const paths[] = {sandbox, NULL};
                struct containment *c = containment_new(hidden, 1, jobs, &why);
                struct containment_job job = {.uid = getuid(), .gid = getgid(), .sandbox = sandbox};
                int error = containment_plan(c, flags | SHEPHERD_CONTAIN_ALL, paths, &job);
                pid_t child = error ? -1 : fork();
                if (child == 0) {
                        error = containment_enter(&job);
                        if (!error)
                                error = containment_seal(&job);
                        _exit(error ? 200 : look());
                }
                if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                        _exit(202);
                containment_free(c);
                _exit(WEXITSTATUS(status));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int on_all(uint32_t flags, int (*look)(void))
{
        int r = contained_as(getuid(), flags, look);

        return r || getuid() != 0 ? r : contained_as(ORDINARY, flags, look);
}

static int hidden(void)
{
        char path[192];

        if (access(key, F_OK) == 0 || errno != ENOENT)
                return 1;
        if (access(sandbox, R_OK | W_OK) != 0)
                return 2;
        snprintf(path, sizeof(path), "%s/made", sandbox);
        int fd = open(path, O_WRONLY | O_CREAT, 0666);
        if (fd < 0 || unlink(path) < 0)
                return 3;
        snprintf(path, sizeof(path), "%s/made", state);
        return mkdir(path, 0700) == 0 || errno != EROFS ? 4 : 0;
}

static void test_hide(void **arg)
{
        (void)arg;
        assert_int_equal(on_all(SHEPHERD_HIDE, hidden), 0);
        assert_int_equal(access(key, F_OK), 0);
}

/* A folder above the hidden one keeps its name; others do not. */
static int moved(void)
{
        char plain[128], away[128];

        snprintf(plain, sizeof(plain), "%s/plain", top);
        snprintf(away, sizeof(away), "%s/away", top);
        if (rename(way, away) == 0 || errno != EBUSY)
                return 1;
        if (mkdir(plain, 0700) < 0 || rename(plain, away) < 0 || rmdir(away) < 0)
                return 2;
        return access(key, F_OK) == 0 ? 3 : 0;
}

static void test_hide_moved(void **arg)
{
        (void)arg;
        assert_int_equal(contained_as(getuid() ? getuid() : ORDINARY, SHEPHERD_HIDE, moved), 0);
        assert_int_equal(access(key, F_OK), 0);
}

/* A replaced file stays hidden. */
static int replaced(void)
{
        return access(key, F_OK) == 0;
}

static void test_hide_replaced(void **arg)
{
        (void)arg;
        int status, why;
        const char *const folders[] = {state}, *const paths[] = {NULL};
        struct containment *c = containment_new(folders, 1, jobs, &why);
        struct containment_job job = {.uid = getuid(), .gid = getgid(), .sandbox = sandbox};
        char fresh[128];
        assert_int_equal(why, 0);
        snprintf(fresh, sizeof(fresh), "%s.new", key);
        put(fresh, "another");
        assert_int_equal(rename(fresh, key), 0);
        assert_int_equal(containment_plan(c, SHEPHERD_HIDE, paths, &job), 0);
        pid_t pid = fork();
        if (pid == 0)
                _exit(containment_enter(&job) || replaced());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        containment_free(c);
}

/* Memory and files of a process outside with the same uid are not accessible. */
static int look_outside(void)
{
        char path[64];
        pid_t other = getppid();

        snprintf(path, sizeof(path), "/proc/%d/root/etc", (int)other);
        if (access(path, F_OK) == 0)
                return 1;
        snprintf(path, sizeof(path), "/proc/%d/mem", (int)other);
        if (open(path, O_RDONLY) >= 0)
                return 2;
        return ptrace(PTRACE_ATTACH, other, NULL, NULL) == 0 ? 3 : 0;
}

/* The program that a job executes has no capabilities of the namespace: as after execve. */
static int look_outside_as_program(void)
{
        struct {
                uint32_t version;
                int pid;
        } head = {0x20080522, 0};
        uint32_t none[6] = {0};

        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        if (syscall(SYS_capset, &head, none) < 0)
                return 9;
        return look_outside();
}

static void test_hide_ptrace(void **arg)
{
        (void)arg;
        assert_int_equal(on_all(SHEPHERD_HIDE, look_outside_as_program), 0);
}

static int filtered(void)
{
        char byte = 'x';

        if (syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0) >= 0 || errno != ENOSYS)
                return 1;
        if (syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM)
                return 2;
        if (syscall(SYS_ioctl, 0, (unsigned long)TIOCSTI, &byte) >= 0 || errno != EPERM)
                return 3;
#if defined(__x86_64__)
        if (syscall(SYS_ioctl, 0, (1ul << 32) | TIOCSTI, &byte) >= 0 || errno != EPERM)
                return 4; /* the kernel reads 32 bits of it */
#endif
        return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : 5;
}

static void test_filter(void **arg)
{
        (void)arg;
        assert_int_equal(on_all(SHEPHERD_FILTER | SHEPHERD_NO_PRIVILEGES, filtered), 0);
        assert_int_equal(on_all(SHEPHERD_FILTER | SHEPHERD_HIDE, filtered), 0);
}

static int no_privileges(void)
{
        return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static void test_no_privileges(void **arg)
{
        (void)arg;
        assert_int_equal(on_all(SHEPHERD_NO_PRIVILEGES, no_privileges), 0);
}

static int own_tmp(void)
{
        char path[192];
        struct stat a, b;

        snprintf(path, sizeof(path), "%s/.drover_tmp", sandbox);
        if (access("/tmp/containment.shared", F_OK) == 0)
                return 1;
        if (stat(path, &a) < 0 || stat("/tmp", &b) < 0 || a.st_ino != b.st_ino)
                return 2;
        if (stat("/var/tmp", &b) < 0 || a.st_ino != b.st_ino)
                return 3;
        return a.st_uid == getuid() ? 0 : 4;
}

static void test_tmp(void **arg)
{
        (void)arg;
        if (!strncmp(top, "/tmp", 4))
                skip();
        put("/tmp/containment.shared", "");
        assert_int_equal(contained_as(getuid(), SHEPHERD_OWN_TMP, own_tmp), 0);
        unlink("/tmp/containment.shared");
}

static int lone_loopback(void)
{
        struct if_nameindex *all = if_nameindex();
        bool alone = all && all[0].if_index && !strcmp(all[0].if_name, "lo") && !all[1].if_index;
        struct ifreq lo = {.ifr_name = "lo"};
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return !alone ? 1 : ioctl(fd, SIOCGIFFLAGS, &lo) < 0 || !(lo.ifr_flags & IFF_UP) ? 2 : 0;
}

static void test_no_network(void **arg)
{
        (void)arg;
        assert_int_equal(on_all(SHEPHERD_NO_NETWORK, lone_loopback), 0);
}

/* A job whose files are in /tmp shares it; a request for a missing part fails. */
static void test_plan(void **arg)
{
        (void)arg;
        int why;
        const char *const folders[] = {state}, *const in_tmp[] = {sandbox, "/tmp/work", NULL},
                          *const named[] = {sandbox, "/tmpfiles", NULL};
        struct containment *c = containment_new(folders, 1, jobs, &why);
        struct containment_job job = {.uid = getuid(), .gid = getgid(), .sandbox = sandbox};
        assert_int_equal(containment_plan(c, SHEPHERD_OWN_TMP, in_tmp, &job), 0);
        assert_false(job.tmp);
        assert_true(job.var_tmp);
        assert_int_equal(containment_plan(c, SHEPHERD_OWN_TMP, named, &job), 0);
        assert_int_equal(job.tmp, strncmp(top, "/tmp", 4) != 0);
        containment_free(c);
        c = containment_new(folders, 1, "/no/such/folder", &why);
        assert_int_equal(why, ENOENT);
        assert_false(containment_parts(c) & SHEPHERD_HIDE);
        assert_int_equal(containment_plan(c, SHEPHERD_HIDE | SHEPHERD_CONTAIN_ALL, named, &job), ENOSYS);
        assert_int_equal(containment_plan(c, SHEPHERD_HIDE, named, &job), 0);
        assert_int_equal(job.flags, 0);
        containment_free(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_hide, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hide_moved, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hide_replaced, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hide_ptrace, setup, teardown),
                cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_privileges, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tmp, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_network, setup, teardown),
                cmocka_unit_test_setup_teardown(test_plan, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
