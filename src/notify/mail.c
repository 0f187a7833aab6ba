/* Sends mail with the admin's mailer. The mailer reads its input from a file in memory, so that neither
 * side can block the other; its output goes to another one, for the log. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "notify/notify.h"

#define LOOK_MS  200
#define SAID_MAX 300

/* RFC 5322, 3.3: names of days and months are in English in every locale. */
static void add_date(struct buf *out, int64_t at_ms)
{
        static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
        time_t at = (time_t)(at_ms / 1000);
        struct tm tm;

        gmtime_r(&at, &tm);
        buf_printf(out, "Date: %.3s, %d %.3s %d %02d:%02d:%02d +0000\n", days + 3 * tm.tm_wday, tm.tm_mday,
                   months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void mail_write(struct buf *out, const struct notify_config *config, const struct notify_message *m)
{
        const char *host = strchr(config->from, '@');

        buf_printf(out, "From: Drover <%s>\nTo: %s\nSubject: ", config->from, m->to);
        for (const char *c = m->subject; *c; c++)
                buf_char(out, *c < ' ' || *c > '~' ? '?' : *c);
        buf_char(out, '\n');
        add_date(out, m->at_ms);
        buf_printf(out, "Message-ID: <%s%s>\n", m->id, host ? host : "@drover.invalid");
        /* RFC 3834: prevents automatic replies */
        buf_addz(out, "Auto-Submitted: auto-generated\nPrecedence: bulk\nMIME-Version: 1.0\n"
                      "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n");
        for (size_t i = 0; i < m->body.n; i++) { /* removes NUL and CR: lines end with LF */
                char c = m->body.p[i];

                if (c != '\r' && c != '\0')
                        buf_char(out, c);
        }
        if (m->body.n == 0 || m->body.p[m->body.n - 1] != '\n')
                buf_char(out, '\n');
}

static int write_all(int fd, struct str text)
{
        while (text.n) {
                ssize_t n = write(fd, text.p, text.n);

                if (n < 0)
                        return -errno;
                text = str_skip(text, (size_t)n);
        }
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int start_mailer(const struct notify_config *config, const struct notify_message *m, int in, int said,
                        pid_t *ret)
{
        static char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", lang[] = "LANG=C.UTF-8";
        char *argv[NOTIFY_LIST_MAX + 2] = {0}, *env[] = {path, lang, NULL};
        posix_spawn_file_actions_t files;
        posix_spawnattr_t how;
        sigset_t none, all;
        bool named = false;
        size_t n = 0;
        int e;

        for (; config->mailer[n]; n++) {
                bool here = strcmp(config->mailer[n], "{to}") == 0;

                argv[n] = here ? m->to : config->mailer[n];
                named |= here;
        }
        if (!named)
                argv[n] = m->to;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, in, 0);
        posix_spawn_file_actions_adddup2(&files, said, 1);
        posix_spawn_file_actions_adddup2(&files, said, 2);
        posix_spawnattr_init(&how);
        posix_spawnattr_setflags(&how,
                                 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setsigmask(&how, &none);
        posix_spawnattr_setsigdefault(&how, &all);
        e = posix_spawn(ret, argv[0], &files, &how, argv, env);
        posix_spawnattr_destroy(&how);
        posix_spawn_file_actions_destroy(&files);
        return -e;
}

/* Returns the wait status; or -ETIMEDOUT or -ECANCELED when the mailer was killed. */
static int wait_end(pid_t pid, int64_t timeout_ms, const struct notify_stop *s, int *ret_status)
{
        int64_t end = clock_boot_ms() + timeout_ms;
        int fd = (int)syscall(SYS_pidfd_open, pid, 0), r = 0;
        struct pollfd p = {.fd = fd, .events = POLLIN};

        while (r == 0 && poll(&p, 1, LOOK_MS) <= 0)
                r = notify_stopping(s) ? -ECANCELED : clock_boot_ms() >= end ? -ETIMEDOUT : 0;
        if (r != 0)
                kill(-pid, SIGKILL);
        while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
                ;
        if (fd >= 0)
                close(fd);
        return r;
}

static enum notify_result mail_judge(int r, int status, int said, const char *program, struct err *why)
{
        char text[SAID_MAX + 1];
        ssize_t n = pread(said, text, SAID_MAX, 0);

        text[n > 0 ? n : 0] = '\0';
        for (char *c = text; *c; c++)
                *c = (unsigned char)*c < ' ' ? ' ' : *c;
        if (r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return NOTIFY_SENT;
        if (r < 0)
                err_set(why, r, "%s did not end in time", program);
        else if (WIFEXITED(status))
                err_set(why, -EIO, "%s ended with %d: %s", program, WEXITSTATUS(status), text);
        else
                err_set(why, -EIO, "%s was ended by signal %d: %s", program, WTERMSIG(status), text);
        /* 64 to 78 are codes of sysexits.h; the first ones, for a wrong address or message, are permanent */
        if (r == 0 && WIFEXITED(status) && WEXITSTATUS(status) >= 64 && WEXITSTATUS(status) <= 68)
                return NOTIFY_REFUSED;
        return NOTIFY_AGAIN;
}

enum notify_result mail_send(const struct notify_config *config, const struct notify_message *m,
                             const struct notify_stop *s, struct err *why)
{
        BUF_CLEANUP struct buf text = {.max = 2 * NOTIFY_BODY_MAX};
        enum notify_result result = NOTIFY_AGAIN;
        int in = memfd_create("mail", MFD_CLOEXEC), said = memfd_create("said", MFD_CLOEXEC), r, status = 0;
        pid_t pid;

        if (!config->mailer[0]) {
                err_set(why, -ENOSYS, "the server sends no mail");
                result = NOTIFY_REFUSED;
                goto out;
        }
        mail_write(&text, config, m);
        r = in < 0 || said < 0 ? -errno : write_all(in, buf_view(&text));
        if (r == 0)
                r = start_mailer(config, m, in, said, &pid);
        if (r != 0) {
                err_set(why, r, "cannot start %s: %s", config->mailer[0], strerror(-r));
                goto out;
        }
        r = wait_end(pid, config->timeout_ms, s, &status);
        result = mail_judge(r, status, said, config->mailer[0], why);
out:
        if (in >= 0)
                close(in);
        if (said >= 0)
                close(said);
        return result;
}
