/* A file lists the tasks that were begun and are not forgotten; the agent reads it when the shepherd does
 * not answer: tasks in the file may run or have run, others may be started elsewhere. An entry costs no
 * system call. Free entries are reused first, so that the same few pages are written. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/shepherd/shepherd.h"

static uint32_t unused[SHEPHERD_BEGUN_MAX];
static size_t unused_count;

/* Makes the file with all its disk blocks allocated: a mapped page without a block would end the shepherd
 * when it is written. Returns a descriptor or -errno. */
static int make_file(struct shepherd *s)
{
        unlinkat(s->dir, SHEPHERD_BEGUN, 0); /* an agent may still read the previous shepherd's file */
        int fd = openat(s->dir, SHEPHERD_BEGUN, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        /* an agent of another user may read the file but not write it: a shortened file would end the
         * shepherd */
        int r = s->agent_uid != s->uid && fchmod(fd, 0644) < 0
                        ? errno
                        : posix_fallocate(fd, 0, sizeof(struct shepherd_begun));
        if (r == 0)
                return fd;
        close(fd);
        unlinkat(s->dir, SHEPHERD_BEGUN, 0);
        return -r;
}

int begun_open(struct shepherd *s)
{
        int fd = make_file(s);

        if (fd < 0)
                complain(
                        "msg=\"cannot write down for the agent what was begun: jobs that were not begun wait "
                        "for a shepherd that does not answer\" error=\"%s\"",
                        strerror(-fd));
        s->begun = mmap(NULL, sizeof(*s->begun), PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
        int r = s->begun == MAP_FAILED ? -errno : 0;
        if (fd >= 0)
                close(fd);
        if (r < 0)
                return r;
        s->begun->pid = getpid();
        s->begun->magic = SHEPHERD_BEGUN_MAGIC;
        return 0;
}

uint32_t begun_add(struct shepherd *s, const struct shepherd_id *id)
{
        uint32_t place = unused_count ? unused[--unused_count] : s->begun->used++;

        s->begun->ids[place] = *id;
        atomic_thread_fence(memory_order_seq_cst);
        return place;
}

void begun_remove(struct shepherd *s, uint32_t place)
{
        if (place == SHEPHERD_BEGUN_MAX)
                return;
        s->begun->ids[place] = (struct shepherd_id){0};
        unused[unused_count++] = place;
}
