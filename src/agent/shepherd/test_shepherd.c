/* The real shepherd in a temporary folder, spoken to as the agent does. $SHEPHERD is the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "run/process/shepherd_protocol.h"

static char top[64];
static pid_t shepherd;
static int sock = -1;
static const char *users;

static void start_shepherd(void)
{
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        shepherd = fork();
        if (shepherd == 0) {
                char fd[16];

                close(ends[0]);
                signal(SIGQUIT, SIG_IGN); /* as a shell's background job has it */
                snprintf(fd, sizeof(fd), "%d", ends[1]);
                execl(getenv("SHEPHERD"), "drover-shepherd", "--dir", top, "--instance", "unit-instance",
                      "--ready-fd", fd, "--start-limit", "2", users ? "--users" : NULL, users, NULL);
                _exit(99);
        }
        close(ends[1]);
        char word[8];
        assert_true(read(ends[0], word, sizeof(word)) > 0);
        close(ends[0]);
}

static void say(const void *p, size_t n)
{
        assert_int_equal(send(sock, p, n, MSG_NOSIGNAL), n);
}

static void dial(void)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};

        snprintf(a.sun_path, sizeof(a.sun_path), "%s/" SHEPHERD_SOCKET, top);
        sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(sock, (struct sockaddr *)&a, sizeof(a)), 0);
        struct shepherd_hello h = {{sizeof(h), SHEPHERD_HELLO}, SHEPHERD_VERSION, 1};
        say(&h, sizeof(h));
}

/* Receives the next record of that kind about that request (0: any) and skips others. Returns false after 10
 * s. */
static char batch[65536];
static size_t batch_at, batch_size;
static bool hear(uint32_t kind, uint64_t request, void *ret, size_t size)
{
        for (;;) {
                while (batch_at < batch_size) {
                        struct shepherd_record *r = (void *)(batch + batch_at);
                        struct shepherd_child *c = (void *)r;

                        batch_at += r->size;
                        if (r->kind == kind && (!request || c->id.request == request)) {
                                memcpy(ret, r, size);
                                return true;
                        }
                }
                struct pollfd p = {.fd = sock, .events = POLLIN};
                if (poll(&p, 1, 10000) != 1)
                        return false;
                ssize_t n = recv(sock, batch, sizeof(batch), 0);
                if (n <= 0)
                        return false;
                batch_at = 0;
                batch_size = (size_t)n;
        }
}

static void greet(void)
{
        batch_at = batch_size = 0;
        dial();
        struct shepherd_hello w;
        assert_true(hear(SHEPHERD_WELCOME, 0, &w, sizeof(w)));
        assert_int_equal(w.version, SHEPHERD_VERSION);
}

static void listed(void)
{
        struct shepherd_name end;

        assert_true(hear(SHEPHERD_LISTED, 0, &end, sizeof(end)));
}

struct ask {
        uint64_t request, walltime_ms;
        uint32_t step;
        const char *in, *out, *err, *cwd, *user;
        unsigned flags;
        const char *argv[8];
        const char *big; /* one more environment variable */
        struct shepherd_rlimit limit;
};

static void word(struct buf *b, const char *z)
{
        buf_add(b, z ? z : "", z ? strlen(z) + 1 : 1);
}

