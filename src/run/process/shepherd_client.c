/* The shepherd must be neither the agent's child nor in its session, to outlive the agent: it is forked
 * twice, by a process that has closed all descriptors that it does not need. It reports on a pipe when its
 * socket is ready; the loop watches the pipe. */
#include "run/process/shepherd_client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/program.h"

#define RETRY_FIRST_MS 20
#define RETRY_MAX_MS   5000
/* Consecutive looks without an answer; several, so that an agent that was suspended itself gets an answer
 * first. */
#define LOOKS 5

struct shepherd_client {
        struct loop *loop;
        const struct shepherd_client_ops *ops;
        void *arg;
        char *dir, *instance, *program, *users_path; /* program NULL: searched at each start */
        char *cgroups[2];
        unsigned min_uid, agent_uid;
        struct args hidden;
        int *passed; /* descriptors in the order of their records */
        size_t passed_count, passed_cap;
        int dirfd, fd, ready;
        bool listed, was_up, *freed;
        /* detection of silence: number of looks since the last question without an answer */
        bool asked, pings, told_silent;
        unsigned looks;
        int64_t look_ms;
        struct timer *look;
        struct watch *watch, *ready_watch;
        struct timer *retry;
        int64_t retry_ms;
        struct buf out;
        char *room;
        char *failure; /* last reported failure, or NULL */
};

static void try_connect(void *arg);
static void on_socket(void *arg, int what);
static void on_look(void *arg);

struct shepherd_client *shepherd_client_new(struct loop *l, const struct shepherd_client_config *config,
                                            const struct shepherd_client_ops *ops, void *arg)
{
        struct shepherd_client *c = mem_new(struct shepherd_client);

        c->loop = l;
        c->ops = ops;
        c->arg = arg;
        c->dir = mem_dupz(config->dir);
        c->instance = mem_dupz(config->instance);
        c->program = config->program ? mem_dupz(config->program) : NULL;
        c->users_path = mem_dupz(config->users_path);
        for (int i = 0; i < 2; i++)
                c->cgroups[i] = mem_dupz(config->cgroups[i]);
        c->min_uid = config->min_uid;
        c->agent_uid = config->agent_uid;
        for (const char *const *h = config->hidden; h && *h; h++)
                args_add(&c->hidden, str_of(*h));
        c->fd = c->ready = -1;
        c->dirfd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        c->room = mem_alloc(SHEPHERD_DIRECT_MAX * 4);
        c->retry_ms = RETRY_FIRST_MS;
        c->retry = timer_new(l, try_connect, c);
        timer_start(c->retry, 0);
        c->look = timer_new(l, on_look, c);
        c->look_ms = config->silence_ms / LOOKS;
        if (c->look_ms)
                timer_start(c->look, c->look_ms);
        return c;
}

/* ---- starting a shepherd */

