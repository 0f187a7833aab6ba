/* For LD_PRELOAD: a machine that has been asleep. CLOCK_BOOTTIME is ahead by the seconds that stand, in
 * native form, in the file SLEEPING_CLOCK names; the other clocks stood still meanwhile. See
 * tests/system/test_asleep.py. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *slept_s;

__attribute__((constructor)) static void begin(void)
{
        const char *name = getenv("SLEEPING_CLOCK");
        int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0)
                return;
        void *p = mmap(NULL, sizeof(*slept_s), PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        if (p != MAP_FAILED)
                slept_s = p;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
        int r = (int)syscall(SYS_clock_gettime, id, t);
        if (r == 0 && id == CLOCK_BOOTTIME && slept_s)
                t->tv_sec += *slept_s;
        return r;
}
