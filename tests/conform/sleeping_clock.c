/* For LD_PRELOAD: a machine that has been asleep, or whose wall clock was set. The file that SLEEPING_CLOCK
 * names has two numbers in native form: the seconds by which CLOCK_BOOTTIME is ahead, for the other clocks
 * stood still meanwhile, and those by which CLOCK_REALTIME is. See tests/system/test_asleep.py and
 * test_bad_days.py. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define HERE __attribute__((visibility("default")))

static const volatile int64_t *ahead_s;

__attribute__((constructor)) static void begin(void)
{
        const char *name = getenv("SLEEPING_CLOCK");
        int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
                return;
        void *p = mmap(NULL, 2 * sizeof(*ahead_s), PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        if (p != MAP_FAILED)
                ahead_s = p;
}

HERE int clock_gettime(clockid_t id, struct timespec *t)
{
        int r = (int)syscall(SYS_clock_gettime, id, t);

        if (r == 0 && ahead_s)
                t->tv_sec += id == CLOCK_BOOTTIME ? ahead_s[0] : id == CLOCK_REALTIME ? ahead_s[1] : 0;
        return r;
}

HERE time_t time(time_t *ret)
{
        struct timespec t = {0};

        clock_gettime(CLOCK_REALTIME, &t);
        if (ret)
                *ret = t.tv_sec;
        return t.tv_sec;
}

HERE int gettimeofday(struct timeval *ret, void *zone)
{
        struct timespec t = {0};

        (void)zone;
        clock_gettime(CLOCK_REALTIME, &t);
        ret->tv_sec = t.tv_sec;
        ret->tv_usec = t.tv_nsec / 1000;
        return 0;
}