static void start(const struct ask *a)
{
        BUF_CLEANUP struct buf b = {0};
        struct shepherd_start h = {.record = {0, SHEPHERD_START},
                                   .id = {.request = a->request, .fence = 1, .step = a->step},
                                   .slot = SHEPHERD_NO_SLOT,
                                   .flags = a->flags,
                                   .walltime_ms = a->walltime_ms,
                                   .envc = 2};

        if (a->limit.hard) {
                h.rlimits[0] = a->limit;
                h.rlimit_count = 1;
        }
        buf_add(&b, &h, sizeof(h));
        word(&b, "me@local");
        word(&b, a->user);
        word(&b, top);
        word(&b, a->cwd);
        word(&b, a->in);
        word(&b, a->out);
        word(&b, a->err);
        word(&b, a->argv[0]);
        for (; a->argv[h.argc]; h.argc++)
                word(&b, a->argv[h.argc]);
        word(&b, "PATH=/usr/bin:/bin");
        char marker[128];
        snprintf(marker, sizeof(marker), SHEPHERD_MARKER "unit-instance/%llu.0.1",
                 (unsigned long long)a->request);
        word(&b, marker);
        if (a->big) {
                word(&b, a->big);
                h.envc++;
        }
        while (b.n % 8)
                buf_char(&b, 0);
        h.record.size = (uint32_t)b.n;
        memcpy(b.p, &h, sizeof(h));
        if (b.n <= SHEPHERD_DIRECT_MAX) {
                say(b.p, b.n);
                return;
        }
        int fd = memfd_create("t", MFD_ALLOW_SEALING);
        assert_int_equal(fs_write_all(fd, b.p, b.n), 0);
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_GROW);
        struct shepherd_record r = {sizeof(r), SHEPHERD_MEMORY};
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec io = {&r, sizeof(r)};
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        assert_int_equal(sendmsg(sock, &m, 0), sizeof(r));
        close(fd);
}

/* The state in which the child ends. */
static struct shepherd_child ended(uint64_t request)
{
        struct shepherd_child c = {0};

        do
                assert_true(hear(SHEPHERD_CHILD, request, &c, sizeof(c)));
        while (c.state == SHEPHERD_RUNNING);
        return c;
}

static struct shepherd_child running(uint64_t request)
{
        struct shepherd_child c = {0};

        assert_true(hear(SHEPHERD_CHILD, request, &c, sizeof(c)));
        assert_int_equal(c.state, SHEPHERD_RUNNING);
        return c;
}

static void tell_name(enum shepherd_kind kind, uint64_t request)
{
        struct shepherd_name n = {{sizeof(n), kind}, {.request = request, .fence = 1}};

        say(&n, sizeof(n));
}

static void content(const char *name, const char *want)
{
        BUF_CLEANUP struct buf b = {0}, path = {0};

        buf_printf(&path, "%s/%s", top, name);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &b, NULL), 0);
        assert_string_equal(buf_z(&b), want);
}

static pid_t pid_in(const char *name)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", top, name);
        for (int i = 0; i < 1000; i++) {
                BUF_CLEANUP struct buf b = {0};
                int64_t pid;

                if (fs_read(AT_FDCWD, path, 64, &b, NULL) == 0 && str_ends(buf_view(&b), STR("\n")) &&
                    str_to_i64(str_trim(buf_view(&b)), &pid) == 0)
                        return (pid_t)pid;
                usleep(10000);
        }
        fail_msg("%s never came", path);
        return -1;
}

static bool alive(pid_t pid)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        BUF_CLEANUP struct buf b = {0};
        return fs_read(AT_FDCWD, path, 4096, &b, NULL) == 0 && !strstr(buf_z(&b), ") Z ");
}

static bool dies(pid_t pid)
{
        for (int i = 0; i < 500; i++, usleep(10000))
                if (!alive(pid))
                        return true;
        return false;
}

static void runs_and_tells(void **state)
{
        (void)state;
        start(&(struct ask){.request = 1,
                            .out = "out",
                            .err = "err",
                            .argv = {"/bin/sh", "-c", "echo hello; echo sorry >&2; pwd; exit 3"}});
        struct shepherd_child c = ended(1);
        assert_int_equal(c.state, SHEPHERD_EXITED);
        assert_int_equal(WEXITSTATUS(c.status), 3);
        assert_int_equal(c.why, SHEPHERD_ITSELF);
        assert_true(c.ended_ms >= c.started_ms && c.memory_peak_bytes > 0);
        char want[128];
        snprintf(want, sizeof(want), "hello\n%s\n", top);
        content("out", want);
        content("err", "sorry\n");
        start(&(struct ask){.request = 2,
                            .out = "out",
                            .flags = SHEPHERD_STDOUT_APPEND | SHEPHERD_STDERR_IS_STDOUT,
                            .in = "/etc/hostname",
                            .cwd = "/",
                            .argv = {"/bin/sh", "-c", "pwd; echo both >&2; kill -9 $$"}});
        c = ended(2);
        assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == 9);
        snprintf(want, sizeof(want), "hello\n%s\n/\nboth\n", top);
        content("out", want);
        start(&(struct ask){.request = 3, .argv = {"/bin/sh", "-c", "kill -QUIT $$"}});
        c = ended(3);
        assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGQUIT);
}

