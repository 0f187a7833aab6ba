/* Events of a text that may have been sent before are searched in the last TAIL_BYTES of the file, each from
 * the end of the one before: they are there in the order in which they were sent, with events of others
 * between them. An event that is not found costs a search of the whole rest; after SEARCH_BYTES the
 * remaining events are taken as new, which at worst writes a line twice. */
#include "agent/transfer/userlog_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define TAIL_BYTES   (8u << 20)
#define SEARCH_BYTES (64u << 20)

static bool may_pass(int error)
{
        return error == ENOSPC || error == EDQUOT || error == EIO || error == ESTALE || error == ENFILE ||
               error == EMFILE || error == ENOMEM || error == ETIMEDOUT || error == EAGAIN || error == EINTR;
}

/* Reads the last bytes of the file; nothing if it cannot be read. */
static void read_tail(int dir, const char *name, off_t size, struct buf *tail)
{
        int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        off_t at = size > (off_t)TAIL_BYTES ? size - (off_t)TAIL_BYTES : 0;

        while (fd >= 0 && at < size) {
                size_t want = (size_t)(size - at) < 1u << 16 ? (size_t)(size - at) : 1u << 16;
                ssize_t n = pread(fd, buf_room(tail, want), want, at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                tail->n += (size_t)n;
                at += n;
        }
        if (fd >= 0)
                close(fd);
}

/* The first event of *rest, its last line included. */
static struct str cut_event(struct str *rest)
{
        char first = rest->n ? rest->p[0] : 0;
        struct str last = first == '<' ? STR("\n</c>\n") : first == '{' ? STR("\n}\n") : STR("\n...\n");
        ptrdiff_t end = str_search(*rest, last);
        struct str event = end < 0 ? *rest : str_head(*rest, (size_t)end + last.n);

        *rest = str_skip(*rest, event.n);
        return event;
}

/* Returns the offset in the tail at which the event ends, if it begins at a line's start at or after `from`;
 * 0: not found. */
static size_t find_event(struct str tail, size_t from, struct str event, size_t *effort)
{
        while (from + event.n <= tail.n && *effort < SEARCH_BYTES) {
                ptrdiff_t at = str_search(str_skip(tail, from), event);

                if (at < 0) {
                        *effort += tail.n - from;
                        return 0;
                }
                from += (size_t)at;
                if (from == 0 || tail.p[from - 1] == '\n')
                        return from + event.n;
                from++;
        }
        return 0;
}

/* Returns the length of the event's beginning with which the file ends: its writer was killed in the middle.
 */
static size_t torn(struct str tail, struct str event)
{
        for (size_t n = event.n - 1 < tail.n ? event.n - 1 : tail.n; n > 0; n--)
                if ((n == tail.n || tail.p[tail.n - n - 1] == '\n') &&
                    memcmp(tail.p + tail.n - n, event.p, n) == 0)
                        return n;
        return 0;
}

/* Leaves out events that are there. Returns whether the last event was missing. */
static bool leave_out(struct str tail, struct str text, struct buf *rest)
{
        size_t from = 0, effort = 0;
        bool added = false;

        while (text.n) {
                struct str event = cut_event(&text);
                size_t end = find_event(tail, from, event, &effort);

                if (end)
                        from = end;
                else
                        buf_str(rest, str_skip(event, rest->n ? 0 : torn(tail, event)));
                added = !end;
        }
        return added;
}

static int write_all(int fd, struct str text, off_t size)
{
        size_t done = 0;

        while (done < text.n) {
                ssize_t n = write(fd, text.p + done, text.n - done);
                struct stat st;
                int error = errno;

                if (n < 0 && error == EINTR)
                        continue;
                if (n > 0) {
                        done += (size_t)n;
                        continue;
                }
                error = n < 0 ? error : ENOSPC;
                /* removes half an event, which would spoil later ones, unless others have appended meanwhile
                 */
                if (done && fstat(fd, &st) == 0 && st.st_size == size + (off_t)done &&
                    ftruncate(fd, size) < 0)
                        error = EIO;
                return -error;
        }
        return 0;
}

static int append(int dir, const char *name, struct str text, bool maybe_there,
                  struct userlog_file_result *ret)
{
        BUF_CLEANUP struct buf tail = {0}, rest = {0};
        int fd = openat(dir, name,
                        O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
        struct stat st = {0};
        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
                close(fd);
                return 0;
        }
        if (r == 0 && !S_ISREG(st.st_mode))
                r = -ELOOP;
        if (r == 0 && maybe_there && st.st_size > 0) {
                read_tail(dir, name, st.st_size, &tail);
                ret->added = leave_out(buf_view(&tail), text, &rest);
                text = buf_view(&rest);
        }
        if (r == 0)
                r = write_all(fd, text, st.st_size);
        if (fd >= 0)
                close(fd);
        return r;
}

/* Opens the log's folder. It is made if it is missing, but not the folders above it, which may be on a file
 * system that is not mounted now. */
static int open_folder(const struct hidden *hidden, const char *path, int *ret_fd, const char **ret_name)
{
        int r = hidden_open_parent(hidden, path, ret_fd, ret_name);
        MEM_CLEANUP char *folder = NULL;

        if (r != -ENOENT)
                return r;
        folder = mem_dup(path, (size_t)(strrchr(path, '/') - path));
        r = hidden_make_folder(hidden, folder, 0777);
        return r == 0 ? hidden_open_parent(hidden, path, ret_fd, ret_name) : r;
}

int userlog_file_append(const struct hidden *hidden, const char *path, struct str text, bool maybe_there,
                        struct userlog_file_result *ret, struct err *err)
{
        const char *name;
        int dir, r = open_folder(hidden, path, &dir, &name);

        *ret = (struct userlog_file_result){.added = true};
        if (r == HIDDEN_INSIDE)
                return err_set(err, -EACCES, "the log %s is in a folder of Drover's own", path);
        if (r == 0) {
                r = append(dir, name, text, maybe_there, ret);
                close(dir);
        }
        if (r == -ELOOP)
                return err_set(err, -EINVAL, "the log %s is a link, or no regular file", path);
        if (r == 0)
                return 0;
        ret->again = may_pass(-r);
        return err_set(err, r, "cannot write the log %s: %s", path, strerror(-r));
}
