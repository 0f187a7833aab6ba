/* A few transfers run at a time, each in a slot with a file of its own in the queue's folder: the archive
 * that is sent or has come. Packing and unpacking are commands, sending and fetching are requests of another
 * client than that of the queue's questions, which need not wait for them. Everything small (leases, signals,
 * the look for a begin, removing) is one request of each sort at a time. */
#include "run/batch/sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/batch/acts.h"
#include "run/batch/calls.h"
#include "run/batch/state.h"
#include "run/call/answer.h"

#define COPY_MS  3600000 /* time limit for a task's files, of any size */
#define SMALL_MS 60000
#define RETRY_MS 5000
#define TRIES    5 /* tries to send or fetch a task's files, besides those without an answer */
/* A fetch is costly that fails after so many bytes, or brings no end of the task: the time until the next one
 * doubles with each. */
#define COSTLY_BYTES (16u << 20)
#define COSTLY_TRIES 10
#define SAID_MAX     300
#define CLEAN_MAX    65536 /* bytes of ids of jobs to be removed; the others are listed again */
#define TRANSFERS    3
#define COMES_AS     "drover.out" /* the archive that the script leaves in the job's folder */

struct transfer {
        struct sessions *all;
        struct run_id id;
        struct command *command; /* NULL: the slot is free */
        bool push;
        int fd; /* of the slot's file; -1: not open */
};

enum small { LEASE, ORDER, BEGIN, CLEAN, SMALL_COUNT };

struct sessions {
        struct remote_files base;
        struct batch *b;
        struct requests *requests;
        char *here, *queue; /* the agent's folder; the queue's folder beneath it */
        struct transfer transfers[TRANSFERS];
        struct command *small[SMALL_COUNT];
        struct run_id looked_for; /* whose begin is looked for */
        struct buf orders;        /* paths of order files here, each ended by a newline */
        struct buf clean;         /* ids of jobs to be removed, parted by blanks */
        struct buf cleaning;      /* those of the request in progress */
        int64_t clean_ms;         /* boot clock, from when the next such request may be made */
};

static struct sessions *sessions_of(const struct batch *b)
{
        return (struct sessions *)(void *)b->remote;
}

static void sessions_failed(const struct sessions *r, const char *what, struct str errors)
{
        log_warn("msg=\"files of a computing element\" queue=%s what=%s error=\"%s\"", r->b->queue, what,
                 LOG_TEXT(str_head(str_trim(errors), SAID_MAX)));
}

static struct task *session_task(const struct sessions *r, struct run_id id)
{
        struct task *t = map_get(r->b->table.tasks, run_key(&id));

        return t && t->state == TASK_IN ? t : NULL;
}

/* Adds the path of a request for a file in the job's folder. */
static void add_file(const struct sessions *r, const struct task *t, struct str name, struct args *paths)
{
        BUF_CLEANUP struct buf native = {0}, path = {0};

        batch_native_key(r->b, t, &native);
        r->b->system->file_path(&r->b->settings, buf_view(&native), name, &path);
        args_add(paths, buf_view(&path));
}

static struct command *small_request(struct sessions *r, const char *method, const struct args *paths,
                                     struct str body, int64_t timeout_ms, command_done_fn *done, void *arg)
{
        return request_run(r->requests,
                           &(struct request_spec){.method = method,
                                                  .paths = paths,
                                                  .body = body,
                                                  .type = "application/octet-stream",
                                                  .kind = REQUEST_TEXT,
                                                  .timeout_ms = timeout_ms},
                           done, arg);
}

/* ---- transfers */

static void slot_name(const struct transfer *x, const char *end, struct buf *out)
{
        buf_printf(out, "session.%u%s", (unsigned)(x - x->all->transfers), end);
}

static void transfer_end(struct transfer *x)
{
        BUF_CLEANUP struct buf name = {0};

        if (x->fd >= 0)
                close(x->fd);
        x->fd = -1;
        x->command = NULL;
        slot_name(x, ".tar", &name);
        unlinkat(x->all->b->fd, buf_z(&name), 0);
}

