/* condor_wait: reads the log named, not the server's, so that it works for whoever can read the file. The log
 * is looked at whenever inotify tells of a change, and once in RECHECK_MS besides, for file systems that tell
 * nothing. It is an agent that makes it, a moment after the submit, so one that is not there may still come.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "cli/condor/condor.h"
#include "cli/condor/events.h"

#define RECHECK_MS 1000
#define COMES_MS   60000       /* time during which a missing log is waited for */
#define UNREAD_MAX (16u << 20) /* bytes of one event */

struct waiting {
        const char *path;
        int fd, notify;
        int64_t cluster, proc; /* -1: all */
        int64_t num;           /* jobs that are enough; 0: all */
        int64_t until_ms;      /* -1: for ever; boot clock */
        bool status, echo;
        struct map *open; /* jobs that were submitted and have not ended: "7.0.0" */
        int64_t submitted, ended;
        struct buf unread;
};

static bool wait_is_meant(const struct waiting *w, const struct event *e)
{
        return (w->cluster < 0 || w->cluster == e->cluster) && (w->proc < 0 || w->proc == e->proc);
}

static void tell_event(const struct waiting *w, const char *key, const struct event *e)
{
        if (w->echo)
                printf(STR_FMT "\n", STR_ARG(str_trim(e->text)));
        if (!w->status)
                return;
        if (e->number == EVENT_SUBMIT) {
                printf("%s submitted\n", key);
        } else if (e->number == EVENT_TERMINATED) {
                printf("%s completed\n", key);
        } else if (e->number == EVENT_ABORTED) {
                printf("%s aborted\n", key);
        } else if (e->number == EVENT_EXECUTE) {
                printf("%s executing on host %s\n", key, e->host);
        }
}

static void take_event(struct waiting *w, const struct event *e)
{
        char key[72];

        if (!wait_is_meant(w, e))
                return;
        snprintf(key, sizeof(key), "%lld.%lld.%lld", (long long)e->cluster, (long long)e->proc,
                 (long long)e->subproc);
        tell_event(w, key, e);
        if (e->number == EVENT_SUBMIT) {
                w->submitted++;
                map_put(w->open, str_of(key), w);
        } else if (e->number == EVENT_TERMINATED || e->number == EVENT_ABORTED) {
                w->ended++;
                map_take(w->open, str_of(key));
        }
}

static bool is_done(const struct waiting *w)
{
        return w->num ? w->ended >= w->num : w->submitted && map_count(w->open) == 0;
}

/* Reads on. 0, or an exit code after an error. */
static int read_log(struct waiting *w)
{
        struct event e;
        struct err err = {""};
        struct str text;
        ssize_t n;
        int rc;

        for (;;) {
                char *room = buf_room(&w->unread, 65536);

                if (!room)
                        return cli_error(1, "%s: an event is longer than %u MiB", w->path, UNREAD_MAX >> 20);
                n = read(w->fd, room, 65536);
                if (n < 0)
                        return cli_error(1, "%s: %s", w->path, strerror(errno));
                w->unread.n += (size_t)n;
                text = buf_view(&w->unread);
                /* All that is there is taken: a job may have been submitted after another ended. */
                while ((rc = event_next(&text, &e, &err)) == 1)
                        if (!(w->num && is_done(w)))
                                take_event(w, &e);
                if (rc < 0)
                        return cli_error(1, "%s: %s", w->path, err.text);
                buf_consume(&w->unread, w->unread.n - text.n);
                if (n == 0)
                        return 0;
        }
}

/* until_ms -1: for ever. False: the time is over. */
static bool await_change(const struct waiting *w, int64_t until_ms)
{
        struct pollfd p = {.fd = w->notify, .events = POLLIN};
        int64_t left = until_ms < 0 ? RECHECK_MS : until_ms - clock_boot_ms();
        char events[4096];

        if (left <= 0)
                return false;
        if (poll(&p, w->notify >= 0, (int)(left < RECHECK_MS ? left : RECHECK_MS)) > 0)
                while (read(w->notify, events, sizeof(events)) > 0)
                        ;
        return true;
}

