#include "agent/transfer/movers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/model/attempt.h"
#include "agent/model/queue.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "ev/children.h"

#define IDLE_MS     10000  /* idle time after which a mover is ended */
#define SILENCE_MS  120000 /* silence after which a mover is given up; it sends a sign every second */
#define LOOK_MS     5000
#define LATE_MS     5000 /* grace beyond a transfer's limit, which the mover enforces itself */
#define LIVES       2    /* movers that one transfer may bring down */
#define AT_ONCE     64   /* packets of one mover that are read before the others have their turn */
#define MOVER_WORDS (4 * CONFIG_LIST_MAX + 32)
#define SIGNS_MAX   1000 /* signs accepted in LOOK_MS; after a stop an honest mover's socket may hold many */
/* member of request 0 in a mover's run_id. Serials come from a clock, and may have any bits set */
#define MEMBER 2

struct mover {
        struct agent *a;
        struct mover *next;
        char *user; /* NULL: the agent's own user */
        int socket;
        struct watch *watch;
        struct child *child; /* child of the agent; NULL: the shepherd's child, by id */
        struct run_id id;
        struct move *move; /* its transfer */
        int64_t began_ms;
        int64_t heard_ms; /* last message, or start of idleness */
        unsigned signs;   /* signs since the last check */
};
struct move {
        struct agent *a;
        struct move *next;
        struct move_task task;
        int fd;
        char *owner, *user;
        unsigned lives;
        struct mover *mover; /* mover that does the transfer */
        move_done_fn *done;
        void *arg;
};
struct movers {
        struct mover *list;
        struct move *first, **last; /* waiting transfers */
        unsigned busy;
        uint32_t serial;
        bool deferred;
        char *program;
        struct timer *look;
};

static void go_on(struct agent *a);

/* Returns whether the task may be long. Checksums and probes are short, and do not wait for long ones. */
static bool is_long(const struct move *m)
{
        return m->task.op == MOVE_GET || m->task.op == MOVE_PUT || m->task.op == MOVE_COPY;
}

static void move_free(struct move *m)
{
        move_task_deinit(&m->task);
        if (m->fd >= 0)
                close(m->fd);
        if (m->task.from >= 0)
                close(m->task.from);
        free(m->owner);
        free(m->user);
        free(m);
}

static bool same_user(const char *a, const char *b)
{
        return a == b || (a && b && !strcmp(a, b));
}

static void wait_first(struct movers *all, struct move *m)
{
        m->next = all->first;
        all->first = m;
        if (!m->next)
                all->last = &m->next;
}

static void wait_last(struct movers *all, struct move *m)
{
        *all->last = m;
        all->last = &m->next;
}

/* ---- processes */

static void mover_free(struct mover *v)
{
        struct mover **link = &v->a->movers->list;

        while (*link != v)
                link = &(*link)->next;
        *link = v->next;
        watch_free(v->watch);
        close(v->socket); /* ends the mover */
        if (v->child) {
                child_kill(v->child, SIGKILL);
                child_forget(v->child);
        } else if (v->id.step && v->a->runner) {
                runner_kill(v->a->runner, v->id, 0);
                agent_turn_later(v->a);
        }
        free(v->user);
        free(v);
}

/* Handles the end of a mover: its task goes to another one, or has failed. `how` is the predicate of a
 * sentence. */
static void mover_lost(struct mover *v, const char *how)
{
        struct agent *a = v->a;
        struct movers *all = a->movers;
        struct move *m = v->move;

        mover_free(v);
        if (!m)
                return;
        all->busy -= is_long(m);
        m->mover = NULL;
        MEM_CLEANUP char *url = move_url_shown(m->task.url);
        log_warn("msg=\"a mover is lost\" how=\"%s\" op=%s url=\"%s\"", how, move_op_names[m->task.op],
                 LOG_TEXT(str_of(url)));
        if (++m->lives < LIVES) {
                wait_first(all, m);
        } else {
                struct move_answer failed = {.status = MOVE_FAILED, .error = EIO, .tries = LIVES};

                snprintf(failed.text, sizeof(failed.text), "cannot %s %s: what did it %s",
                         move_op_names[m->task.op], *url ? url : "it", how);
                m->done(m->arg, &failed);
                move_free(m);
        }
        go_on(a);
}

static void on_exit_of(void *arg, struct child *c, int status)
{
        struct mover *v = arg;
        char how[64] = "ended";

        (void)c;
        v->child = NULL;
        if (WIFSIGNALED(status))
                snprintf(how, sizeof(how), "died of signal %d", WTERMSIG(status));
        mover_lost(v, how);
}

