/* Each read of /dev/kmsg returns one record, the oldest first (Documentation/ABI/testing/dev-kmsg). */
#include "agent/machine/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define RECORD_MAX  8192
#define RECORDS_MAX 200000 /* bound for a log that grows as fast as it is read */

static bool says_so(struct str record, struct str part)
{
        ptrdiff_t at = str_search(record, STR("oom-kill:"));

        return at >= 0 && str_search(str_skip(record, (size_t)at), part) >= 0;
}

bool kernel_log_out_of_memory(struct str part)
{
        char record[RECORD_MAX];
        bool found = false;
        int fd = part.n ? open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

        for (unsigned i = 0; fd >= 0 && !found && i < RECORDS_MAX; i++) {
                ssize_t n = read(fd, record, sizeof(record));

                if (n > 0)
                        found = says_so(str_make(record, (size_t)n), part);
                else if (n == 0 || errno != EPIPE) /* EPIPE: some were overwritten meanwhile */
                        break;
        }
        if (fd >= 0)
                close(fd);
        return found;
}