static int wait_for(struct waiting *w)
{
        for (;;) {
                if (read_log(w) != 0)
                        return 1;
                fflush(stdout);
                if (is_done(w))
                        break;
                if (!await_change(w, w->until_ms)) {
                        puts("Time expired.");
                        return 1;
                }
        }
        if (w->num)
                printf("Specifed number of jobs (%lld) done.\n", (long long)w->num);
        else
                puts("All jobs done.");
        return 0;
}

static int read_job(struct waiting *w, const char *text)
{
        struct str rest = str_of(text), word;

        w->cluster = w->proc = -1;
        if (!text)
                return 0;
        if (!str_cut(&rest, '.', &word) || str_to_i64(word, &w->cluster) != 0 || w->cluster < 0)
                return -EINVAL;
        if (rest.p && (!str_cut(&rest, '.', &word) || str_to_i64(word, &w->proc) != 0 || w->proc < 0))
                return -EINVAL;
        return 0;
}

static int wait_read_flags(struct waiting *w, const struct flags *f)
{
        const char *job = f->word_count > 1 ? f->words[1] : NULL;
        int64_t seconds = -1;
        struct err err = {""};

        if (flags_number(f, "wait", -1, &seconds, &err) != 0 || flags_number(f, "num", 0, &w->num, &err) != 0)
                return cli_error(1, "%s", err.text);
        if (flags_has(f, "num") && w->num <= 0)
                return cli_error(1, "-num must be greater than zero");
        if (read_job(w, job) != 0)
                return cli_error(1, "\"%s\" is no job: write 7 or 7.42", job);
        w->path = f->words[0];
        w->status = flags_has(f, "status");
        w->echo = flags_has(f, "echo");
        w->until_ms = seconds < 0 ? -1 : clock_boot_ms() + seconds * 1000;
        w->unread.max = UNREAD_MAX;
        return 0;
}

/* Opens the log when it is there. 0, or an exit code after an error. */
static int open_log(struct waiting *w)
{
        BUF_CLEANUP struct buf folder = {0};
        ptrdiff_t slash = str_rfind(str_of(w->path), '/');
        int64_t until_ms = clock_boot_ms() + COMES_MS;
        int watch, error;

        if (w->until_ms >= 0 && w->until_ms < until_ms)
                until_ms = w->until_ms;
        buf_str(&folder, slash < 0 ? STR(".") : str_head(str_of(w->path), (size_t)slash + 1));
        watch = w->notify < 0 ? -1 : inotify_add_watch(w->notify, buf_z(&folder), IN_CREATE | IN_MOVED_TO);
        do {
                w->fd = open(w->path, O_RDONLY | O_CLOEXEC);
                error = w->fd < 0 ? errno : 0;
        } while (error == ENOENT && await_change(w, until_ms));
        if (error)
                return cli_error(1, "couldn't open %s: %s", w->path, strerror(error));
        if (watch >= 0)
                inotify_rm_watch(w->notify, watch);
        if (w->notify >= 0)
                inotify_add_watch(w->notify, w->path, IN_MODIFY);
        return 0;
}

static int wait_log(struct cli *cli, const struct flags *f)
{
        struct waiting w = {.fd = -1, .notify = -1};
        int code = wait_read_flags(&w, f);

        (void)cli;
        if (code != 0)
                return code;
        w.notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        w.open = map_new();
        code = open_log(&w);
        if (code == 0)
                code = wait_for(&w);
        map_free(w.open);
        buf_deinit(&w.unread);
        if (w.fd >= 0)
                close(w.fd);
        if (w.notify >= 0)
                close(w.notify);
        return code;
}

static const struct flag_row rows[] = {
        {"num", 1, FLAG_VALUE, FLAG_ACTS, "N",
         "Wait until so many jobs have ended. Default: all in the log."},
        {"wait", 1, FLAG_VALUE, FLAG_ACTS, "SECONDS", "Wait no longer than this, then fail."},
        {"status", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Tell of jobs that are submitted, begin and end."},
        {"echo", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Print the events."},
        {"allevents", 1, FLAG_PLAIN, FLAG_REFUSED, NULL, "use tail -f."},
        {0},
};
const struct condor_tool condor_wait = {
        .name = "condor_wait",
        .usage = "[FLAGS] LOGFILE [CLUSTER | CLUSTER.PROC]",
        .line = "Waits until the jobs of a log (submit command log) have ended.",
        .rows = rows,
        .words_min = 1,
        .words_max = 2,
        .run = wait_log,
};