static void __attribute__((noreturn))
become_shepherd(struct shepherd_client *c, const char *program, int ready)
{
        char min_uid[16], agent_uid[16];

        snprintf(min_uid, sizeof(min_uid), "%u", c->min_uid);
        snprintf(agent_uid, sizeof(agent_uid), "%u", c->agent_uid);
        setsid();
        if (fork() != 0)
                _exit(0);
        int null = open("/dev/null", O_RDWR);
        int log = openat(c->dirfd, "shepherd.log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
        dup2(null, 0);
        dup2(log >= 0 ? log : null, 1);
        dup2(log >= 0 ? log : null, 2);
        if (ready == 3)
                fcntl(3, F_SETFD, 0);
        else
                dup2(ready, 3);
        close_range(4, ~0u, 0);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        const char *argv[32] = {"drover-shepherd", "--dir",      c->dir, "--instance",
                                c->instance,       "--ready-fd", "3"};
        unsigned n = 7;
        if (c->users_path) {
                argv[n++] = "--users";
                argv[n++] = c->users_path;
                argv[n++] = "--min-uid";
                argv[n++] = min_uid;
                argv[n++] = "--agent-uid";
                argv[n++] = agent_uid;
                for (int i = 0; i < 2; i++)
                        if (c->cgroups[i]) {
                                argv[n++] = "--cgroup";
                                argv[n++] = c->cgroups[i];
                        }
        }
        for (size_t i = 0; i < c->hidden.n && n + 3 < sizeof(argv) / sizeof(*argv); i++) {
                argv[n++] = "--hide";
                argv[n++] = c->hidden.v[i];
        }
        execvp(program, (char **)argv);
        dprintf(3, "cannot run %s: %s", program, strerror(errno));
        _exit(127);
}

static void stop_ready(struct shepherd_client *c)
{
        watch_free(c->ready_watch);
        c->ready_watch = NULL;
        if (c->ready >= 0)
                close(c->ready);
        c->ready = -1;
}

static void tell_failure(struct shepherd_client *c, const char *why)
{
        if (c->failure && strcmp(c->failure, why) == 0)
                return;
        free(c->failure);
        c->failure = mem_dupz(why);
        c->ops->failed(c->arg, c->failure);
}

/* Reads the start report: ready, or the reason why not. Nothing: another shepherd has the folder, and will
 * answer. */
static void on_ready(void *arg, int what)
{
        struct shepherd_client *c = arg;

        (void)what;
        char words[512];
        ssize_t n = read(c->ready, words, sizeof(words) - 1);
        stop_ready(c);
        words[n > 0 ? n : 0] = '\0';
        bool up = strcmp(words, SHEPHERD_IS_READY) == 0;
        timer_start(c->retry, up ? 0 : c->retry_ms);
        if (!up && n > 0)
                tell_failure(c, words);
}

static void spawn(struct shepherd_client *c)
{
        BUF_CLEANUP struct buf program = {0};
        struct err err;
        int ends[2];

        if (c->program) {
                buf_addz(&program, c->program);
        } else if (program_find("drover-shepherd", &program, &err) != 0) {
                tell_failure(c, err.text);
                return;
        }
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return;
        pid_t pid = fork();
        if (pid == 0)
                become_shepherd(c, buf_z(&program), ends[1]);
        if (pid < 0)
                dprintf(ends[1], "cannot start another process: %s", strerror(errno));
        close(ends[1]);
        if (pid > 0)
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        continue;
        stop_ready(c);
        c->ready = ends[0];
        c->ready_watch = watch_new(c->loop, c->ready, WATCH_READ, on_ready, c);
}

/* ---- the socket */

static void again(struct shepherd_client *c)
{
        timer_start(c->retry, c->retry_ms);
        c->retry_ms = c->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : c->retry_ms * 2;
}

static void drop_out(struct shepherd_client *c)
{
        buf_reset(&c->out);
        while (c->passed_count > 0)
                close(c->passed[--c->passed_count]);
}

void shepherd_client_pass(struct shepherd_client *c, int fd)
{
        MEM_GROW(c->passed, c->passed_cap, c->passed_count + 1);
        c->passed[c->passed_count++] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void drop_connection(struct shepherd_client *c)
{
        watch_free(c->watch);
        c->watch = NULL;
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
        c->listed = c->asked = c->pings = c->told_silent = false;
        drop_out(c);
        if (c->was_up) {
                c->was_up = false;
                c->retry_ms = RETRY_FIRST_MS;
                c->ops->gone(c->arg);
        }
}

static void try_connect(void *arg)
{
        struct shepherd_client *c = arg;
        struct sockaddr_un a = {.sun_family = AF_UNIX};

        if (c->fd >= 0)
                return;
        snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" SHEPHERD_SOCKET, c->dirfd);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
                if (fd >= 0)
                        close(fd);
                if (c->ready < 0)
                        spawn(c);
                if (c->ready < 0)
                        again(c);
                else
                        c->retry_ms = c->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : c->retry_ms * 2;
                return;
        }
        int size = 1 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        c->fd = fd;
        c->was_up = true;
        free(c->failure);
        c->failure = NULL;
        c->retry_ms = RETRY_FIRST_MS;
        c->watch = watch_new(c->loop, fd, WATCH_READ, on_socket, c);
        struct shepherd_hello hello = {{sizeof(hello), SHEPHERD_HELLO}, SHEPHERD_VERSION, (int32_t)getpid()};
        drop_out(c);
        buf_add(&c->out, &hello, sizeof(hello));
        c->asked = true;
        c->looks = 0;
        shepherd_client_flush(c);
}

static void on_look(void *arg)
{
        struct shepherd_client *c = arg;
        const struct shepherd_name ping = {.record = {sizeof(ping), SHEPHERD_PING}};

        timer_start(c->look, c->look_ms);
        if (c->fd >= 0 && c->asked && ++c->looks == LOOKS) {
                c->told_silent = true;
                c->ops->silent(c->arg, true);
        } else if (c->fd >= 0 && !c->asked && c->listed && c->pings) {
                buf_add(&c->out, &ping, sizeof(ping));
                c->asked = true;
                c->looks = 0;
                shepherd_client_flush(c);
        }
}

static void answered(struct shepherd_client *c)
{
        c->asked = false;
        if (!c->told_silent)
                return;
        c->told_silent = false;
        c->ops->silent(c->arg, false);
}

static bool takes_fd(const struct shepherd_record *r)
{
        return r->kind == SHEPHERD_START &&
               (((const struct shepherd_start *)(const void *)r)->flags & SHEPHERD_STDIN_FD);
}

/* Returns the size of the next message: whole records within SHEPHERD_DIRECT_MAX, or one record that is
 * larger or has a descriptor. */
static size_t next_message(const struct buf *b)
{
        size_t n = 0;

        while (n < b->n) {
                const struct shepherd_record *r = (const void *)(b->p + n);

                if (n > 0 && (n + r->size > SHEPHERD_DIRECT_MAX || takes_fd(r)))
                        break;
                n += r->size;
                if (takes_fd(r))
                        break;
        }
        return n;
}

static ssize_t send_with(struct shepherd_client *c, const void *p, size_t n, int fd)
{
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec io = {(void *)p, n};
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);

        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &fd, sizeof(fd));
        return sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends a record with the first of the passed descriptors. */