/* Returns whether the answer is possible for the task. */
static bool makes_sense(const struct move_task *t, const struct move_answer *a)
{
        return a->status != MOVE_UNCHANGED || (t->op == MOVE_GET && t->known);
}

static void on_packet(void *arg, int what)
{
        struct mover *v = arg;
        struct agent *a = v->a;
        struct move_answer answer;
        int r;

        (void)what;
        for (unsigned n = 0; (r = move_receive_answer(v->socket, MSG_DONTWAIT, &answer)) >= 0;) {
                v->heard_ms = clock_boot_ms();
                if (++v->signs > SIGNS_MAX || (r > 0 && v->move && !makes_sense(&v->move->task, &answer))) {
                        r = -EPROTO;
                        break;
                }
                if (r == 0 || !v->move) {
                        if (++n < AT_ONCE)
                                continue;
                        return; /* the watch reports the rest again */
                }
                struct move *m = v->move;
                v->move = NULL;
                a->movers->busy -= is_long(m);
                m->done(m->arg, &answer);
                move_free(m);
                go_on(a);
                agent_turn_later(a);
                return; /* v may be freed; the watch reports the rest again */
        }
        if (r == -EAGAIN)
                return;
        if (!v->child || r == -EPROTO) { /* the end of the agent's own children is reported separately */
                mover_lost(v, r == -EPROTO ? "talked nonsense" : "ended");
                return;
        }
        watch_set(v->watch, 0);
}

static void arguments(const struct agent *a, char **argv, size_t max, struct buf *room)
{
        const struct config *c = &a->config;
        size_t n = 0, at[CONFIG_LIST_MAX];

        argv[n++] = a->movers->program;
        for (size_t i = 0; a->hidden && i <= c->hide.n; i++) {
                argv[n++] = (char *)(uintptr_t) "--hide";
                argv[n++] = !c->paths ? (char *)(uintptr_t) "/" : i < c->hide.n ? c->hide.v[i] : c->dir;
        }
        if (c->ca_file) {
                argv[n++] = (char *)(uintptr_t) "--ca";
                argv[n++] = c->ca_file;
        }
        if (c->known_hosts) {
                argv[n++] = (char *)(uintptr_t) "--known-hosts";
                argv[n++] = c->known_hosts;
        }
        for (size_t i = 0; i < c->movers.n; i++) {
                struct str program = str_of(c->movers.v[i]), scheme;
                BUF_CLEANUP struct buf path = {0};

                str_cut(&program, ' ', &scheme);
                program_shipped("movers", program.p, &path, NULL);
                at[i] = room->n;
                buf_printf(room, STR_FMT "=%s", STR_ARG(scheme), buf_z(&path));
                buf_char(room, 0);
        }
        for (size_t i = 0; i < c->movers.n && n + 8 < max; i++) {
                argv[n++] = (char *)(uintptr_t) "--exec";
                argv[n++] = room->p + at[i];
        }
        for (size_t i = 0; i < c->tuning.n && n + 8 < max; i++) {
                argv[n++] = (char *)(uintptr_t) "--tune";
                argv[n++] = c->tuning.v[i];
        }
        static char retry_ms[24];
        snprintf(retry_ms, sizeof(retry_ms), "%llu", (unsigned long long)c->transfer_retry_ms);
        argv[n++] = (char *)(uintptr_t) "--retry";
        argv[n++] = retry_ms;
        static char stall_s[24]; /* at least a second: 0 is the default to the mover */
        snprintf(stall_s, sizeof(stall_s), "%llu",
                 (unsigned long long)(c->transfer_stall_ms < 1000 ? 1 : c->transfer_stall_ms / 1000));
        argv[n++] = (char *)(uintptr_t) "--stall";
        argv[n++] = stall_s;
        argv[n++] = (char *)(uintptr_t) "serve";
        argv[n] = NULL;
}

void movers_command(const struct agent *a, struct args *ret)
{
        char *argv[MOVER_WORDS];
        BUF_CLEANUP struct buf room = {0};

        arguments(a, argv, sizeof(argv) / sizeof(*argv), &room);
        for (size_t i = 0; argv[i] && strcmp(argv[i], "serve") != 0; i++)
                args_add(ret, str_of(argv[i]));
}

static int start_as_we_are(struct mover *v, char **argv, int theirs, struct err *err)
{
        struct child_spec spec = {
                .argv = argv, .stdin_fd = theirs, .stdout_fd = -1, .stderr_fd = -1, .die_with_parent = true};

        return child_spawn(v->a->loop, &spec, on_exit_of, v, &v->child, err);
}