/* Returns whether much of an archive had come, which may be too large, or be cut off each time. */
static bool was_costly(const struct transfer *x)
{
        struct stat st;

        return !x->push && x->fd >= 0 && fstat(x->fd, &st) == 0 && st.st_size >= COSTLY_BYTES;
}

static void fetch_later(struct task *t)
{
        if (t->costly_fetches < COSTLY_TRIES)
                t->costly_fetches++;
        t->retry_ms = clock_boot_ms() + RETRY_MS + (RETRY_MS << t->costly_fetches);
}

/* Ends a transfer that has failed. It is tried again later; a task of which that was tried too often is lost.
 * Tries without an answer do not count, since the element will answer again, or its jobs are given up with
 * the lease. */
static void transfer_failed(struct transfer *x, int status, struct str errors)
{
        struct sessions *r = x->all;
        struct task *t = session_task(r, x->id);
        BUF_CLEANUP struct buf text = {0};
        bool costly = was_costly(x);

        transfer_end(x);
        if (!t)
                return; /* it was ended meanwhile */
        sessions_failed(r, x->push ? "send" : "fetch", errors);
        t->retry_ms = clock_boot_ms() + RETRY_MS;
        if (costly)
                fetch_later(t);
        if ((status < 0 || ++t->fetches < TRIES) && t->costly_fetches < COSTLY_TRIES)
                return;
        buf_printf(&text,
                   "its files could not be %s the computing element: ", x->push ? "sent to" : "fetched from");
        answer_clean(&text, str_head(str_trim(errors), SAID_MAX));
        batch_act_unasked(r->b, t, BATCH_END);
        batch_over(r->b, t, &(struct run_event){.state = RUN_LOST}, buf_z(&text));
}