static ssize_t send_passed(struct shepherd_client *c, const void *p, size_t n)
{
        ssize_t r = send_with(c, p, n, c->passed[0]);

        if (r >= 0) {
                close(c->passed[0]);
                memmove(c->passed, c->passed + 1, --c->passed_count * sizeof(int));
        }
        return r;
}

static ssize_t send_memory(struct shepherd_client *c, const char *p, size_t n)
{
        int fd = memfd_create("drover-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -1;
        ssize_t r = -1;
        size_t done = 0;
        while (done < n) {
                ssize_t w = write(fd, p + done, n - done);

                if (w <= 0)
                        break;
                done += (size_t)w;
        }
        if (done == n && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0) {
                struct shepherd_record record = {sizeof(record), SHEPHERD_MEMORY};

                r = send_with(c, &record, sizeof(record), fd);
        }
        int error = errno;
        close(fd);
        errno = error;
        return r;
}

void shepherd_client_flush(struct shepherd_client *c)
{
        if (c->fd < 0)
                drop_out(c);
        while (c->fd >= 0 && c->out.n > 0) {
                size_t n = next_message(&c->out);
                ssize_t done =
                        takes_fd((const void *)c->out.p) && c->passed_count ? send_passed(c, c->out.p, n)
                        : n > SHEPHERD_DIRECT_MAX                           ? send_memory(c, c->out.p, n)
                                                  : send(c->fd, c->out.p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0 && errno == EAGAIN) {
                        watch_set(c->watch, WATCH_READ | WATCH_WRITE);
                        return;
                }
                if (done < 0) {
                        drop_connection(c);
                        again(c);
                        return;
                }
                buf_consume(&c->out, n);
        }
        if (c->watch)
                watch_set(c->watch, WATCH_READ);
}

struct buf *shepherd_client_out(struct shepherd_client *c)
{
        return &c->out;
}

/* Returns whether the file was written by the connected shepherd. An older version writes none, and may find
 * another shepherd's. */
static bool is_its_file(const struct shepherd_client *c, const struct shepherd_begun *head)
{
        struct ucred peer;
        socklen_t n = sizeof(peer);

        return head->magic == SHEPHERD_BEGUN_MAGIC && head->used <= SHEPHERD_BEGUN_MAX && c->fd >= 0 &&
               getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.pid == head->pid;
}

int shepherd_client_begun(const struct shepherd_client *c, struct buf *ret)
{
        static const struct shepherd_id none;
        BUF_CLEANUP struct buf text = {0};
        int r = fs_read(c->dirfd, SHEPHERD_BEGUN, sizeof(struct shepherd_begun), &text, NULL);

        if (r < 0)
                return r;
        const struct shepherd_begun *all = (const void *)text.p;
        if (text.n != sizeof(*all) || !is_its_file(c, all))
                return -ESTALE;
        for (uint32_t i = 0; i < all->used; i++)
                if (memcmp(&all->ids[i], &none, sizeof(none)) != 0)
                        buf_add(ret, &all->ids[i], sizeof(all->ids[i]));
        return 0;
}

bool shepherd_client_up(const struct shepherd_client *c)
{
        return c->listed;
}

static void on_socket(void *arg, int what)
{
        struct shepherd_client *c = arg;

        if (what & WATCH_WRITE)
                shepherd_client_flush(c);
        for (int i = 0; i < 16 && c->fd >= 0 && (what & WATCH_READ); i++) {
                ssize_t n = recv(c->fd, c->room, SHEPHERD_DIRECT_MAX * 4, MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0) {
                        drop_connection(c);
                        again(c);
                        return;
                }
                bool freed = false;
                c->freed = &freed;
                answered(c);
                if (freed)
                        return;
                for (size_t at = 0; at + sizeof(struct shepherd_record) <= (size_t)n;) {
                        const struct shepherd_record *r = (const void *)(c->room + at);

                        if (r->size < sizeof(*r) || r->size > (size_t)n - at)
                                break;
                        if (r->kind == SHEPHERD_LISTED)
                                c->listed = true;
                        if (r->kind == SHEPHERD_WELCOME && r->size >= sizeof(struct shepherd_hello))
                                c->pings = ((const struct shepherd_hello *)(const void *)r)->version >= 2;
                        c->ops->record(c->arg, r);
                        if (freed)
                                return;
                        at += r->size;
                }
                c->ops->batch(c->arg);
                if (freed)
                        return;
                c->freed = NULL;
        }
}

void shepherd_client_free(struct shepherd_client *c)
{
        if (!c)
                return;
        if (c->freed)
                *c->freed = true;
        c->was_up = false;
        if (c->out.n)
                shepherd_client_flush(c);
        c->was_up = false;
        watch_free(c->watch);
        stop_ready(c);
        timer_free(c->retry);
        timer_free(c->look);
        if (c->fd >= 0)
                close(c->fd);
        if (c->dirfd >= 0)
                close(c->dirfd);
        drop_out(c);
        free(c->passed);
        buf_deinit(&c->out);
        free(c->room);
        free(c->failure);
        free(c->dir);
        free(c->instance);
        free(c->program);
        free(c->users_path);
        args_deinit(&c->hidden);
        for (int i = 0; i < 2; i++)
                free(c->cgroups[i]);
        free(c);
}