static void says_what_failed(void **state)
{
        (void)state;
        static const struct {
                struct ask ask;
                uint32_t where, error;
        } cases[] = {
                {{.argv = {"/no/such/program"}}, SHEPHERD_AT_EXEC, ENOENT},
                {{.argv = {"/etc/passwd"}}, SHEPHERD_AT_EXEC, EACCES},
                {{.argv = {"/bin/true"}, .in = "missing"}, SHEPHERD_AT_STDIN, ENOENT},
                {{.argv = {"/bin/true"}, .in = "/"}, SHEPHERD_AT_STDIN, EISDIR},
                {{.argv = {"/bin/true"}, .out = "../escape"}, SHEPHERD_AT_STDOUT, EXDEV},
                {{.argv = {"/bin/true"}, .cwd = "/no/such"}, SHEPHERD_AT_CWD, ENOENT},
                {{.argv = {"/bin/true"}, .user = "nobody"}, SHEPHERD_AT_USER, EPERM},
                {{.argv = {NULL}}, SHEPHERD_AT_REQUEST, EINVAL},
        };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct ask a = cases[i].ask;

                a.request = 100 + i;
                start(&a);
                struct shepherd_child c = ended(a.request);
                assert_int_equal(c.state, SHEPHERD_FAILED);
                assert_int_equal(c.where, cases[i].where);
                assert_int_equal(c.error, cases[i].error);
        }
}

static void ends_the_whole_tree(void **state)
{
        (void)state;
        /* the main process ends by itself and leaves one behind in a session of its own */
        start(&(struct ask){.request = 20,
                            .argv = {"/bin/sh", "-c",
                                     "setsid sh -c 'echo $$ > left; exec sleep 1000' & "
                                     "while [ ! -s left ]; do sleep 0.01; done"}});
        assert_int_equal(ended(20).state, SHEPHERD_EXITED);
        assert_true(dies(pid_in("left")));
        /* a child that ignores SIGTERM is killed */
        start(&(struct ask){
                .request = 21,
                .argv = {"/bin/sh", "-c",
                         "trap '' TERM; (trap '' TERM; echo $$; while :; do sleep 0.1; done) > deaf & "
                         "while :; do sleep 0.1; done"}});
        pid_t deaf = pid_in("deaf");
        running(21);
        struct shepherd_kill k = {{sizeof(k), SHEPHERD_KILL}, {.request = 21, .fence = 1}, 100};
        say(&k, sizeof(k));
        struct shepherd_child c = ended(21);
        assert_int_equal(c.why, SHEPHERD_KILLED);
        assert_int_equal(WTERMSIG(c.status), 9);
        assert_true(dies(deaf));
        /* the end of one job does not affect another's orphans */
        start(&(struct ask){.request = 22,
                            .argv = {"/bin/sh", "-c",
                                     "(setsid sh -c 'echo $$ > other; exec sleep 1000' &) ; sleep 1000"}});
        pid_t other = pid_in("other");
        start(&(struct ask){.request = 23, .argv = {"/bin/true"}});
        ended(23);
        assert_true(alive(other));
        k.id.request = 22;
        k.grace_ms = 0;
        say(&k, sizeof(k));
        ended(22);
        assert_true(dies(other));
}

static void no_terminal(void **state)
{
        (void)state;
        start(&(struct ask){.request = 26, .flags = SHEPHERD_TERMINAL, .argv = {"/bin/true"}});
        struct shepherd_child c = ended(26);
        assert_int_equal(c.state, SHEPHERD_FAILED);
        assert_int_equal(c.where, SHEPHERD_AT_STDIN);
        assert_int_equal(c.error, EINVAL);
}

/* A guest runs in the control group of another child, which continues when the guest ends; the guest ends
 * with the other child. */