static int open_slot(struct transfer *x, int flags, uint64_t *ret_size)
{
        BUF_CLEANUP struct buf name = {0};
        struct stat st = {0};

        slot_name(x, ".tar", &name);
        x->fd = openat(x->all->b->fd, buf_z(&name), flags | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (x->fd < 0 || fstat(x->fd, &st) < 0)
                return -errno;
        *ret_size = (uint64_t)st.st_size;
        return 0;
}

/* Runs a script of the shell with the agent's folder as $0. */
static void run_script(struct transfer *x, struct str script, struct str input, command_done_fn *done)
{
        ARGS_CLEANUP struct args argv = {0};

        args_add(&argv, STR("/bin/sh"));
        args_add(&argv, STR("-c"));
        args_add(&argv, script);
        args_add(&argv, str_of(x->all->here));
        x->command = command_run(x->all->b->loop, &argv, NULL, input, COPY_MS, done, x);
}

/* ---- files that go there */

/* Appends the script that unpacks what follows it. It passes on a signal that asks it to end, and ends the
 * job when whoever has started it is gone: some systems end only the first process of a job. It ends with 0,
 * since the job's own exit code is in the archive. */
static void unpacker(const struct sessions *r, const struct task *t, struct buf *out)
{
        static const char rest[] =
                "fail() { echo \"$1\" >\"$log\"; pack \"$log\"; exit 0; }\n"
                "pack() { tar -cf " COMES_AS ".new \"$@\" && mv " COMES_AS ".new " COMES_AS "; }\n"
                "umask 077\n"
                "mkdir -p \"$queue\"\n"
                "case $PWD in *[!A-Za-z0-9_.+/@:-]*) fail \"drover: the session directory has a name that "
                "scripts cannot have: $PWD\" ;; esac\n"
                "tail -n +\"$lines\" \"$0\" | tar -xmopf - || fail \"the job's files cannot be unpacked\"\n"
                "for f in \"$queue/$name\".sh \"$queue/$name\".list.* \"$box\"/" BATCH_STEP ".*.sh; do\n"
                "        sed \"s#$here#$PWD#g\" \"$f\" >\"$f.new\" && cat \"$f.new\" >\"$f\" && rm -f "
                "\"$f.new\" || fail \"the job's scripts cannot be written\"\n"
                "done\n"
                "/bin/sh \"$queue/$name.sh\" >\"$log\" 2>&1 &\n"
                "child=$! parent=$PPID\n"
                "trap 'kill -s TERM $child' TERM INT\n"
                "(while sleep 2 && kill -0 $child; do\n"
                "        kill -0 $parent || { kill -s TERM $child; break; }\n"
                "done) >/dev/null 2>&1 &\n"
                "while kill -0 $child 2>/dev/null; do wait $child; done\n"
                "pack \"$box\" \"$log\"\n"
                "exit 0\n";
        unsigned lines = 3; /* the first one behind the two here and those of `rest` */

        for (const char *at = rest; (at = strchr(at, '\n')); at++)
                lines++;
        buf_printf(out, "#!/bin/sh\nhere='%s' queue='%s' name='%s' log='%s/%s.0.log' lines=%u box=", r->here,
                   r->queue, t->s->name, r->queue, t->s->name, lines);
        command_quote(out, batch_remote_name(r->here, t->box));
        buf_char(out, '\n');
        buf_addz(out, rest);
}

static void sent_file(void *arg, int status, struct str out, struct str errors)
{
        struct transfer *x = arg;
        struct task *t = session_task(x->all, x->id);

        (void)out;
        if (status != 0) {
                transfer_failed(x, status, errors);
                return;
        }
        transfer_end(x);
        if (t) {
                t->s->there = true;
                t->fetches = 0;
        }
}

static void send_file(struct transfer *x, const struct task *t)
{
        ARGS_CLEANUP struct args paths = {0};
        uint64_t size = 0;

        if (open_slot(x, O_RDONLY, &size) < 0) {
                transfer_failed(x, 1, STR("its archive cannot be read"));
                return;
        }
        add_file(x->all, t, STR(BATCH_ARRIVES_AS), &paths);
        x->command = request_run(x->all->requests,
                                 &(struct request_spec){.method = "PUT",
                                                        .paths = &paths,
                                                        .type = "application/octet-stream",
                                                        .kind = REQUEST_UPLOAD,
                                                        .fd = x->fd,
                                                        .size = size,
                                                        .timeout_ms = COPY_MS},
                                 sent_file, x);
}

static void sent_lease(void *arg, int status, struct str out, struct str errors)
{
        struct transfer *x = arg;
        struct task *t = session_task(x->all, x->id);

        (void)out;
        if (status != 0 || !t)
                transfer_failed(x, status, errors);
        else
                send_file(x, t);
}

static void lease_path(const struct sessions *r, const struct task *t, struct args *paths)
{
        BUF_CLEANUP struct buf name = {0};

        buf_printf(&name, "%s/lease", r->queue);
        add_file(r, t, buf_view(&name), paths);
}

/* The lease goes before the job can begin, as a file of its own: its age counts from when it arrives. */
static void packed(void *arg, int status, struct str out, struct str errors)
{
        struct transfer *x = arg;
        struct sessions *r = x->all;
        struct task *t = session_task(r, x->id);
        ARGS_CLEANUP struct args paths = {0};
        BUF_CLEANUP struct buf lease = {0};

        (void)out;
        if (status != 0 || !t)
                transfer_failed(x, status, errors);
        else if (fs_read(r->b->fd, "lease", REQUEST_TEXT_MAX, &lease, NULL) < 0) { /* there is none yet */
                send_file(x, t);
        } else {
                lease_path(r, t, &paths);
                x->command = small_request(r, "PUT", &paths, buf_view(&lease), SMALL_MS, sent_lease, x);
        }
}

static void push(struct transfer *x, const struct task *t)
{
        struct sessions *r = x->all;
        BUF_CLEANUP struct buf script = {0}, input = {0}, slot = {0};

        slot_name(x, ".tar", &slot);
        buf_printf(&script, "umask 077; cd \"$0\" && { cat && tar -cf - -- '%s/%s.sh' '%s/%s.list.0' ",
                   r->queue, t->s->name, r->queue, t->s->name);
        command_quote(&script, batch_remote_name(r->here, t->box));
        buf_printf(&script, "; } >'%s/%s'", r->queue, buf_z(&slot));
        unpacker(r, t, &input);
        run_script(x, buf_view(&script), buf_view(&input), packed);
}

/* ---- files that come back */

static void unpacked(void *arg, int status, struct str out, struct str errors)
{
        struct transfer *x = arg;
        struct task *t = session_task(x->all, x->id);

        (void)out;
        if (status != 0) {
                transfer_failed(x, status, errors);
                return;
        }
        transfer_end(x);
        if (!t)
                return;
        t->ended_there = true; /* as far as the archive tells */
        batch_remote_arrived(t);
        t->fetched = true;
        if (!t->ended_there) /* the element may say again and again that it has ended */
                fetch_later(t);
}

static void came(void *arg, int status, struct str out, struct str errors)
{
        struct transfer *x = arg;
        struct sessions *r = x->all;
        struct task *t = session_task(r, x->id);
        BUF_CLEANUP struct buf script = {0}, source = {0}, in = {0}, names = {0}, log = {0};

        (void)out;
        if (status != 0 && status != REQUEST_ABSENT) {
                transfer_failed(x, status, errors);
                return;
        }
        if (!t || status == REQUEST_ABSENT) {
                transfer_end(x);
                if (t)
                        t->fetched = true; /* there is nothing to come */
                return;
        }
        slot_name(x, ".in", &in);
        buf_printf(&source, "cat \"$here/%s/session.%u.tar\"", r->queue, (unsigned)(x - r->transfers));
        batch_log_path(r->b, t, &log);
        buf_char(&names, ' ');
        command_quote(&names, batch_remote_name(r->here, t->box));
        buf_char(&names, ' ');
        command_quote(&names, batch_remote_name(r->here, buf_z(&log)));
        batch_remote_unpack(r->b, buf_z(&source), buf_z(&in), buf_view(&names), &script);
        run_script(x, buf_view(&script), STR(""), unpacked);
}

/* Returns the most bytes of an archive: all slots may bring as much at a time, and unpack it beside it. */
static uint64_t archive_max(const struct sessions *r)
{
        return batch_remote_room(r->b) / ((uint64_t)2 * TRANSFERS);
}

static void fetch_session(struct transfer *x, const struct task *t)
{
        ARGS_CLEANUP struct args paths = {0};
        uint64_t size;

        if (open_slot(x, O_WRONLY | O_CREAT | O_TRUNC, &size) < 0) {
                transfer_failed(x, 1, str_of(strerror(errno)));
                return;
        }
        add_file(x->all, t, STR(COMES_AS), &paths);
        x->command = request_run(x->all->requests,
                                 &(struct request_spec){.method = "GET",
                                                        .paths = &paths,
                                                        .kind = REQUEST_DOWNLOAD,
                                                        .fd = x->fd,
                                                        .size = archive_max(x->all),
                                                        .timeout_ms = COPY_MS},
                                 came, x);
}

static bool is_transferred(const struct sessions *r, const struct task *t)
{
        for (size_t i = 0; i < TRANSFERS; i++)
                if (r->transfers[i].command && str_eq(run_key(&r->transfers[i].id), run_key(&t->id)))
                        return true;
        return false;
}

static void transfer_begin(struct sessions *r, const struct task *t, bool is_push)
{
        for (size_t i = 0; i < TRANSFERS; i++) {
                struct transfer *x = &r->transfers[i];

                if (x->command)
                        continue;
                x->id = t->id;
                x->push = is_push;
                if (is_push)
                        push(x, t);
                else
                        fetch_session(x, t);
                return;
        }
}

static bool has_slot(const struct sessions *r)
{
        for (size_t i = 0; i < TRANSFERS; i++)
                if (!r->transfers[i].command)
                        return true;
        return false;
}

/* ---- small requests */

static void told_small(struct sessions *r, enum small what, int status, struct str errors)
{
        static const char *const names[] = {"lease", "signal", "begin", "remove"};

        r->small[what] = NULL;
        if (status != 0 && status != REQUEST_ABSENT)
                sessions_failed(r, names[what], errors);
}

static void told_lease(void *arg, int status, struct str out, struct str errors)
{
        (void)out;
        told_small(arg, LEASE, status, errors);
}

/* Sends the lease to all jobs. A lease that would have to wait is dropped: it would be outdated, and the next
 * one follows soon. */
static void sessions_lease(struct batch *b, struct str text, int64_t timeout_ms)
{
        struct sessions *r = sessions_of(b);
        ARGS_CLEANUP struct args paths = {0};

        if (r->small[LEASE])
                return;
        for (const struct task *t = b->table.all; t; t = t->next)
                if (t->state == TASK_IN && !t->fetch_wanted)
                        lease_path(r, t, &paths);
        if (paths.n)
                r->small[LEASE] = small_request(r, "PUT", &paths, text, timeout_ms, told_lease, r);
}

static void sessions_order(struct batch *b, const char *path)
{
        batch_remote_add_order(&sessions_of(b)->orders, path);
}

static void told_order(void *arg, int status, struct str out, struct str errors)
{
        (void)out;
        told_small(arg, ORDER, status, errors);
}

/* Returns the task whose sandbox has the file. */
static const struct task *task_of(const struct batch *b, struct str path)
{
        for (const struct task *t = b->table.all; t; t = t->next) {
                struct str box = str_of(t->box);

                if (t->state == TASK_IN && str_starts(path, box) && path.n > box.n && path.p[box.n] == '/')
                        return t;
        }
        return NULL;
}

static void send_order(struct sessions *r)
{
        struct str rest = buf_view(&r->orders), path;
        ARGS_CLEANUP struct args paths = {0};
        BUF_CLEANUP struct buf text = {0};

        if (!rest.n || r->small[ORDER] || !str_cut(&rest, '\n', &path))
                return;
        MEM_CLEANUP char *z = str_dupz(path);
        const struct task *t = task_of(r->b, path);
        size_t size = r->orders.n - rest.n;
        if (t && fs_read_regular(AT_FDCWD, z, REQUEST_TEXT_MAX, &text, NULL) == 0) {
                add_file(r, t, batch_remote_name(r->here, z), &paths);
                r->small[ORDER] = small_request(r, "PUT", &paths, buf_view(&text), SMALL_MS, told_order, r);
        }
        unlink(z);
        buf_consume(&r->orders, size);
}

static void told_begin(void *arg, int status, struct str out, struct str errors)
{
        struct sessions *r = arg;
        struct task *t = session_task(r, r->looked_for);

        (void)out;
        told_small(r, BEGIN, status, errors);
        if (status == 0 && t && !t->begun)
                batch_remote_mark(t, "began", clock_wall_ms() / 1000);
}

/* Looks for the file that a script makes when it begins: the element calls a job running that waits in its
 * batch system. */
static void look_for_begin(struct sessions *r, struct task *t)
{
        ARGS_CLEANUP struct args paths = {0};
        BUF_CLEANUP struct buf name = {0};

        t->retry_ms = clock_boot_ms() + r->b->poll_ms;
        buf_printf(&name, STR_FMT "/" BATCH_STEP ".%u.began", STR_ARG(batch_remote_name(r->here, t->box)),
                   t->id.step);
        add_file(r, t, buf_view(&name), &paths);
        r->looked_for = t->id;
        r->small[BEGIN] = small_request(r, "GET", &paths, STR(""), SMALL_MS, told_begin, r);
}

/* ---- removing */

static void sessions_stray(struct batch *b, struct str native)
{
        struct buf *out = &sessions_of(b)->clean;

        if (out->n > CLEAN_MAX)
                return;
        if (out->n)
                buf_char(out, ' ');
        buf_str(out, native);
}

static void sessions_forget_task(struct batch *b, const struct task *t)
{
        BUF_CLEANUP struct buf native = {0};

        if (!t->s || !t->s->native)
                return;
        batch_native_key(b, t, &native);
        sessions_stray(b, buf_view(&native));
}

static void told_clean(void *arg, int status, struct str out, struct str errors)
{
        struct sessions *r = arg;

        (void)out;
        told_small(r, CLEAN, status, errors);
        if (status != 0) {
                sessions_stray(r->b, buf_view(&r->cleaning));
                r->clean_ms = clock_boot_ms() + RETRY_MS;
        }
        buf_reset(&r->cleaning);
}

static void clean(struct sessions *r)
{
        struct batch_call call = {.settings = &r->b->settings};

        if (!r->clean.n || r->small[CLEAN] || clock_boot_ms() < r->clean_ms)
                return;
        buf_str(&r->cleaning, buf_view(&r->clean));
        buf_reset(&r->clean);
        r->b->system->clean(&call, buf_view(&r->cleaning));
        r->small[CLEAN] = request_run(r->requests,
                                      &(struct request_spec){.method = call.method,
                                                             .paths = &call.paths,
                                                             .body = buf_view(&call.input),
                                                             .timeout_ms = SMALL_MS},
                                      told_clean, r);
        batch_call_deinit(&call);
}

/* ---- */

static void sessions_look(struct batch *b)
{
        struct sessions *r = sessions_of(b);
        int64_t now = clock_boot_ms();

        /* before the first answer it is not known which tasks have begun */
        for (struct task *t = b->listed ? b->table.all : NULL, *next; t; t = next) {
                next = t->next; /* a failed transfer may end the task */
                if (t->state != TASK_IN || t->fetched || now < t->retry_ms || is_transferred(r, t))
                        continue;
                bool send = t->wants_files && !t->s->there && !t->killing;
                if ((t->fetch_wanted || send) && has_slot(r)) {
                        /* the job's id is on disk before the job can run */
                        if (t->fetch_wanted || batch_journal_flush(b, true) == 0)
                                transfer_begin(r, t, !t->fetch_wanted);
                } else if (!t->fetch_wanted && !t->begun && t->phase == BATCH_RUNNING && !r->small[BEGIN])
                        look_for_begin(r, t);
        }
        send_order(r);
        clean(r);
}

static bool sessions_may_tell(const struct batch *b, struct task *t)
{
        (void)b;
        if (t->fetched)
                return false;
        t->fetch_wanted = true;
        return true;
}

static void sessions_free(struct remote_files *files)
{
        struct sessions *r = (struct sessions *)(void *)files;

        for (size_t i = 0; i < SMALL_COUNT; i++)
                command_cancel(r->small[i]);
        for (size_t i = 0; i < TRANSFERS; i++) {
                command_cancel(r->transfers[i].command);
                transfer_end(&r->transfers[i]);
        }
        requests_free(r->requests);
        buf_deinit(&r->orders);
        buf_deinit(&r->clean);
        buf_deinit(&r->cleaning);
        free(r->here);
        free(r->queue);
        free(r);
}

static const struct remote_kind sessions_kind = {
        .free = sessions_free,
        .look = sessions_look,
        .order = sessions_order,
        .lease = sessions_lease,
        .forget_task = sessions_forget_task,
        .may_tell = sessions_may_tell,
        .stray = sessions_stray,
};

int batch_sessions_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                        struct err *err)
{
        struct buf text = {0};

        *ret = NULL;
        if (b->user_commands)
                return err_set(err, -EINVAL,
                               "%s is for an agent that runs the jobs of one user: `users` is set",
                               b->system->name);
        if (!batch_remote_is_folder(c->dir))
                return err_set(err, -EINVAL,
                               "with %s the agent's folder %s must have letters, digits and -_.+/@: only",
                               b->system->name, c->dir);
        struct sessions *r = mem_new(struct sessions);
        r->base.kind = &sessions_kind;
        r->b = b;
        r->requests = requests_new(b->loop, batch_calls_server(b));
        r->here = mem_dupz(c->dir);
        buf_printf(&text, "batch.%s", c->queue);
        r->queue = buf_take(&text);
        for (size_t i = 0; i < TRANSFERS; i++) {
                r->transfers[i].all = r;
                r->transfers[i].fd = -1;
        }
        *ret = &r->base;
        return 0;
}
