/* Does placement jobs, see placement.h. Folders and patterns are first expanded to a list of files; each
 * file then has its attempts. One attempt tries every way to the file once. */
#include "move/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/job/file_key.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/secret.h"
#include "move/curl_exchange.h"
#include "move/workers.h"

#define WINDOW    (64u << 20) /* bytes that are got and not yet put */
#define TRIES     5
#define RETRY_MS  1000
#define LATER_MS  60000
#define TELL_MS   1000
#define FILES_MAX 1000000u
#define DEPTH_MAX 64
#define LEFT_MAX  8 /* earlier attempts whose temporary files are removed */
#define PUT_TRIES 3 /* attempts to send a file that is still here */
#define SILENT_MS 60000
#define STREAMS   8          /* files that are moved at the same time, at most */
#define SMALL     (1u << 20) /* a file of at most so many bytes is got whole, then put, by one process */

const char *const placement_op_names[PLACEMENT_OPS] = {"transfer", "rm",      "mkdir",  "stage",
                                                       "verify",   "reserve", "release"};

struct pair {
        char *src, *dest; /* dest NULL: there is none */
        uint64_t size;    /* as its folder's listing says; MOVE_SIZE_ANY: unknown */
};

struct work {
        const struct mover_config *config;
        const struct placement *p;
        struct placement_report *report;
        struct pair *files;
        size_t file_count, file_cap;
        int64_t began_ms, told_ms, try_end_ms;
        uint64_t now, now_size; /* bytes moved, and size, of the present file */
        struct flow *flow;
        pid_t getter;
        bool getter_died, getter_hung;
        unsigned beats;                /* the getter's beats at the last check */
        int64_t looked_ms, silent_ms;  /* time of that check, and time since the beats last changed */
        bool refused;                  /* a store refused the credential */
        struct worker *me;             /* this process is one of several; NULL: it does all files */
        atomic_uint_fast64_t *claimed; /* bytes that all files have claimed of the job's space */
        uint64_t claim;                /* of these, those of the present file */
        char *unsummed;                /* host of a store that named no checksum of a file; NULL: none */
        int scratch;                   /* file for small files; -1: none yet */
};

static int64_t now_ms(void)
{
        return clock_mono_ns() / 1000000;
}

void placement_deinit(struct placement *p)
{
        for (size_t i = 0; i < p->credential_count; i++) {
                free(p->credentials[i].type);
                free(p->credentials[i].file);
                free(p->credentials[i].urls);
        }
        p->credential_count = 0;
}

static struct str last_part(struct str url)
{
        return str_skip(url, (size_t)(str_rfind(url, '/') + 1));
}

/* ---- tasks */

/* Returns the credential for the longest prefix of the URL; NULL: none. */
static const struct placement_credential *credential_for(const struct placement *p, const char *url)
{
        struct file_credential list[PLACEMENT_CREDENTIALS_MAX];
        const struct file_asker asker = {.credentials = list, .credential_count = p->credential_count};

        for (size_t i = 0; i < p->credential_count; i++)
                list[i] = (struct file_credential){str_of(p->credentials[i].file),
                                                   str_of(p->credentials[i].urls),
                                                   !strcmp(p->credentials[i].type, "s3")};
        size_t i = file_asker_shows(&asker, str_of(url));
        return i < p->credential_count ? &p->credentials[i] : NULL;
}

/* dav and davs are http and https to a server that knows WebDAV. */
static char *plain_url(const char *url)
{
        struct buf b = {0};

        if (str_istarts(str_of(url), STR("davs://")))
                buf_printf(&b, "https://%s", url + 7);
        else if (str_istarts(str_of(url), STR("dav://")))
                buf_printf(&b, "http://%s", url + 6);
        else
                buf_addz(&b, url);
        return buf_take(&b);
}

/* Reads a credential; called for each task, because its owner may have replaced it. */
static bool credential_read(const struct placement_credential *c, struct buf *out)
{
        return fs_read(AT_FDCWD, c->file, MOVE_CREDENTIAL_MAX, out, NULL) == 0;
}

static void task_make(const struct work *w, enum move_op op, const char *url, struct move_task *t)
{
        int64_t left = w->try_end_ms - now_ms();

        move_task_init(t, op);
        t->url = plain_url(url);
        t->scratch = true;
        t->limit_ms = w->try_end_ms == INT64_MAX ? 0 : left > 1 ? (uint64_t)left : 1;
        snprintf(t->tag, sizeof(t->tag), "%s", w->p->tag);
        const struct placement_credential *c = credential_for(w->p, t->url);
        SECRET_CLEANUP struct buf data = {.max = MOVE_CREDENTIAL_MAX};
        if (c && credential_read(c, &data)) {
                const char *slash = strrchr(c->file, '/');

                move_task_credential(t, c->type, slash ? slash + 1 : c->file, buf_view(&data));
        }
}

/* ---- signs of life of the getter */

static void tell_progress(struct work *w)
{
        int64_t now = now_ms();

        if (w->me)
                worker_beat(w->me, w->now);
        if (!w->p->progress || now - w->told_ms < TELL_MS || w->me)
                return;
        w->told_ms = now;
        w->p->progress(w->p->arg, w->report->bytes + w->now, w->now_size, w->report->files, w->file_count);
}

/* Ends a getter that sends no beat for as long as a store may be silent. A gap between two checks counts as
 * a second at most: this process may have been stopped, and the getter with it. */
static void look_at_getter(struct work *w)
{
        unsigned beats = flow_beats(w->flow);
        int64_t now = now_ms(), passed = now - w->looked_ms;
        int64_t most = (int64_t)(w->config->stall_ms ? w->config->stall_ms : SILENT_MS);

        w->looked_ms = now;
        w->silent_ms = beats != w->beats ? 0 : w->silent_ms + (passed < 1000 ? passed : 1000);
        w->beats = beats;
        if (w->silent_ms <= most)
                return;
        kill(w->getter, SIGKILL);
        waitpid(w->getter, NULL, 0);
        w->getter = 0;
        w->getter_died = w->getter_hung = true;
}