static void guests(void **state)
{
        (void)state;
        start(&(struct ask){.request = 24, .argv = {"/bin/sh", "-c", "echo $$ > host; exec sleep 1000"}});
        pid_t host = pid_in("host");
        start(&(struct ask){.request = 24,
                            .step = 0x80000001,
                            .flags = SHEPHERD_GUEST,
                            .argv = {"/bin/sh", "-c", "exit 5"}});
        struct shepherd_child c = ended(24);
        assert_int_equal(c.id.step, 0x80000001);
        assert_int_equal(WEXITSTATUS(c.status), 5);
        assert_true(alive(host));
        start(&(struct ask){.request = 24,
                            .step = 0x80000002,
                            .flags = SHEPHERD_GUEST,
                            .argv = {"/bin/sh", "-c", "echo $$ > guest; exec sleep 1000"}});
        pid_t guest = pid_in("guest");
        struct shepherd_kill k = {{sizeof(k), SHEPHERD_KILL}, {.request = 24, .fence = 1}, 0};
        say(&k, sizeof(k));
        assert_true(dies(host));
        assert_true(dies(guest));
        start(&(struct ask){
                .request = 24, .step = 0x80000003, .flags = SHEPHERD_GUEST, .argv = {"/bin/true"}});
        do
                c = ended(24);
        while (c.id.step != 0x80000003);
        assert_int_equal(c.state, SHEPHERD_FAILED);
        assert_int_equal(c.error, ESRCH);
}

#define HANGING 12 /* more than the shepherd has launchers */

/* A child hangs on a file system whose server never answers. */
static void nobody_waits_for_one_that_hangs(void **state)
{
        (void)state;
        char path[96], options[128];
        snprintf(path, sizeof(path), "%s/away", top);
        int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (fuse < 0)
                skip();
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
        if (mount("away", path, "fuse", 0, options) < 0) {
                close(fuse);
                skip();
        }
        for (unsigned i = 0; i < HANGING; i++)
                start(&(struct ask){.request = 35, .step = i, .in = "away/file", .argv = {"/bin/true"}});
        start(&(struct ask){.request = 36, .argv = {"/bin/sleep", "1000"}});
        start(&(struct ask){.request = 37, .argv = {"/bin/true"}});
        assert_int_equal(ended(37).state, SHEPHERD_EXITED);
        for (unsigned i = 0; i < HANGING; i++) {
                struct shepherd_child c = ended(35);

                assert_int_equal(c.state, SHEPHERD_FAILED);
                assert_int_equal(c.where, SHEPHERD_AT_STDIN);
                assert_int_equal(c.error, ETIMEDOUT);
        }
        /* the other child does not count as hanging */
        struct shepherd_kill k = {{sizeof(k), SHEPHERD_KILL}, {.request = 36, .fence = 1}, 0};
        say(&k, sizeof(k));
        assert_int_equal(ended(36).why, SHEPHERD_KILLED);
        assert_int_equal(umount2(path, MNT_DETACH), 0);
        close(fuse);
}

static void limits(void **state)
{
        (void)state;
        start(&(struct ask){.request = 30, .walltime_ms = 50, .argv = {"/bin/sleep", "1000"}});
        assert_int_equal(ended(30).why, SHEPHERD_WALLTIME);
        start(&(struct ask){.request = 31,
                            .limit = {RLIMIT_NOFILE, 0, 17, 17},
                            .out = "limit",
                            .argv = {"/bin/sh", "-c", "ulimit -n"}});
        ended(31);
        content("limit", "17\n");
        start(&(struct ask){.request = 32, .argv = {"/bin/sleep", "1000"}});
        running(32);
        struct shepherd_lease l = {{sizeof(l), SHEPHERD_LEASE}, (uint64_t)clock_boot_ms() + 50};
        say(&l, sizeof(l));
        assert_int_equal(ended(32).why, SHEPHERD_LEASE_ENDED);
        /* also for a child that was told to end and has a long time */
        l.until_boot_ms = 0;
        say(&l, sizeof(l));
        start(&(struct ask){
                .request = 33,
                .argv = {"/bin/sh", "-c", "trap '' TERM; echo $$ > slow; while :; do sleep 0.1; done"}});
        pid_in("slow");
        struct shepherd_kill k = {
                {sizeof(k), SHEPHERD_KILL}, {.request = 33, .fence = 1}, .grace_ms = 3600000};
        say(&k, sizeof(k));
        l.until_boot_ms = (uint64_t)clock_boot_ms() + 50;
        say(&l, sizeof(l));
        assert_int_equal(ended(33).why, SHEPHERD_KILLED);
        l.until_boot_ms = 0;
        say(&l, sizeof(l));
}

