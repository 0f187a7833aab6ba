#include "run/task/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/fs.h"

/* Reads the size before the first try, which is the present size if there is no mark. */
static int read_mark(const char *mark, int out, uint64_t *ret, bool *ret_again)
{
        BUF_CLEANUP struct buf text = {0};
        struct stat st;

        *ret_again = fs_read_regular(AT_FDCWD, mark, 32, &text, NULL) == 0 &&
                     str_to_u64(str_trim(buf_view(&text)), ret) == 0;
        if (*ret_again)
                return 0;
        if (fstat(out, &st) < 0)
                return -errno;
        *ret = (uint64_t)st.st_size;
        buf_reset(&text);
        buf_printf(&text, "%llu\n", (unsigned long long)*ret);
        return fs_write(AT_FDCWD, mark, buf_view(&text), 0600, false, NULL);
}

/* Returns how many bytes of `in` are in `out` already, from `at` on: all, or up to the end of `out`. 0 if
 * the bytes differ, since another program has written there. */
static uint64_t alike(int in, int out, uint64_t at)
{
        uint64_t n = 0;
        char a[8192], b[8192];

        for (;;) {
                ssize_t have = pread(in, a, sizeof(a), (off_t)n);
                ssize_t there = have > 0 ? pread(out, b, (size_t)have, (off_t)(at + n)) : 0;

                for (ssize_t i = 0; i < there; i++)
                        if (a[i] != b[i])
                                return 0;
                if (there <= 0)
                        return n;
                n += (uint64_t)there;
        }
}

int append_once(const char *from, const char *to, const char *mark)
{
        int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        int out = in < 0 ? -1 : open(to, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        uint64_t at = 0;
        bool again = false;
        int r = out < 0 ? -errno : read_mark(mark, out, &at, &again);

        if (r == 0 && again && lseek(in, (off_t)alike(in, out, at), SEEK_SET) < 0)
                r = -errno;
        if (r == 0)
                r = fs_copy(in, out, NULL);
        if (in >= 0)
                close(in);
        if (out >= 0)
                close(out);
        if (r == 0)
                unlink(from);
        return r;
}