/* 0; -EPIPE: the getter is not there any more; -ETIMEDOUT: this try has taken too long. */
static int placement_alive(void *arg)
{
        struct work *w = arg;
        struct move_answer a;
        int status;

        if (w->flow && !w->getter_died)
                w->now = flow_done(w->flow);
        tell_progress(w);
        if (w->config->alive && w->config->alive(w->config->arg) < 0)
                return -ECANCELED;
        if (now_ms() > w->try_end_ms)
                return -ETIMEDOUT;
        if (w->getter > 0 && waitpid(w->getter, &status, WNOHANG) == w->getter) {
                w->getter = 0;
                w->getter_died = !flow_ended(w->flow, &a);
        }
        if (w->getter > 0)
                look_at_getter(w);
        return w->getter_died ? -EPIPE : 0;
}

/* ---- the getter */

static int getter_alive(void *arg)
{
        flow_beat(arg);
        return 0;
}

/* Makes an unnamed file in the current folder, which is the job's own. */
static int scratch_file(void)
{
        int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd < 0)
                fd = open(P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

__attribute__((noreturn)) static void get_in_child(const struct work *w, const struct move_task *task, int fd,
                                                   pid_t parent)
{
        struct mover_config c = *w->config;
        struct move_answer answer;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
        exchange_forget();
        c.flow = w->flow;
        c.wanted = w->p->wanted;
        c.sums = sums_new(false, c.wanted.type == SUM_MD5);
        c.alive = getter_alive;
        c.arg = w->flow;
        transfer_run(&c, task, fd, &answer);
        flow_end(w->flow, &answer, c.sums);
        _exit(0);
}

/* 0 or -errno. */
static int getter_start(struct work *w, const char *url, int fd, uint64_t window)
{
        struct move_task task;
        pid_t me = getpid();

        w->flow = flow_new(fd, window);
        if (!w->flow)
                return -errno;
        task_make(w, MOVE_GET, url, &task);
        task.summed = w->p->wanted.type == SUM_SHA256;
        if (task.summed)
                hex_read(str_of(w->p->wanted.hex), task.sha256, sizeof(task.sha256));
        w->getter_died = w->getter_hung = false;
        w->now = 0;
        w->beats = 0;
        w->silent_ms = 0;
        w->looked_ms = now_ms();
        fflush(NULL);
        w->getter = fork();
        if (w->getter == 0)
                get_in_child(w, &task, fd, me);
        move_task_deinit(&task);
        return w->getter < 0 ? -errno : 0;
}

static void getter_end(struct work *w)
{
        if (w->getter > 0) {
                kill(w->getter, SIGKILL);
                waitpid(w->getter, NULL, 0);
        }
        w->getter = 0;
        w->getter_died = w->getter_hung = false;
        flow_free(w->flow);
        w->flow = NULL;
}

/* Maps the errno of a move_answer to an outcome. */
static int outcome_of(int error)
{
        return error == ENOENT || error == EPROTONOSUPPORT ? MOVER_REFUSED
               : error == EACCES                           ? MOVER_DENIED
                                                           : MOVER_AGAIN;
}

/* Returns the error with which the getter ended. */
static int getter_failed(struct work *w, int r, struct err *err)
{
        struct move_answer a;

        if (r == -ETIMEDOUT)
                return err_set(err, MOVER_AGAIN, "it took longer than one try may take");
        if (r == -ECANCELED)
                return r;
        if (flow_ended(w->flow, &a) && a.status == MOVE_FAILED)
                return err_set(err, outcome_of(a.error), "%s", a.text);
        if (w->getter_hung)
                return err_set(err, MOVER_AGAIN, "the process that fetched it hung, and was ended");
        if (w->getter_died)
                return err_set(err, MOVER_AGAIN, "the process that fetched it died");
        return err_set(err, MOVER_AGAIN, "%s", strerror(r < 0 ? -r : EIO));
}

/* Reads everything that the getter writes, and discards it. */
static int drain(struct work *w, struct err *err)
{
        uint64_t at = 0;
        long n;

        while ((n = flow_wait(w->flow, at, WINDOW / 4, placement_alive, w)) > 0)
                flow_sent(w->flow, at += (uint64_t)n);
        w->now = at;
        return n < 0 ? getter_failed(w, (int)n, err) : 0;
}

static int read_url(struct work *w, const char *url, char adler[SUMS_TEXT], char sha256[SUMS_TEXT],
                    struct err *err)
{
        int fd = scratch_file(), r = fd < 0 ? fd : getter_start(w, url, fd, WINDOW);

        if (r < 0)
                r = err_set(err, MOVER_AGAIN, "no room for it: %s", strerror(-r));
        else
                r = drain(w, err);
        if (r == 0) {
                flow_sum(w->flow, SUM_ADLER32, adler);
                flow_sum(w->flow, SUM_SHA256, sha256);
        }
        getter_end(w);
        if (fd >= 0)
                close(fd);
        return r;
}

/* ---- asking a store */

static int call_look(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err)
{
        (void)arg;
        return k->look ? k->look(t, err) : err_set(err, MOVER_REFUSED, "nobody can look at it");
}

static int call_remove(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err)
{
        (void)arg;
        return k->remove ? k->remove(t, err)
                         : err_set(err, MOVER_REFUSED, "nothing here removes files there");
}

static int call_make_folder(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err)
{
        (void)arg;
        return k->make_folder ? k->make_folder(t, err)
                              : err_set(err, MOVER_REFUSED, "nothing here makes folders there");
}

/* Calls a back end for a URL; *ret_transfer has the facts found. */
static int at_url(struct work *w, const char *url,
                  int (*call)(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err),
                  void *arg, struct transfer *ret_transfer, struct err *err)
{
        struct mover_config c = *w->config;
        struct move_task task;

        task_make(w, MOVE_PROBE, url, &task);
        c.alive = placement_alive;
        c.arg = w;
        int r = transfer_with(&c, &task, ret_transfer, call, arg, err);
        move_task_deinit(&task);
        return r < 0 ? err_set(err, MOVER_AGAIN, "%s", *err->text ? err->text : strerror(-r)) : r;
}

/* ---- one try of one file by one way */

/* Compares the file at the destination with the file that was read. sent: what its store has said of it
 * already. */
static int compare_end(struct work *w, const char *url, const struct mover_sent *sent, uint64_t size,
                       const char *adler, const char *sha256, struct err *err)
{
        char there_adler[SUMS_TEXT] = "", there_sha[SUMS_TEXT] = "";
        struct transfer t;
        struct err look = {""};

        if (w->p->read_back) {
                int r = read_url(w, url, there_adler, there_sha, err);

                if (r != 0)
                        return r;
                return strcmp(there_adler, adler) != 0 || (*sha256 && strcmp(there_sha, sha256) != 0)
                               ? err_set(err, MOVER_AGAIN, "what was read back is not what was sent")
                               : 0;
        }
        if (sent->looked) {
                t.found.size = sent->size;
                t.named = sent->named;
        } else if (at_url(w, url, call_look, NULL, &t, &look) != 0) {
                return 0; /* the put succeeded, and no store contradicts it */
        }
        if (t.found.size != MOVE_SIZE_ANY && t.found.size != size)
                return err_set(err, MOVER_AGAIN, "the store has %llu bytes of %llu",
                               (unsigned long long)t.found.size, (unsigned long long)size);
        if (t.named.type == SUM_ADLER32 && strcmp(t.named.hex, adler) != 0)
                return err_set(err, MOVER_AGAIN,
                               "the store names the checksum adler32:%s, and adler32:%s was sent",
                               t.named.hex, adler);
        return 0;
}

static int put_size(struct work *w, const char *url, int fd, uint64_t size, struct mover_sent *ret,
                    struct err *err)
{
        struct mover_config c = *w->config;
        struct move_task task;
        struct move_answer answer, got;

        task_make(w, MOVE_PUT, url, &task);
        task.size = size;
        task.tries = size > WINDOW ? 1 : PUT_TRIES;
        c.flow = transfer_streams(&c, url) ? w->flow : NULL;
        c.sent = ret;
        c.alive = placement_alive;
        c.arg = w;
        transfer_run(&c, &task, fd, &answer);
        move_task_deinit(&task);
        if (answer.status == MOVE_DONE)
                return 0;
        flow_stop(w->flow);
        if (w->getter_died || (flow_ended(w->flow, &got) && got.status == MOVE_FAILED) ||
            answer.error == ETIMEDOUT)
                return getter_failed(w, answer.error == ETIMEDOUT ? -ETIMEDOUT : -EPIPE, err);
        return err_set(err, outcome_of(answer.error), "%s", answer.text);
}

/* Waits until the whole file is here. */
static int wait_for_all(struct work *w, uint64_t *ret_size)
{
        struct move_answer a;
        long n = 1;

        while (!flow_ended(w->flow, &a) && n > 0)
                n = flow_wait(w->flow, UINT64_MAX - 1, 1, placement_alive, w);
        if (n < 0)
                return (int)n;
        if (!flow_ended(w->flow, &a) || a.status != MOVE_DONE)
                return -EPIPE;
        *ret_size = a.size;
        return 0;
}

static void give_back_claim(struct work *w)
{
        atomic_fetch_sub(w->claimed, w->claim);
        w->claim = 0;
        if (w->me)
                atomic_store(&w->me->claim, 0);
}

/* Refuses a file by which the job would write more than it has claimed in the store. */
static int fits(struct work *w, uint64_t size, struct err *err)
{
        uint64_t most = w->p->space;

        if (!most || size == MOVE_SIZE_ANY)
                return 0;
        give_back_claim(w);
        uint64_t done = atomic_fetch_add(w->claimed, size);
        w->claim = size;
        if (w->me)
                atomic_store(&w->me->claim, size);
        if (done <= most && size <= most - done)
                return 0;
        give_back_claim(w);
        return err_set(
                err, MOVER_REFUSED,
                "it has %llu bytes, and the job may write %llu in that store: say how large it is, as in "
                "transfer_output_size = %lluM",
                (unsigned long long)size, (unsigned long long)(done < most ? most - done : 0),
                (unsigned long long)((size >> 20) + 1));
}

/* Records that a file is at its destination. */
static void moved(struct work *w, uint64_t size, const char *adler, const char *sha256)
{
        w->now = size;
        w->report->third_party = false;
        memcpy(w->report->adler32, adler, SUMS_TEXT);
        memcpy(w->report->sha256, sha256, SUMS_TEXT);
}

/* Gets the whole file into *scratch. */
static int get_small(struct work *w, const char *url, struct move_answer *ret, char adler[SUMS_TEXT],
                     struct err *err)
{
        struct mover_config c = *w->config;
        struct move_task task;

        task_make(w, MOVE_GET, url, &task);
        task.summed = w->p->wanted.type == SUM_SHA256;
        if (task.summed)
                hex_read(str_of(w->p->wanted.hex), task.sha256, sizeof(task.sha256));
        c.wanted = w->p->wanted;
        c.sums = sums_new(false, c.wanted.type == SUM_MD5);
        c.alive = placement_alive;
        c.arg = w;
        transfer_run(&c, &task, w->scratch, ret);
        sums_read(c.sums, SUM_ADLER32, adler);
        sums_free(c.sums);
        move_task_deinit(&task);
        return ret->status == MOVE_DONE ? 0 : err_set(err, outcome_of(ret->error), "%s", ret->text);
}

static int put_small(struct work *w, const char *url, uint64_t size, struct mover_sent *ret, struct err *err)
{
        struct mover_config c = *w->config;
        struct move_task task;
        struct move_answer answer;

        task_make(w, MOVE_PUT, url, &task);
        task.size = size;
        task.tries = PUT_TRIES;
        c.whole = true;
        c.sent = ret;
        c.alive = placement_alive;
        c.arg = w;
        transfer_run(&c, &task, w->scratch, &answer);
        move_task_deinit(&task);
        return answer.status == MOVE_DONE ? 0 : err_set(err, outcome_of(answer.error), "%s", answer.text);
}

/* A process for each of many small files would cost more than moving them, and so would its connections. */
static int move_small(struct work *w, const struct pair *f, struct err *err)
{
        char adler[SUMS_TEXT] = "", sha256[SUMS_TEXT] = "";
        struct mover_sent sent = {0};
        struct move_answer got;

        if (w->scratch < 0)
                w->scratch = scratch_file();
        if (w->scratch < 0)
                return err_set(err, MOVER_AGAIN, "no room for it here: %s", strerror(-w->scratch));
        int r = get_small(w, f->src, &got, adler, err);
        if (r == 0)
                r = fits(w, got.size, err);
        if (r == 0)
                r = put_small(w, f->dest, got.size, &sent, err);
        if (r != 0)
                return r;
        hex_print(sha256, got.sha256, sizeof(got.sha256));
        r = compare_end(w, f->dest, &sent, got.size, adler, sha256, err);
        if (r == 0)
                moved(w, got.size, adler, sha256);
        return r;
}

static int stream(struct work *w, const struct pair *f, struct err *err)
{
        char adler[SUMS_TEXT] = "", sha256[SUMS_TEXT] = "";
        uint64_t size = MOVE_SIZE_ANY;
        struct mover_sent sent = {0};
        bool at_once = transfer_streams(w->config, f->dest);
        int fd = scratch_file(),
            r = fd < 0 ? fd : getter_start(w, f->src, fd, at_once ? WINDOW : UINT64_MAX / 2);

        if (r < 0)
                r = err_set(err, MOVER_AGAIN, "no room for it here: %s", strerror(-r));
        else
                r = flow_size(w->flow, &size, placement_alive, w);
        if (r == 0 && (size == MOVE_SIZE_ANY || !at_once))
                r = wait_for_all(w, &size);
        w->now_size = size;
        if (r < 0)
                r = getter_failed(w, r, err);
        else if (r == 0)
                r = fits(w, size, err);
        if (r == 0)
                r = put_size(w, f->dest, fd, size, &sent, err);
        if (r == 0 && size == 0) { /* no byte was requested, so nothing has waited for the getter's end */
                struct err why = {""};

                r = drain(w, &why);
                if (r != 0)
                        *err = why;
        }
        if (r == 0) {
                flow_sum(w->flow, SUM_ADLER32, adler);
                flow_sum(w->flow, SUM_SHA256, sha256);
        }
        getter_end(w);
        if (fd >= 0)
                close(fd);
        if (r == 0)
                r = compare_end(w, f->dest, &sent, size, adler, sha256, err);
        if (r == 0)
                moved(w, size, adler, sha256);
        return r;
}

/* ---- from server to server */

static void on_moved(void *arg, uint64_t bytes)
{
        struct work *w = arg;

        w->now = bytes;
        tell_progress(w);
}

static int call_pull(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err)
{
        return k->pull ? k->pull(t, arg, err) : err_set(err, MOVER_REFUSED, "its server copies nothing");
}

static bool is_web(const char *url)
{
        return curl_scheme_in("http,https,dav,davs", mover_scheme(str_of(url)));
}

/* Returns whether the store of a URL has named no checksum of an earlier file. */
static bool is_unsummed(const struct work *w, const char *url)
{
        MEM_CLEANUP char *host = w->unsummed ? curl_url_host(url) : NULL;

        return host && !strcmp(host, w->unsummed);
}

/* Returns whether one program is for both ends. */
static bool same_program(const struct mover_config *c, const struct pair *f)
{
        const char *from = mover_program_of(c, mover_scheme(str_of(f->src))),
                   *to = mover_program_of(c, mover_scheme(str_of(f->dest)));

        return from && to && !strcmp(from, to);
}

/* Returns whether the transfer may go from server to server. A credential is sent to the other server only
 * if its owner allows it. A sha256 or md5 that the author gives is compared when the copy is read back. */
static bool may_pull(const struct work *w, const struct pair *f)
{
        MEM_CLEANUP char *url = plain_url(f->src);
        const struct placement_credential *c = credential_for(w->p, url);
        bool read_here =
                !w->p->read_back && (w->p->wanted.type == SUM_SHA256 || w->p->wanted.type == SUM_MD5);

        if (w->p->third == THIRD_NEVER || read_here)
                return false;
        if (w->p->third == THIRD_AUTO && (f->size <= SMALL || is_unsummed(w, f->src)))
                return false;
        if (same_program(w->config, f))
                return !c || c == credential_for(w->p, f->dest); /* the program is shown one credential */
        return is_web(f->src) && is_web(f->dest) &&
               (!c || (w->p->third == THIRD_ALWAYS && !strcmp(c->type, "token") &&
                       str_istarts(str_of(url), STR("https://"))));
}

static int pull_once(struct work *w, const struct pair *f, struct mover_pull *p, struct err *err)
{
        MEM_CLEANUP char *above = mem_dup(f->dest, strlen(f->dest) - last_part(str_of(f->dest)).n);
        struct err again = {""};
        struct transfer t;
        int r = at_url(w, f->dest, call_pull, p, &t, err);

        if (r == 0 || at_url(w, above, call_make_folder, NULL, &t, &again) != 0)
                return r;
        return at_url(w, f->dest, call_pull, p, &t, err); /* the folder may have been missing */
}

/* Takes the checksums of the copy here, whatever its server says. What is wrong is removed. */
static int read_copy(struct work *w, const char *url, const char *adler32, struct err *err)
{
        char adler[SUMS_TEXT] = "", sha256[SUMS_TEXT] = "";
        struct err gone = {""};
        struct transfer t;
        int r = read_url(w, url, adler, sha256, err);

        if (r == 0 && strcmp(adler, adler32) != 0)
                r = err_set(err, MOVER_AGAIN, "what was read back has the adler32 %s, and should have %s",
                            adler, adler32);
        if (r == 0)
                memcpy(w->report->sha256, sha256, SUMS_TEXT);
        else if (r > 0)
                at_url(w, url, call_remove, NULL, &t, &gone);
        return r;
}

/* 0: the file is there, by its server's word and checksum. Else the bytes have to go through here. */
static int placement_pull(struct work *w, const struct pair *f, struct err *err)
{
        MEM_CLEANUP char *source = plain_url(f->src);
        const struct placement_credential *c = credential_for(w->p, source);
        SECRET_CLEANUP struct buf token = {.max = MOVE_CREDENTIAL_MAX}, header = {0};
        struct mover_pull p = {.source = source, .told = on_moved, .arg = w};
        struct transfer from;
        int r = at_url(w, f->src, call_look, NULL, &from, err);

        if (r != 0)
                return r;
        if (from.named.type != SUM_ADLER32 && !w->unsummed)
                w->unsummed = curl_url_host(f->src);
        if (from.named.type != SUM_ADLER32 || from.found.size == MOVE_SIZE_ANY)
                return err_set(err, MOVER_REFUSED,
                               "its store names no checksum, by which a copy could be compared");
        if (w->p->wanted.type == SUM_ADLER32 && strcmp(from.named.hex, w->p->wanted.hex) != 0)
                return err_set(err, MOVER_AGAIN, "its store names the adler32 %s, and it should be %s",
                               from.named.hex, w->p->wanted.hex);
        if (c && credential_read(c, &token)) {
                buf_printf(&header, "Bearer " STR_FMT, STR_ARG(str_trim(buf_view(&token))));
                p.header = buf_z(&header);
        }
        r = fits(w, from.found.size, err);
        if (r != 0)
                return r;
        p.size = w->now_size = from.found.size;
        p.sum = from.named;
        r = pull_once(w, f, &p, err);
        w->report->sha256[0] = 0;
        if (r == 0 && w->p->read_back)
                r = read_copy(w, f->dest, from.named.hex, err);
        if (r != 0)
                return r;
        w->now = from.found.size;
        w->report->third_party = true;
        memcpy(w->report->adler32, from.named.hex, SUMS_TEXT);
        return 0;
}

/* Removes a file, and finds out how many bytes that frees. */
static int remove_file(struct work *w, const char *url, struct err *err)
{
        struct transfer t;
        struct err look = {""};
        uint64_t size = w->p->space && at_url(w, url, call_look, NULL, &t, &look) == 0 &&
                                        t.found.size != MOVE_SIZE_ANY
                                ? t.found.size
                                : 0;
        int r = at_url(w, url, call_remove, NULL, &t, err);

        if (r == 0)
                w->now = size;
        return r;
}

static int call_space(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err)
{
        return k->space ? k->space(t, arg, err) : err_set(err, MOVER_REFUSED, "nobody knows its space");
}

/* A store that does not say how much is free has it. */
static int reserve(struct work *w, const char *url, struct err *err)
{
        struct transfer t;
        uint64_t left = 0;
        int r = at_url(w, url, call_space, &left, &t, err);

        if (r != 0 || left >= w->p->space)
                return r == MOVER_REFUSED ? 0 : r;
        return err_set(err, MOVER_AGAIN, "the store has %llu MiB free, and %llu are to be reserved",
                       (unsigned long long)(left >> 20), (unsigned long long)(w->p->space >> 20));
}

static int try_pair(struct work *w, const struct pair *f, struct err *err)
{
        struct transfer t;
        int r;

        switch (w->p->op) {
        case PLACEMENT_RM: return remove_file(w, f->src, err);
        case PLACEMENT_RESERVE: return reserve(w, f->src, err);
        case PLACEMENT_RELEASE: return 0;
        case PLACEMENT_MKDIR: return at_url(w, f->src, call_make_folder, NULL, &t, err);
        case PLACEMENT_STAGE:
        case PLACEMENT_VERIFY: return read_url(w, f->src, w->report->adler32, w->report->sha256, err);
        case PLACEMENT_TRANSFER: break;
        }
        if (may_pull(w, f)) {
                struct err why = {""};

                r = placement_pull(w, f, &why);
                if (r == 0)
                        return 0;
        }
        /* other stores make missing parent folders, too */
        if (str_istarts(str_of(f->dest), STR("file://"))) {
                MEM_CLEANUP char *above = mem_dup(f->dest, strlen(f->dest) - last_part(str_of(f->dest)).n);

                r = at_url(w, above, call_make_folder, NULL, &t, err);
                if (r != 0)
                        return r;
        }
        return f->size <= SMALL ? move_small(w, f, err) : stream(w, f, err);
}

/* ---- the ways to one file */

/* Returns the URL with another scheme. */
static char *with_scheme(const char *url, struct str scheme)
{
        struct buf b = {0};
        const char *rest = url ? strstr(url, "://") : NULL;

        if (!rest)
                return mem_dupz(url);
        buf_str(&b, scheme);
        buf_addz(&b, rest);
        return buf_take(&b);
}

struct ways {
        struct pair v[PLACEMENT_WAYS_MAX];
        bool dead[PLACEMENT_WAYS_MAX];
        size_t n;
};

static void add_way(struct ways *ways, char *src, char *dest, uint64_t size)
{
        bool there = ways->n == PLACEMENT_WAYS_MAX;

        for (size_t i = 0; i < ways->n && !there; i++)
                there = !strcmp(src, ways->v[i].src) && (!dest || !strcmp(dest, ways->v[i].dest));
        if (there) {
                free(src);
                free(dest);
        } else {
                ways->v[ways->n++] = (struct pair){src, dest, size};
        }
}

static bool is_any(const char *url)
{
        return url && str_istarts(str_of(url), STR("any://"));
}

/* Adds the ways of an any:// URL: every protocol, first those that are the same at both ends. */
static void add_any(const struct work *w, struct ways *ways, const struct pair *f)
{
        struct str schemes[16];
        size_t n = 0;
        struct str rest = STR("https,http,ftp,sftp"), one;

        while (str_cut(&rest, ',', &one))
                schemes[n++] = one;
        for (size_t i = 0; i < w->config->exec_count && n < 16; i++)
                schemes[n++] = str_of(w->config->execs[i].scheme);
        for (int same = 1; same >= 0; same--)
                for (size_t i = 0; i < n; i++)
                        for (size_t k = 0; k < n; k++)
                                if ((i == k) == same)
                                        add_way(ways,
                                                is_any(f->src) ? with_scheme(f->src, schemes[i])
                                                               : mem_dupz(f->src),
                                                is_any(f->dest) ? with_scheme(f->dest, schemes[k])
                                                                : mem_dupz(f->dest),
                                                f->size);
}

static void ways_make(const struct work *w, struct ways *ways, const struct pair *f)
{
        struct str rest = str_of(w->p->alternatives ? w->p->alternatives : ""), one;
        bool any = is_any(f->src) || is_any(f->dest);

        ways->n = 0;
        memset(ways->dead, 0, sizeof(ways->dead));
        if (!any)
                add_way(ways, mem_dupz(f->src), mem_dupz(f->dest), f->size);
        while (str_cut(&rest, ',', &one)) {
                struct str to = str_trim(one), from;

                if (str_cut(&to, '-', &from) && from.n && to.n)
                        add_way(ways, with_scheme(f->src, str_trim(from)), with_scheme(f->dest, str_trim(to)),
                                f->size);
        }
        if (any)
                add_any(w, ways, f);
}

static void ways_free(struct ways *ways)
{
        for (size_t i = 0; i < ways->n; i++) {
                free(ways->v[i].src);
                free(ways->v[i].dest);
        }
}

static bool shows_something(const struct work *w, const struct pair *f)
{
        MEM_CLEANUP char *src = plain_url(f->src), *dest = f->dest ? plain_url(f->dest) : NULL;

        return credential_for(w->p, src) || (dest && credential_for(w->p, dest));
}

/* Tries each way that is not known to fail once. Returns 0; MOVER_AGAIN, or an outcome that no other way
 * will change. */
static int try_ways(struct work *w, struct ways *ways, struct err *err)
{
        int worst = MOVER_REFUSED;

        for (size_t i = 0; i < ways->n; i++) {
                struct err one = {""};

                if (ways->dead[i])
                        continue;
                int r = try_pair(w, &ways->v[i], &one);
                if (r == 0) {
                        MEM_CLEANUP char *shown = move_url_shown(ways->v[i].src);

                        snprintf(w->report->way, sizeof(w->report->way), "%s", shown);
                        MEM_CLEANUP char *there = move_url_shown(ways->v[i].dest ? ways->v[i].dest : "");
                        snprintf(w->report->to, sizeof(w->report->to), "%s", there);
                        return 0;
                }
                if (r == -ECANCELED)
                        return r;
                ways->dead[i] = r == MOVER_REFUSED || r == MOVER_DENIED;
                w->refused |= r == MOVER_DENIED && shows_something(w, &ways->v[i]);
                worst = ways->dead[i] ? worst : MOVER_AGAIN;
                if (!*err->text || !ways->dead[i])
                        *err = one;
        }
        return worst;
}

static int placement_pause_for(struct work *w, uint64_t ms)
{
        int64_t end = now_ms() + (int64_t)ms;
        int r = 0;

        w->try_end_ms = INT64_MAX;
        while (r == 0 && now_ms() < end) {
                poll(NULL, 0, 100);
                r = placement_alive(w);
        }
        return r;
}

static bool time_left(const struct work *w, uint64_t wait)
{
        return !w->p->limit_ms || now_ms() + (int64_t)wait < w->began_ms + (int64_t)w->p->limit_ms;
}

/* Removes temporary files of killed attempts. The tag of the n-th attempt ends in -n. */
static void remove_left(struct work *w, const struct pair *f)
{
        const char *tag = w->p->tag, *dash = strrchr(tag, '-');
        uint64_t n;
        struct err err = {""};
        struct transfer t;

        if (!f->dest || !dash || str_to_u64(str_of(dash + 1), &n) != 0)
                return;
        for (uint64_t i = n > LEFT_MAX ? n - LEFT_MAX : 1; i < n; i++) {
                BUF_CLEANUP struct buf url = {0};

                buf_printf(&url, "%s.drover-%.*s-%llu.tmp", f->dest, (int)(dash - tag), tag,
                           (unsigned long long)i);
                at_url(w, buf_z(&url), call_remove, NULL, &t, &err);
        }
}

static int do_file(struct work *w, const struct pair *f, struct err *err)
{
        uint32_t tries = w->p->tries ? w->p->tries : TRIES, n = 0;
        uint64_t wait = w->config->retry_ms ? w->config->retry_ms : RETRY_MS;
        struct ways ways;
        int r = MOVER_AGAIN;

        ways_make(w, &ways, f);
        w->try_end_ms = w->p->try_ms ? now_ms() + (int64_t)w->p->try_ms : INT64_MAX;
        for (size_t i = 0; i < ways.n; i++)
                remove_left(w, &ways.v[i]);
        while (r == MOVER_AGAIN && n < tries && (n == 0 || time_left(w, wait))) {
                struct err one = {""};

                if (n++ > 0 && (r = placement_pause_for(w, wait)) < 0)
                        break;
                wait = n < 2 ? wait : wait * 2 > LATER_MS ? LATER_MS : wait * 2;
                int64_t now = now_ms();
                w->try_end_ms = w->p->try_ms ? now + (int64_t)w->p->try_ms : INT64_MAX;
                if (w->p->limit_ms && w->began_ms + (int64_t)w->p->limit_ms < w->try_end_ms)
                        w->try_end_ms = w->began_ms + (int64_t)w->p->limit_ms;
                r = try_ways(w, &ways, &one);
                if (r != 0)
                        *err = one;
        }
        w->report->tries += n;
        if (r != 0 && n > 1) {
                struct err once = *err;

                err_set(err, r, "%s (tried %u times)", once.text, n);
        }
        ways_free(&ways);
        return r;
}

/* ---- which files */

static void add_file(struct work *w, char *src, char *dest, uint64_t size)
{
        MEM_GROW(w->files, w->file_cap, w->file_count + 1);
        w->files[w->file_count++] = (struct pair){src, dest, size};
}

struct listing {
        struct work *w;
        const char *pattern; /* NULL: every file and folder */
        const char *src, *dest;
        char **folders;
        size_t folder_count, folder_cap;
        bool full;
};

static int call_list(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err);

/* Names are escaped as they stand in URLs, but for those that are no URLs to their back end. */
static void add_name(struct buf *b, struct str name)
{
        for (size_t i = 0; i < name.n; i++) {
                unsigned char c = (unsigned char)name.p[i];

                if (c <= ' ' || c >= 127 || strchr("%#?\"<>[]\\^`{|}*", c))
                        buf_printf(b, "%%%02X", c);
                else
                        buf_char(b, (char)c);
        }
}

static void on_listed(void *arg, struct str name, bool folder, uint64_t size)
{
        struct listing *l = arg;
        BUF_CLEANUP struct buf escaped = {0};
        MEM_CLEANUP char *z = str_dupz(name);
        struct buf src = {0}, dest = {0};

        if (l->pattern && (folder || fnmatch(l->pattern, z, FNM_PERIOD) != 0))
                return;
        l->full |= l->w->file_count + l->folder_count >= FILES_MAX;
        if (l->full)
                return;
        add_name(&escaped, name);
        if (folder) {
                MEM_GROW(l->folders, l->folder_cap, l->folder_count + 1);
                l->folders[l->folder_count++] = str_dupz(buf_view(&escaped));
                return;
        }
        buf_printf(&src, "%s%s", l->src, buf_z(&escaped));
        if (l->dest)
                buf_printf(&dest, "%s%s", l->dest, buf_z(&escaped));
        add_file(l->w, buf_take(&src), l->dest ? buf_take(&dest) : NULL, size);
        buf_deinit(&dest);
}

static int call_list(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err)
{
        return k->list ? k->list(t, on_listed, arg, err)
                       : err_set(err, MOVER_REFUSED, "nothing here lists its folders");
}

/* Lists a folder into pairs. src and dest end with a slash; dest may be NULL. */
static int placement_list_folder(struct work *w, const char *src, const char *dest, const char *pattern,
                                 int depth, struct err *err)
{
        struct listing l = {.w = w, .pattern = pattern, .src = src, .dest = dest};
        struct transfer t;
        struct err why = {""};
        int r = depth > DEPTH_MAX ? err_set(&why, MOVER_REFUSED, "folders are more than %d deep", DEPTH_MAX)
                                  : at_url(w, src, call_list, &l, &t, &why);

        if (r == 0 && l.full)
                r = err_set(&why, MOVER_REFUSED, "it has more than %u files", FILES_MAX);
        if (r != 0) {
                MEM_CLEANUP char *shown = move_url_shown(src);

                err_set(err, r, "cannot list %.300s: %.600s", shown, why.text);
        }
        for (size_t i = 0; i < l.folder_count; i++) {
                BUF_CLEANUP struct buf from = {0}, to = {0};

                buf_printf(&from, "%s%s/", src, l.folders[i]);
                if (dest)
                        buf_printf(&to, "%s%s/", dest, l.folders[i]);
                if (r == 0)
                        r = placement_list_folder(w, buf_z(&from), dest ? buf_z(&to) : NULL, NULL, depth + 1,
                                                  err);
                free(l.folders[i]);
        }
        free(l.folders);
        return r;
}

/* The files that src means. */
static int find_files(struct work *w, struct err *err)
{
        const char *src = w->p->src, *dest = w->p->op == PLACEMENT_TRANSFER ? w->p->dest : NULL;
        struct str last = last_part(str_of(src));
        MEM_CLEANUP char *pattern = str_dupz(last),
                         *above = str_dupz(str_head(str_of(src), strlen(src) - last.n));
        bool to_folder = dest && str_ends(str_of(dest), STR("/"));

        if (w->p->op == PLACEMENT_MKDIR || w->p->op == PLACEMENT_RESERVE || w->p->op == PLACEMENT_RELEASE) {
                add_file(w, mem_dupz(src), NULL, MOVE_SIZE_ANY);
                return 0;
        }
        if ((strpbrk(pattern, "*[") && !strchr(pattern, '?')) ||
            last.n == 0) { /* a question mark would begin a query */
                if (dest && !to_folder)
                        return err_set(err, MOVER_REFUSED,
                                       "several files go into a folder: write a slash at the end of %.300s",
                                       dest);
                if (w->p->op == PLACEMENT_RM && last.n == 0)
                        return err_set(
                                err, MOVER_REFUSED,
                                "folders are not removed with what is in them; %.300s* means its files", src);
                int r = placement_list_folder(w, above, dest, last.n ? pattern : NULL, 0, err);
                return r == 0 && last.n && w->file_count == 0
                               ? err_set(err, MOVER_REFUSED, "no file of %.300s fits %.200s", above, pattern)
                               : r;
        }
        struct buf whole = {0};
        if (to_folder)
                buf_printf(&whole, "%s%s", dest, pattern);
        add_file(w, mem_dupz(src), to_folder ? buf_take(&whole) : mem_dupz(dest), MOVE_SIZE_ANY);
        return 0;
}

static int find_all(struct work *w, struct err *err)
{
        uint32_t tries = w->p->tries ? w->p->tries : TRIES;
        uint64_t wait = w->config->retry_ms ? w->config->retry_ms : RETRY_MS;
        int r;

        for (uint32_t n = 1;; n++, wait *= 2) {
                r = find_files(w, err);
                if (r != MOVER_AGAIN || n == tries || !time_left(w, wait) || placement_pause_for(w, wait) < 0)
                        return r;
                for (size_t i = 0; i < w->file_count; i++) {
                        free(w->files[i].src);
                        free(w->files[i].dest);
                }
                w->file_count = 0;
        }
}

/* Does the n-th file. Returns 0, or an outcome. */
static int do_nth(struct work *w, size_t n, struct err *err)
{
        w->now = 0;
        w->now_size = w->files[n].size;
        w->claim = 0;
        int r = do_file(w, &w->files[n], err);
        if (r != 0)
                give_back_claim(w);
        return r;
}

/* One after the other; an error of this machine ends it. */
static void do_all(struct work *w, struct workers_report *ret)
{
        int r = 0;

        for (size_t i = 0; i < w->file_count && r >= 0; i++) {
                struct err err = {""};

                r = do_nth(w, i, &err);
                if (r == 0) {
                        w->report->files++;
                        w->report->bytes += w->now;
                        continue;
                }
                ret->again |= r < 0 || r == MOVER_AGAIN;
                ret->refused |= r > 0 && r != MOVER_AGAIN;
                if (ret->failed++ == 0)
                        ret->first = err;
        }
        ret->denied = w->refused;
}

/* ---- several at a time */

static int work_on(void *arg, struct worker *me, struct workers_sum *sum, size_t item, struct err *err)
{
        struct work *w = arg;
        uint32_t tries = w->report->tries;

        if (!w->me) { /* the first one of this process */
                exchange_forget();
                w->me = me;
                w->claimed = &sum->claimed;
        }
        w->refused = false;
        int r = do_nth(w, item, err);
        atomic_fetch_add(&sum->tries, w->report->tries - tries);
        if (r == 0)
                atomic_fetch_add(&sum->bytes, w->now);
        if (w->refused)
                atomic_store(&sum->denied, true);
        return r;
}

static int while_they_work(void *arg, uint64_t bytes, uint64_t done)
{
        struct work *w = arg;

        w->now = bytes;
        w->report->files = done;
        return placement_alive(w);
}

/* The size of all files, as their listings say. */
static uint64_t size_of_all(const struct work *w)
{
        uint64_t size = 0;

        for (size_t i = 0; i < w->file_count; i++)
                if (w->files[i].size == MOVE_SIZE_ANY)
                        return MOVE_SIZE_ANY;
                else
                        size += w->files[i].size;
        return size;
}

/* Files at the same time, as the configuration says: no more than either end may have. 0: it says nothing. */
static unsigned streams_of(const struct mover_config *c, const struct placement *p)
{
        MEM_CLEANUP char *src = plain_url(p->src), *dest = plain_url(p->dest ? p->dest : "");
        const struct tuning *a = tuning_of(c->tunings, c->tuning_count, str_of(src)),
                            *b = tuning_of(c->tunings, c->tuning_count, str_of(dest));
        unsigned x = a ? a->streams : 0, y = b ? b->streams : 0;

        return x && y ? (x < y ? x : y) : x + y;
}

static void do_side_by_side(struct work *w, unsigned streams, bool fixed, struct workers_report *ret)
{
        const struct workers_spec spec = {.count = w->file_count,
                                          .most = streams < w->file_count ? streams : (unsigned)w->file_count,
                                          .fixed = fixed,
                                          .silent_ms =
                                                  w->config->stall_ms ? 2 * w->config->stall_ms : SILENT_MS,
                                          .work = work_on,
                                          .alive = while_they_work,
                                          .arg = w};

        w->now_size = size_of_all(w);
        int r = workers_run(&spec, ret);

        w->now = 0;
        w->report->bytes = ret->bytes;
        w->report->files = ret->done;
        w->report->tries += (uint32_t)ret->tries;
        w->report->streams = ret->last;
        w->report->tried_count = ret->tried_count;
        memcpy(w->report->tried, ret->tried, sizeof(ret->tried));
        if (r < 0 && !ret->failed++) {
                ret->again = true;
                err_set(&ret->first, r, "%s", strerror(-r));
        }
}

/* Waits until the names of files that were moved onto this machine are on its disk, as their bytes are. */
static int sync_names(const struct work *w)
{
        MEM_CLEANUP char *last = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && i < w->file_count; i++) {
                const char *dest = w->files[i].dest;
                MEM_CLEANUP char *path =
                        dest && str_istarts(str_of(dest), STR("file://")) ? curl_url_path(dest) : NULL;
                char *slash = path ? strrchr(path, '/') : NULL;

                if (!slash)
                        continue;
                slash[slash == path] = 0;
                if (last && !strcmp(last, path))
                        continue;
                r = curl_sync_folder(AT_FDCWD, path);
                free(last);
                last = mem_dupz(path);
        }
        return r;
}