static void large_requests(void **state)
{
        (void)state;
        MEM_CLEANUP char *big = mem_alloc(100001);
        memset(big, 'x', 100000);
        memcpy(big, "BIG=", 4);
        big[100000] = 0;
        start(&(struct ask){
                .request = 40, .big = big, .out = "big", .argv = {"/bin/sh", "-c", "echo ${#BIG}"}});
        ended(40);
        content("big", "99996\n");
}

static void suspends(void **state)
{
        (void)state;
        start(&(struct ask){
                .request = 45,
                .argv = {"/bin/sh", "-c", "i=0; while :; do i=$((i+1)); echo $i > tick; sleep 0.01; done"}});
        running(45);
        pid_in("tick");
        tell_name(SHEPHERD_SUSPEND, 45);
        usleep(100000);
        pid_t a = pid_in("tick");
        usleep(100000);
        assert_int_equal(pid_in("tick"), a);
        tell_name(SHEPHERD_RESUME, 45);
        for (int i = 0; i < 500 && pid_in("tick") == a; i++)
                usleep(10000);
        assert_int_not_equal(pid_in("tick"), a);
        struct shepherd_kill k = {{sizeof(k), SHEPHERD_KILL}, {.request = 45, .fence = 1}, 0};
        say(&k, sizeof(k));
        ended(45);
}

static void signals_reach_the_group(void **state)
{
        (void)state;
        start(&(struct ask){.request = 46,
                            .argv = {"/bin/sh", "-c",
                                     "trap 'while [ ! -s heard ]; do sleep 0.01; done; exit 5' USR1; (trap "
                                     "'echo 1 >heard; exit' USR1; echo $$ >inner; "
                                     "while :; do sleep 0.01; done) & while :; do sleep 0.01; done"}});
        running(46);
        pid_in("inner");
        struct shepherd_signal sig = {{sizeof(sig), SHEPHERD_SIGNAL}, {.request = 46, .fence = 1}, 0, 0};
        say(&sig, sizeof(sig));
        sig.signal = 4711;
        say(&sig, sizeof(sig));
        sig.signal = SIGUSR1;
        say(&sig, sizeof(sig));
        struct shepherd_child c = ended(46);
        assert_int_equal(c.why, SHEPHERD_ITSELF);
        assert_int_equal(WEXITSTATUS(c.status), 5);
        assert_int_equal(pid_in("heard"), 1);
        say(&sig, sizeof(sig)); /* no process is signalled */
}

static void remembers_for_the_next_agent(void **state)
{
        (void)state;
        start(&(struct ask){.request = 50, .argv = {"/bin/sh", "-c", "exit 7"}});
        start(&(struct ask){.request = 51, .argv = {"/bin/sleep", "1000"}});
        ended(50);
        close(sock);
        greet();
        struct shepherd_child c;
        assert_true(hear(SHEPHERD_CHILD, 50, &c, sizeof(c)));
        assert_int_equal(WEXITSTATUS(c.status), 7);
        tell_name(SHEPHERD_FORGET, 50);
        close(sock);
        greet();
        assert_true(hear(SHEPHERD_CHILD, 51, &c, sizeof(c)));
        assert_int_equal(c.state, SHEPHERD_RUNNING);
        close(sock);
        greet();
        do {
                while (batch_at < batch_size) {
                        struct shepherd_child *r = (void *)(batch + batch_at);

                        assert_true(r->record.kind != SHEPHERD_CHILD || r->id.request != 50);
                        if (r->record.kind == SHEPHERD_LISTED)
                                return;
                        batch_at += r->record.size;
                }
                ssize_t n = recv(sock, batch, sizeof(batch), 0);
                assert_true(n > 0);
                batch_at = 0;
                batch_size = (size_t)n;
        } while (true);
}

