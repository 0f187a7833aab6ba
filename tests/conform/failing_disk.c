/* For LD_PRELOAD: a disk that fails. The file that FAILING_DISK names, where it is there, has lines of a
 * call, an errno and a part of a path: "fsync 28 /spool/". While it is so, that call fails with that errno
 * for every file whose path has that part. The calls are write (which writes half of it first), fsync (and
 * fdatasync) and rename; of "slow" the number is the seconds that fsync takes
 * longer. See tests/system/test_failing_disk.py. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HERE __attribute__((visibility("default")))

static const char *rules_path;

__attribute__((constructor)) static void begin(void)
{
        rules_path = getenv("FAILING_DISK");
}

/* A part that ends in '$' is the end of the path. */
static bool has_part(const char *path, const char *part)
{
        size_t n = strlen(part), all = strlen(path);

        if (!n || part[n - 1] != '$')
                return strstr(path, part) != NULL;
        return all >= n - 1 && !strncmp(path + all - (n - 1), part, n - 1);
}

/* 0: it does not fail. */
static int fails_with(const char *call, const char *path)
{
        char rules[4096], *rest = NULL;
        int fd = rules_path ? open(rules_path, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
                return 0;
        ssize_t n = read(fd, rules, sizeof(rules) - 1);
        close(fd);
        rules[n > 0 ? n : 0] = 0;
        for (char *line = strtok_r(rules, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                char *space = strchr(line, ' '), *part;

                if (!space)
                        continue;
                *space = 0;
                long number = strtol(space + 1, &part, 10);
                if (!strcmp(line, call) && *part == ' ' && has_part(path, part + 1))
                        return (int)number;
        }
        return 0;
}

static int file_fails_with(const char *call, int fd)
{
        char link[64], path[PATH_MAX];
        int before = errno;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = rules_path ? readlink(link, path, sizeof(path) - 1) : -1;
        path[n > 0 ? n : 0] = 0;
        int number = n > 0 ? fails_with(call, path) : 0;
        errno = before;
        return number;
}

HERE ssize_t write(int fd, const void *p, size_t n)
{
        int number = file_fails_with("write", fd);

        if (!number)
                return syscall(SYS_write, fd, p, n);
        (void)!syscall(SYS_write, fd, p, n / 2);
        errno = number;
        return -1;
}

static int flush(int fd, long call)
{
        int number = file_fails_with("fsync", fd);

        sleep((unsigned)file_fails_with("slow", fd));
        if (!number)
                return (int)syscall(call, fd);
        errno = number;
        return -1;
}

HERE int fsync(int fd)
{
        return flush(fd, SYS_fsync);
}

HERE int fdatasync(int fd)
{
        return flush(fd, SYS_fdatasync);
}

HERE int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
        char link[64], path[PATH_MAX] = "";

        snprintf(link, sizeof(link), "/proc/self/fd/%d", to_dir);
        ssize_t n = rules_path ? readlink(link, path, sizeof(path) / 2) : -1;
        n = n > 0 ? n : 0;
        snprintf(path + n, sizeof(path) - (size_t)n, "/%s", to);
        int number = fails_with("rename", path);
        if (!number)
                return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
        errno = number;
        return -1;
}