/* Starts a mover through the shepherd, which checks the map of users again. */
static void start_as_user(struct mover *v, const struct move *m, char **argv, int theirs)
{
        char *envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL};

        v->id = (struct run_id){0, MEMBER, 0, STEP_NO_JOBS | ++v->a->movers->serial, 0};
        struct run_spec spec = {.id = v->id,
                                .owner = m->owner,
                                .user = m->user,
                                .cwd = "/",
                                .flags = RUN_STDIN_FD,
                                .stdin_fd = theirs,
                                .path = argv[0],
                                .argv = argv,
                                .envp = envp,
                                .slot = UINT32_MAX};
        runner_submit(v->a->runner, &spec);
        v->a->runner->kind->flush(v->a->runner);
}

static struct mover *mover_new(struct agent *a, const struct move *m, struct err *err)
{
        int pair[2];
        char *argv[MOVER_WORDS];
        BUF_CLEANUP struct buf room = {0};

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                err_set(err, -errno, "no socket: %s", strerror(errno));
                return NULL;
        }
        struct mover *v = mem_new(struct mover);
        v->a = a;
        v->socket = pair[0];
        v->user = mem_dupz(m->user);
        v->watch = watch_new(a->loop, v->socket, WATCH_READ, on_packet, v);
        v->next = a->movers->list;
        a->movers->list = v;
        arguments(a, argv, sizeof(argv) / sizeof(*argv), &room);
        int r = 0;
        if (m->user)
                start_as_user(v, m, argv, pair[1]);
        else
                r = start_as_we_are(v, argv, pair[1], err);
        close(pair[1]);
        if (r == 0)
                return v;
        mover_free(v);
        return NULL;
}

/* ---- transfers */

static struct mover *idle_mover(struct movers *all, const struct move *m)
{
        struct mover *v = all->list;

        while (v && (v->move || !same_user(v->user, m->user)))
                v = v->next;
        return v;
}

static void begin_move(struct agent *a, struct move *m)
{
        struct err err = {""};
        struct mover *v = idle_mover(a->movers, m);

        if (!v)
                v = mover_new(a, m, &err);
        int r = v ? move_send_task(v->socket, &m->task, m->fd) : -EIO;
        if (r < 0) {
                struct move_answer failed = {.status = MOVE_FAILED, .error = EIO};
                MEM_CLEANUP char *url = move_url_shown(m->task.url);

                snprintf(failed.text, sizeof(failed.text), "cannot start a transfer of %s: %s", url,
                         *err.text ? err.text : strerror(-r));
                if (v)
                        mover_free(v);
                m->done(m->arg, &failed);
                move_free(m);
                return;
        }
        v->move = m;
        v->began_ms = v->heard_ms = clock_boot_ms();
        m->mover = v;
        a->movers->busy += is_long(m);
}

/* With `users`: returns whether the owner has no transfer under way. */
static bool is_first(const struct agent *a, const struct move *m)
{
        if (!a->users_path || !m->owner)
                return false;
        for (const struct mover *v = a->movers->list; v; v = v->next)
                if (v->move && is_long(v->move) && v->move->owner && !strcmp(v->move->owner, m->owner))
                        return false;
        return true;
}

static struct move *next_to_do(struct agent *a)
{
        struct movers *all = a->movers;
        uint64_t most = a->config.transfers ? a->config.transfers : 1;
        struct move **link = &all->first, *m;

        while ((m = *link) &&
               ((is_long(m) && all->busy >= most && !is_first(a, m)) || (m->user && !a->backends[0]->ready)))
                link = &m->next;
        if (m && !(*link = m->next))
                all->last = link;
        return m;
}

static void go_on(struct agent *a)
{
        for (struct move *m; (m = next_to_do(a));)
                begin_move(a, m);
}

static void on_defer(void *arg)
{
        struct agent *a = arg;

        a->movers->deferred = false;
        go_on(a);
}

/* Continues waiting transfers from the loop, because `done` may be called at once. */
static void go_on_later(struct agent *a)
{
        if (!a->movers->deferred)
                loop_defer(a->loop, on_defer, a);
        a->movers->deferred = true;
}

struct move *movers_start(struct agent *a, const struct move_task *task, int fd, const char *owner,
                          const char *user, move_done_fn *done, void *arg)
{
        struct move *m = mem_new(struct move);

        m->a = a;
        move_task_copy(&m->task, task);
        m->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        m->task.from = task->from < 0 ? -1 : fcntl(task->from, F_DUPFD_CLOEXEC, 3);
        m->owner = mem_dupz(owner);
        m->user = mem_dupz(user);
        m->done = done;
        m->arg = arg;
        if (task->op == MOVE_COPY)
                wait_first(a->movers, m); /* copies go first: their fetched source takes room */
        else
                wait_last(a->movers, m);
        go_on_later(a);
        return m;
}

