/* User commands of the drover runner, with a map of users, each a small shell script.
 *
 * The scripts make files of the user's sandbox readable; only the user and the agent's group can enter that
 * folder. The agent opens there only regular files that belong to the user, beneath the folder and without
 * following links, since the user may change everything at any time. The agent writes outputs beside it, and
 * a script moves them to their paths as the user, so that the user owns them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/hidden.h"
#include "base/system/secret.h"
#include "run/drover/describe.h"
#include "run/drover/names.h"
#include "run/drover/state.h"
#include "run/drover/tasks.h"
#include "run/drover/user.h"
#include "run/drover/user_files.h"
#include "run/process/user_command.h"

#define FILES_MS (6 * 3600000ll) /* time limit for copying */
#define PREFIX   ".drover_hop."

/* ---- files to send */

/* Reads a line "644 17 NAME\0"; the first two may be the files from outside. */
static bool take_file(struct remote_task *t, struct str line)
{
        struct str mode, size;
        uint64_t bytes;
        char *end, octal[8];

        if (!str_cut(&line, ' ', &mode) || !str_cut(&line, ' ', &size) || mode.n >= sizeof(octal) ||
            str_to_u64(size, &bytes) != 0 || !line.n || t->files.n == REMOTE_FILES_MAX)
                return false;
        memcpy(octal, mode.p, mode.n);
        octal[mode.n] = 0;
        unsigned bits = (unsigned)strtoul(octal, &end, 8);
        MEM_GROW(t->files.v, t->files.cap, t->files.n + 1);
        t->files.v[t->files.n++] = (struct remote_file){
                .path = str_dupz(line), .name = str_dupz(line), .size = bytes, .mode = bits & 0777};
        return *end == 0;
}

/* Returns whether the file is the copy of a file from outside, which is sent under its own name. */
static bool is_outside(struct remote_task *t, const char *end, const char *name)
{
        BUF_CLEANUP struct buf copy = {0};

        buf_printf(&copy, PREFIX "%u.%s", t->id.step, end);
        for (size_t i = 0; i < t->files.n; i++)
                if (!strcmp(t->files.v[i].name, buf_z(&copy))) {
                        free(t->files.v[i].name);
                        t->files.v[i].name = mem_dupz(name);
                        return true;
                }
        return false;
}

static void on_exposed(void *arg, int status, struct str out, struct str errors)
{
        struct remote_task *t = arg;
        BUF_CLEANUP struct buf why = {0};
        struct str line;

        t->user_command = NULL;
        if (status != 0) {
                remote_user_said(&why, errors);
                remote_fail(t, "sandbox", EIO, buf_z(&why));
                return;
        }
        while (out.n && str_cut(&out, '\0', &line))
                if (!take_file(t, line)) {
                        remote_fail_files(t);
                        return;
                }
        bool program = is_outside(t, "program", "drover.program"),
             input = is_outside(t, "stdin", "drover.stdin");
        remote_exposed(t, program, input);
        timer_start(t->remote->later, 0);
}

void remote_expose(struct remote_task *t)
{
        static const char script[] = "cd -- \"$1\" || exit 1\n"
                                     "outside() {\n"
                                     "        if [ -n \"$1\" ] && [ -f \"$1\" ] && [ -r \"$1\" ]; then\n"
                                     "                cp -- \"$1\" \"$2\" && chmod \"$3\" \"$2\" && find "
                                     "\"$2\" -printf '%m %s %p\\0' || exit 1\n"
                                     "        fi\n"
                                     "}\n"
                                     "outside \"$3\" \"$2.program\" 755\n"
                                     "outside \"$4\" \"$2.stdin\" 644\n"
                                     "find . -mindepth 1 -maxdepth 33 ! -path './.drover_*' -type f -printf "
                                     "'%m %s %P\\0' || exit 1\n"
                                     "exec find . -mindepth 1 -maxdepth 33 ! -path './.drover_*' \\( -type d "
                                     "! -perm -005 -o -type f ! -perm -004 \\) "
                                     "-exec chmod o+rX -- {} +\n";
        BUF_CLEANUP struct buf prefix = {0};

        buf_printf(&prefix, PREFIX "%u", t->id.step);
        const char *words[] = {t->sandbox, buf_z(&prefix), t->program ? t->program : "",
                               t->stdin ? t->stdin : "", NULL};
        const struct user_command_spec s = {.timeout_ms = FILES_MS};
        remote_files_deinit(&t->files);
        t->user_command = remote_user_run(t->remote->user, script, words, &s, on_exposed, t);
}

