/* far_link SPACE ADDRESS SPACE ADDRESS MILLISECONDS
 *
 * A link with a delay between two network namespaces (of /run/netns), for kernels without sch_netem: a TUN
 * device "far" in each, with that address (10.78.0.1/24), whose packets arrive at the other one after the
 * delay, in order. Rate and loss are set from outside (tc, iptables). Prints "up" when packets pass, and runs
 * until SIGTERM. Needs CAP_NET_ADMIN and CAP_SYS_ADMIN. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MTU     1500
#define PACKETS 16384u /* under way in one direction; more are dropped */

struct packet {
        int64_t due_ns;
        size_t n;
        unsigned char bytes[MTU + 64];
};
struct way { /* of one direction */
        int from, to;
        struct packet *queue;
        unsigned first, count;
};

static int64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what)
{
        fprintf(stderr, "far_link: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void run_ip(const char *const *argv)
{
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
                execvp("ip", (char **)(uintptr_t)argv);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
                fail("ip");
}

static int open_device(const char *space, const char *address)
{
        const char *const add[] = {"ip", "addr", "add", address, "dev", "far", NULL};
        const char *const up[] = {"ip",   "link",       "set",  "far", "mtu",
                                  "1500", "txqueuelen", "1000", "up",  NULL};
        const char *const lo[] = {"ip", "link", "set", "lo", "up", NULL};
        struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI};
        char path[256];

        snprintf(path, sizeof(path), "/run/netns/%s", space);
        int ns = open(path, O_RDONLY | O_CLOEXEC);
        if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
                fail(path);
        close(ns);
        int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        snprintf(r.ifr_name, sizeof(r.ifr_name), "far");
        if (fd < 0 || ioctl(fd, TUNSETIFF, &r) < 0)
                fail("/dev/net/tun");
        run_ip(add);
        run_ip(up);
        run_ip(lo);
        return fd;
}

static void receive(struct way *w, int64_t delay_ns)
{
        for (;;) {
                struct packet *p = &w->queue[(w->first + w->count) % PACKETS], none;
                struct packet *to = w->count < PACKETS ? p : &none;
                ssize_t n = read(w->from, to->bytes, sizeof(to->bytes));

                if (n <= 0)
                        return;
                if (to == &none)
                        continue;
                p->n = (size_t)n;
                p->due_ns = now_ns() + delay_ns;
                w->count++;
        }
}

/* Returns when the next packet is due. */
static int64_t deliver(struct way *w)
{
        while (w->count && w->queue[w->first].due_ns <= now_ns()) {
                const struct packet *p = &w->queue[w->first];

                if (write(w->to, p->bytes, p->n) < 0 && errno == EAGAIN)
                        return now_ns() + 100000;
                w->first = (w->first + 1) % PACKETS;
                w->count--;
        }
        return w->count ? w->queue[w->first].due_ns : INT64_MAX;
}

int main(int argc, char **argv)
{
        struct way ways[2];
        struct pollfd p[2];

        if (argc != 6) {
                fputs("usage: far_link SPACE ADDRESS SPACE ADDRESS MILLISECONDS\n", stderr);
                return 2;
        }
        int64_t delay_ns = (int64_t)(strtod(argv[5], NULL) * 1e6);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        prctl(PR_SET_TIMERSLACK, 50000);
        for (int i = 0; i < 2; i++) {
                ways[i] = (struct way){.from = open_device(argv[1 + 2 * i], argv[2 + 2 * i])};
                ways[i].queue = calloc(PACKETS, sizeof(struct packet));
                p[i] = (struct pollfd){.fd = ways[i].from, .events = POLLIN};
                if (!ways[i].queue)
                        fail("memory");
        }
        ways[0].to = ways[1].from;
        ways[1].to = ways[0].from;
        puts("up");
        fflush(stdout);
        for (;;) {
                int64_t a = deliver(&ways[0]), b = deliver(&ways[1]), next = a < b ? a : b,
                        wait = next - now_ns();
                struct timespec t = {wait > 0 ? wait / 1000000000 : 0, wait > 0 ? wait % 1000000000 : 0};

                if (ppoll(p, 2, next == INT64_MAX ? NULL : &t, NULL) < 0 && errno != EINTR)
                        fail("ppoll");
                for (int i = 0; i < 2; i++)
                        receive(&ways[i], delay_ns);
        }
}