struct move *movers_copy(struct agent *a, int from, int to, uint64_t size, const char *owner,
                         move_done_fn *done, void *arg)
{
        struct move_task t;

        move_task_init(&t, MOVE_COPY);
        t.from = from;
        t.size = size;
        t.tries = 1;
        return movers_start(a, &t, to, owner, NULL, done, arg);
}

void movers_cancel(struct move *m)
{
        struct movers *all = m->a->movers;

        if (m->mover) {
                m->mover->move = NULL;
                mover_free(m->mover);
                all->busy -= is_long(m);
                go_on_later(m->a);
        } else {
                struct move **link = &all->first;

                while (*link != m)
                        link = &(*link)->next;
                if (!(*link = m->next))
                        all->last = link;
        }
        move_free(m);
}

bool movers_event(struct agent *a, const struct run_event *e)
{
        struct mover *v = a->movers->list;

        if (e->id.request != 0 || e->id.member != MEMBER)
                return false;
        while (v && !run_id_eq(v->id, e->id))
                v = v->next;
        if (e->state == RUN_RUNNING && !v)
                runner_kill(a->runner, e->id, 0); /* mover of an earlier agent */
        if (e->state == RUN_WAITING || e->state == RUN_RUNNING)
                return true;
        runner_forget(a->runner, e->id);
        if (!v)
                return true;
        char how[128];
        if (e->state == RUN_FAILED)
                snprintf(how, sizeof(how), "could not be started as its user (%s): %s", e->what,
                         strerror(e->error));
        else
                snprintf(how, sizeof(how), e->signaled ? "died of signal %d" : "ended with status %d",
                         e->exit_code);
        v->id.step = 0;
        mover_lost(v, how);
        return true;
}

/* Returns whether the transfer is beyond its limit, which the mover should have enforced. */
static bool is_late(const struct mover *v, int64_t now)
{
        uint64_t limit = v->move ? v->move->task.limit_ms : 0;

        return limit && now - v->began_ms > (int64_t)(limit + LATE_MS);
}

/* Ends movers that are idle, silent, or beyond their limit. */
static void on_look(void *arg)
{
        struct agent *a = arg;
        int64_t now = clock_boot_ms();

        timer_start(a->movers->look, LOOK_MS);
        for (struct mover *v = a->movers->list, *next; v; v = next) {
                next = v->next;
                v->signs = 0;
                if (!v->move && now - v->heard_ms > IDLE_MS) {
                        mover_free(v);
                } else if (v->move && now - v->heard_ms > SILENCE_MS) {
                        mover_lost(v, "said nothing any more");
                        break; /* the list may be another one now */
                } else if (is_late(v, now)) {
                        v->move->lives = LIVES;
                        mover_lost(v, "did not end in the time that it may take");
                        break;
                }
        }
        go_on(a);
}

static char *find_program(struct agent *a)
{
        struct buf path = {0};

        if (a->config.mover)
                return mem_dupz(a->config.mover);
        if (program_find("drover-mover", &path, NULL) != 0) {
                buf_reset(&path);
                buf_addz(&path, "drover-mover"); /* the program may be installed later */
        }
        return buf_take(&path);
}

void movers_open(struct agent *a)
{
        struct movers *all = a->movers = mem_new(struct movers);

        all->last = &all->first;
        all->serial = (uint32_t)clock_boot_ms() & 0xffffff; /* avoids ids of an earlier agent */
        all->program = find_program(a);
        all->look = timer_new(a->loop, on_look, a);
        timer_start(all->look, LOOK_MS);
}

void movers_close(struct agent *a)
{
        struct movers *all = a->movers;

        if (!all)
                return;
        while (all->first) {
                struct move *m = all->first;

                all->first = m->next;
                move_free(m);
        }
        while (all->list) {
                struct mover *v = all->list;

                if (v->move)
                        move_free(v->move);
                mover_free(v);
        }
        loop_defer_cancel(a->loop, on_defer, a);
        timer_free(all->look);
        free(all->program);
        free(all);
        a->movers = NULL;
}

size_t movers_count(const struct agent *a, size_t *ret_waiting)
{
        *ret_waiting = 0;
        for (const struct move *m = a->movers->first; m; m = m->next)
                ++*ret_waiting;
        return a->movers->busy;
}