/* Another shepherd, which may make some users of some owners. */
static void becomes_mapped_users_only(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip();
        static const struct {
                const char *map, *user;
                bool allowed;
        } cases[] = {
                {"me@local nobody\n", "nobody", true},   {"*@local *\n", "nobody", false},
                {"you@local nobody\n", "nobody", false}, {"me@local root\n", "root", false},
                {"me@local daemon\n", "daemon", false},  {"me@local nobody\n", "", false},
        };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char sub[96], map[128];

                snprintf(sub, sizeof(sub), "%s/users%u", top, i);
                snprintf(map, sizeof(map), "%s/map", sub);
                assert_int_equal(mkdir(sub, 0700), 0);
                assert_int_equal(fs_write(AT_FDCWD, map, str_of(cases[i].map), 0600, false, NULL), 0);
                char outer[sizeof(top)];
                pid_t outer_shepherd = shepherd;
                int outer_sock = sock;
                memcpy(outer, top, sizeof(top));
                snprintf(top, sizeof(top), "%s", sub);
                users = map;
                start_shepherd();
                users = NULL;
                greet();
                listed();
                chmod(outer, 0711);
                chmod(top, 0777);
                start(&(struct ask){.request = 90,
                                    .user = cases[i].user,
                                    .out = "who",
                                    .argv = {"/bin/sh", "-c", "id -u; id -G"}});
                struct shepherd_child c = ended(90);
                assert_int_equal(c.state, cases[i].allowed ? SHEPHERD_EXITED : SHEPHERD_FAILED);
                if (cases[i].allowed)
                        content("who", "65534\n65534\n");
                else
                        assert_int_equal(c.where, SHEPHERD_AT_USER);
                tell_name(SHEPHERD_QUIT, 0);
                waitpid(shepherd, NULL, 0);
                close(sock);
                shepherd = outer_shepherd;
                sock = outer_sock;
                memcpy(top, outer, sizeof(top));
        }
}

static void garbage_drops_the_agent_only(void **state)
{
        (void)state;
        struct shepherd_record bad[2] = {{4000, SHEPHERD_START}, {1, 1}};
        say(bad, sizeof(bad));
        while (recv(sock, batch, sizeof(batch), 0) > 0)
                continue;
        close(sock);
        greet();
        listed();
}

static void its_death_ends_its_children(void **state)
{
        (void)state;
        start(&(struct ask){.request = 60,
                            .argv = {"/bin/sh", "-c",
                                     "setsid sh -c 'echo $$ > orphan; exec sleep 1000' & "
                                     "echo $$ > main; while :; do sleep 1; done"}});
        pid_t main_pid = pid_in("main"), orphan = pid_in("orphan");
        kill(shepherd, SIGKILL);
        waitpid(shepherd, NULL, 0);
        assert_true(dies(main_pid));
        close(sock);
        start_shepherd(); /* ends what the death signal did not reach */
        assert_true(dies(orphan));
        greet();
        listed();
}

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-shep-XXXXXX", sizeof(top) - 1);
        assert_non_null(mkdtemp(top));
        start_shepherd();
        greet();
        listed();
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        tell_name(SHEPHERD_QUIT, 0);
        int status;
        assert_int_equal(waitpid(shepherd, &status, 0), shepherd);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(sock);
        return fs_remove_tree(AT_FDCWD, top);
}

int main(void)
{
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(runs_and_tells),
                cmocka_unit_test(says_what_failed),
                cmocka_unit_test(ends_the_whole_tree),
                cmocka_unit_test(guests),
                cmocka_unit_test(no_terminal),
                cmocka_unit_test(nobody_waits_for_one_that_hangs),
                cmocka_unit_test(limits),
                cmocka_unit_test(large_requests),
                cmocka_unit_test(suspends),
                cmocka_unit_test(signals_reach_the_group),
                cmocka_unit_test(becomes_mapped_users_only),
                cmocka_unit_test(remembers_for_the_next_agent),
                cmocka_unit_test(garbage_drops_the_agent_only),
                cmocka_unit_test(its_death_ends_its_children),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
