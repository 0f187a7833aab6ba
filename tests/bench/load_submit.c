/* Submits requests of one job each over the API's unix socket, from many connections at once, each of which
 * waits for its answer before it asks again: what the server takes from clients that cost next to nothing
 * (tools/bench calls it).
 *
 *   load_submit SOCKET REQUEST CONNECTIONS SECONDS [PATH]
 *
 * REQUEST is JSON that begins with `{"uuid": "`, 36 characters and a quote; each submit has a new uuid there.
 * Another one goes to PATH as it is. Prints a line `SUBMITS_A_SECOND MEDIAN_US P99_US`; ends with 1 at the
 * first answer that is neither 200 nor 201.
 */
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/system/clock.h"
#include "base/system/uuid.h"
#include "bench.h"

#define CONNECTIONS_MAX 1000
#define UUID_AT         10 /* behind `{"uuid": "` */
#define READ_BYTES      4096

struct client {
        int64_t asked_ns;
        struct buf answer;
};
struct load {
        struct buf ask; /* head and body */
        size_t uuid_at; /* 0: it has none */
        int64_t *took_ns;
        size_t answers, room;
};

static void submit(struct load *l, struct client *c, int fd)
{
        char uuid[UUID_TEXT];

        uuid_new(uuid);
        if (l->uuid_at)
                memcpy(l->ask.p + l->uuid_at, uuid, sizeof(uuid) - 1);
        c->asked_ns = clock_mono_ns();
        buf_reset(&c->answer);
        must(send(fd, l->ask.p, l->ask.n, MSG_NOSIGNAL) == (ssize_t)l->ask.n, "the server does not listen");
}

/* The whole answer is there: its head, and as many bytes as that says. */
static bool is_whole(struct str answer)
{
        const struct str length = STR("\r\nContent-Length: ");
        ptrdiff_t head = str_search(answer, STR("\r\n\r\n")), at = str_search(answer, length);

        if (head < 0)
                return false;
        must(at >= 0 && at < head, "an answer does not tell its length");
        return answer.n >= (size_t)head + 4 + strtoul(answer.p + at + length.n, NULL, 10);
}

static void take(struct load *l, struct client *c, int fd)
{
        ssize_t n = recv(fd, buf_room(&c->answer, READ_BYTES), READ_BYTES, 0);

        must(n > 0, "the server hung up");
        c->answer.n += (size_t)n;
        if (!is_whole(buf_view(&c->answer)))
                return;
        if (!str_starts(buf_view(&c->answer), STR("HTTP/1.1 20"))) {
                fprintf(stderr, "bench: a submit was answered with\n%s\n", buf_z(&c->answer));
                exit(1);
        }
        MEM_GROW(l->took_ns, l->room, l->answers + 1);
        l->took_ns[l->answers++] = clock_mono_ns() - c->asked_ns;
        submit(l, c, fd);
}

static int connected(const char *path)
{
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        must(fd >= 0 && strlen(path) < sizeof(to.sun_path), "no such socket");
        memcpy(to.sun_path, path, strlen(path));
        must(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0, "cannot connect");
        return fd;
}

int main(int argc, char **argv)
{
        must(argc == 5 || argc == 6, "usage: load_submit SOCKET REQUEST CONNECTIONS SECONDS [PATH]");
        size_t count = strtoul(argv[3], NULL, 10), body = strlen(argv[2]);
        must(count > 0 && count <= CONNECTIONS_MAX, "from 1 to 1000 connections");
        must(argc == 6 || (body > UUID_AT + UUID_TEXT && strncmp(argv[2], "{\"uuid\": \"", UUID_AT) == 0),
             "a request begins with its uuid");

        struct client *clients = mem_zalloc(count * sizeof(*clients));
        struct pollfd *fds = mem_zalloc(count * sizeof(*fds));
        struct load l = {0};
        buf_printf(&l.ask,
                   "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                   "application/json\r\nContent-Length: %zu\r\n\r\n",
                   argc == 6 ? argv[5] : "/v1/requests", body);
        l.uuid_at = argc == 6 ? 0 : l.ask.n + UUID_AT;
        buf_add(&l.ask, argv[2], body);
        for (size_t i = 0; i < count; i++)
                fds[i] = (struct pollfd){.fd = connected(argv[1]), .events = POLLIN};

        int64_t start = clock_mono_ns(), end = start + (int64_t)(strtod(argv[4], NULL) * 1e9);
        for (size_t i = 0; i < count; i++)
                submit(&l, &clients[i], fds[i].fd);
        while (clock_mono_ns() < end) {
                must(poll(fds, count, 10000) > 0, "no answer in ten seconds");
                for (size_t i = 0; i < count; i++)
                        if (fds[i].revents)
                                take(&l, &clients[i], fds[i].fd);
        }
        double seconds = (double)(clock_mono_ns() - start) / 1e9;
        must(l.answers > 0, "not one answer");
        double p99 = p99_us(l.took_ns, l.answers);
        size_t middle = l.answers / 2;
        printf("%.6g %.6g %.6g\n", (double)l.answers / seconds, (double)l.took_ns[middle] / 1000, p99);
        for (size_t i = 0; i < count; i++) {
                close(fds[i].fd);
                buf_deinit(&clients[i].answer);
        }
        free(l.took_ns);
        buf_deinit(&l.ask);
        free(clients);
        free(fds);
        return 0;
}