void placement_run(const struct mover_config *c, const struct placement *p, struct placement_report *ret)
{
        atomic_uint_fast64_t claimed = 0;
        struct work w = {.config = c,
                         .p = p,
                         .report = ret,
                         .began_ms = now_ms(),
                         .told_ms = now_ms(),
                         .try_end_ms = INT64_MAX,
                         .claimed = &claimed,
                         .scratch = -1};
        unsigned fixed = streams_of(c, p), streams = fixed ? fixed : STREAMS;
        struct workers_report done = {0};
        int r;

        *ret = (struct placement_report){0};
        w.now_size = MOVE_SIZE_ANY;
        r = find_all(&w, &done.first);
        if (r != 0)
                *(r == MOVER_AGAIN ? &done.again : &done.refused) = true;
        else if (w.file_count > 1 && streams > 1)
                do_side_by_side(&w, streams, fixed != 0, &done);
        else
                do_all(&w, &done);
        if (!done.again && !done.refused && (r = sync_names(&w)) < 0) {
                done.again = true;
                done.failed = w.file_count;
                err_set(&done.first, r, "the names of the files cannot be written: %s", strerror(-r));
        }
        ret->result = done.again ? PLACEMENT_TEMPORARY : done.refused ? PLACEMENT_FAILED : PLACEMENT_DONE;
        ret->denied = ret->result == PLACEMENT_FAILED && (done.denied || w.refused);
        ret->took_ms = now_ms() - w.began_ms;
        if (ret->result != PLACEMENT_DONE && w.file_count > 1)
                snprintf(ret->text, sizeof(ret->text), "%zu of %zu files: %.900s", done.failed, w.file_count,
                         done.first.text);
        else if (ret->result != PLACEMENT_DONE)
                snprintf(ret->text, sizeof(ret->text), "%.1000s", done.first.text);
        for (size_t i = 0; i < w.file_count; i++) {
                free(w.files[i].src);
                free(w.files[i].dest);
        }
        free(w.files);
        free(w.unsummed);
        if (w.scratch >= 0)
                close(w.scratch);
}