static int sandbox(const struct remote_task *t)
{
        int fd = open(t->sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int remote_input(struct remote_task *t, const struct remote_file *file)
{
        struct stat st;

        if (!t->remote->user) {
                int fd = open(file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

                if (fd < 0 || !file->outside || hidden_check(t->remote->closed, fd) == 0)
                        return fd < 0 ? -errno : fd;
                close(fd);
                return -EACCES;
        }
        int dir = sandbox(t);
        int fd = dir < 0 ? dir : fs_open_beneath(dir, file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (dir >= 0)
                close(dir);
        if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != t->remote->user->uid)) {
                close(fd);
                return -EPERM;
        }
        return fd;
}

/* ---- outputs */

static void new_name(const struct remote_task *t, size_t index, struct buf *out)
{
        buf_printf(out, PREFIX "%u.new.%zu", t->id.step, index);
}

int remote_user_output(const struct remote_task *t, size_t index)
{
        BUF_CLEANUP struct buf name = {0};
        int dir = sandbox(t);

        if (dir < 0)
                return dir;
        new_name(t, index, &name);
        unlinkat(dir, buf_z(&name), 0); /* left by an earlier run */
        int fd = openat(dir, buf_z(&name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        int r = fd < 0 ? -errno : fchmod(fd, 0644) < 0 ? -errno : 0; /* independent of the umask */
        if (r < 0 && fd >= 0)
                close(fd);
        close(dir);
        return r < 0 ? r : fd;
}

/* Appends a line "FROM MODE append|whole TO" for the script below. */
static int add_line(const struct remote_task *t, struct buf *out, const char *from, const char *name,
                    unsigned mode)
{
        BUF_CLEANUP struct buf to = {0};
        bool appending;

        if (remote_destination(t, ".", name, &to, &appending) < 0 || memchr(to.p, '\n', to.n))
                return -EINVAL;
        buf_printf(out, "%s %03o %s %s\n", from, mode ? (mode & 0777) | 0600 : 0644,
                   appending ? "append" : "whole", buf_z(&to));
        return 0;
}

static void on_placed(void *arg, int status, struct str out, struct str errors)
{
        struct remote_task *t = arg;
        BUF_CLEANUP struct buf why = {0};
        struct run_event result = t->result;

        (void)out;
        t->user_command = NULL;
        if (status == 0) {
                remote_over(t, &result, NULL);
                return;
        }
        remote_user_said(&why, errors);
        remote_cannot_keep(t, "", buf_z(&why), EIO);
}

void remote_place(struct remote_task *t)
{
        static const char script[] =
                "cd -- \"$1\" || exit 1\n"
                "while read -r from mode how to; do\n"
                "        [ -e \"$from\" ] || continue\n"
                "        mkdir -p -- \"${to%/*}/\" || exit 1\n"
                "        if [ $how = append ]; then\n"
                "                if [ -s \"$from.at\" ]; then\n" /* a repeated run */
                "                        dd status=none conv=notrunc oflag=seek_bytes bs=64K "
                "seek=\"$(cat \"$from.at\")\" if=\"$from\" of=\"$to\" || exit 1\n"
                "                else\n"
                "                        : >>\"$to\" && wc -c <\"$to\" >\"$from.at\" && "
                "cat \"$from\" >>\"$to\" || exit 1\n"
                "                fi\n"
                "        else\n"
                "                cp --reflink=auto -- \"$from\" \"$from.own\" && chmod "
                "$mode \"$from.own\" && "
                "mv -f -- \"$from.own\" \"$to\" || exit 1\n"
                "        fi\n"
                "        rm -f -- \"$from\"\n"
                "done\n";
        static const char *const streams[] = {"out", "err"};
        BUF_CLEANUP struct buf lines = {0};
        const char *words[] = {t->sandbox, NULL};
        int r = 0;

        for (size_t i = 0; i < t->files.n && r == 0; i++) {
                BUF_CLEANUP struct buf from = {0};

                new_name(t, i, &from);
                r = add_line(t, &lines, buf_z(&from), t->files.v[i].name, t->files.v[i].mode);
                if (r < 0)
                        remote_cannot_keep(t, t->files.v[i].name, "its name cannot be one here", EINVAL);
        }
        for (int i = 0; i < 2 && r == 0; i++) { /* written by the last place on a shared file system */
                BUF_CLEANUP struct buf from = {0};

                buf_printf(&from, PREFIX "%u.%s", t->id.step, streams[i]);
                if (i ? t->err : t->out)
                        add_line(t, &lines, buf_z(&from), buf_z(&from), 0);
        }
        if (r < 0)
                return;
        const struct user_command_spec s = {.input = buf_view(&lines), .timeout_ms = FILES_MS};
        t->user_command = remote_user_run(t->remote->user, script, words, &s, on_placed, t);
}
