#include "postgres_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "store_help.h"

#define PAIRS_MAX 32

static const char *socket_folder(void)
{
        const char *folder = getenv("DROVER_TEST_POSTGRES");

        if (!folder)
                fail_msg("run this by tests/conform/with_postgres.py");
        return folder;
}

static char *address_at(const char *folder, const char *schema)
{
        struct buf b = {0};

        buf_printf(&b, "postgresql://postgres@/test?host=%s&options=-csearch_path%%3D%s", folder, schema);
        return buf_take(&b);
}

void postgres_sql(const char *address, const char *sql)
{
        PGconn *conn = PQconnectdb(address);
        PGresult *res = PQexec(conn, sql);

        if (PQresultStatus(res) != PGRES_COMMAND_OK && PQresultStatus(res) != PGRES_TUPLES_OK)
                fail_msg("%s: %s", sql, PQerrorMessage(conn));
        PQclear(res);
        PQfinish(conn);
}

char *postgres_new_address(void)
{
        static unsigned count;
        char schema[40], sql[80];
        char *address;

        snprintf(schema, sizeof(schema), "t_%ld_%u", (long)getpid(), ++count);
        snprintf(sql, sizeof(sql), "CREATE SCHEMA %s", schema);
        address = address_at(socket_folder(), schema);
        postgres_sql(address, sql);
        return address;
}

/* ---- the line */

struct line {
        char *folder;
        int listener, wake[2];
        pthread_t thread;
        atomic_bool stop, frozen;
        atomic_size_t cut_after[2]; /* by direction; 0: never */
        atomic_size_t bytes[2];
        atomic_uint cuts;
        struct pair {
                int fd[2]; /* the store's and PostgreSQL's; -1: none */
        } pairs[PAIRS_MAX];
};

static void pair_close(struct pair *p)
{
        for (int i = 0; i < 2; i++) {
                close(p->fd[i]);
                p->fd[i] = -1;
        }
}

static int connected(const char *folder)
{
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(to.sun_path, sizeof(to.sun_path), "%s/.s.PGSQL.5432", folder);
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
                return fd;
        close(fd);
        return -1;
}

static void line_accept(struct line *l)
{
        int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);

        for (int i = 0; fd >= 0 && i < PAIRS_MAX; i++)
                if (l->pairs[i].fd[0] < 0) {
                        l->pairs[i].fd[0] = fd;
                        l->pairs[i].fd[1] = connected(socket_folder());
                        if (l->pairs[i].fd[1] < 0)
                                pair_close(&l->pairs[i]);
                        return;
                }
        close(fd);
}

/* Hands on what is there, up to where the line is cut. False: the pair is gone. */
static bool hand_on(struct line *l, struct pair *p, int from)
{
        char bytes[16384];
        ssize_t n = recv(p->fd[from], bytes, sizeof(bytes), 0);
        size_t left = atomic_load(&l->cut_after[from]);
        bool cut = n > 0 && left > 0 && (size_t)n >= left;

        if (n <= 0)
                return false;
        if (cut)
                n = (ssize_t)left;
        atomic_fetch_add(&l->bytes[from], (size_t)n);
        for (ssize_t sent = 0, m; sent < n; sent += m) {
                m = send(p->fd[!from], bytes + sent, (size_t)(n - sent), MSG_NOSIGNAL);
                if (m <= 0)
                        return false;
        }
        if (left > 0)
                atomic_store(&l->cut_after[from], left - (size_t)n);
        if (cut)
                atomic_fetch_add(&l->cuts, 1);
        return !cut;
}

static void *line_main(void *arg)
{
        struct line *l = arg;

        while (!atomic_load(&l->stop)) {
                struct pollfd fds[2 + 2 * PAIRS_MAX] = {{.fd = l->wake[0], .events = POLLIN},
                                                        {.fd = l->listener, .events = POLLIN}};
                bool frozen = atomic_load(&l->frozen);
                char byte;

                for (int i = 0; i < 2 * PAIRS_MAX; i++)
                        fds[2 + i] = (struct pollfd){.fd = frozen ? -1 : l->pairs[i / 2].fd[i % 2],
                                                     .events = POLLIN};
                poll(fds, 2 + 2 * PAIRS_MAX, -1);
                if (fds[0].revents && read(l->wake[0], &byte, 1) != 1)
                        break;
                for (int i = 0; i < 2 * PAIRS_MAX; i++)
                        if (fds[2 + i].revents && l->pairs[i / 2].fd[0] >= 0 && !atomic_load(&l->frozen) &&
                            !hand_on(l, &l->pairs[i / 2], i % 2))
                                pair_close(&l->pairs[i / 2]);
                if (fds[1].revents)
                        line_accept(l);
        }
        return NULL;
}

struct line *line_new(void)
{
        struct line *l = mem_new(struct line);
        struct sockaddr_un at = {.sun_family = AF_UNIX};

        for (int i = 0; i < PAIRS_MAX; i++)
                l->pairs[i].fd[0] = l->pairs[i].fd[1] = -1;
        l->folder = mem_dupz("/tmp/drover-line-XXXXXX");
        assert_non_null(mkdtemp(l->folder));
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/.s.PGSQL.5432", l->folder);
        l->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(l->listener, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(listen(l->listener, 64), 0);
        assert_int_equal(pipe(l->wake), 0);
        assert_int_equal(pthread_create(&l->thread, NULL, line_main, l), 0);
        return l;
}

static void wake(struct line *l)
{
        assert_int_equal(write(l->wake[1], "", 1), 1);
}

void line_free(struct line *l)
{
        BUF_CLEANUP struct buf name = {0};

        atomic_store(&l->stop, true);
        wake(l);
        pthread_join(l->thread, NULL);
        for (int i = 0; i < PAIRS_MAX; i++)
                if (l->pairs[i].fd[0] >= 0)
                        pair_close(&l->pairs[i]);
        close(l->listener);
        close(l->wake[0]);
        close(l->wake[1]);
        buf_printf(&name, "%s/.s.PGSQL.5432", l->folder);
        unlink(buf_z(&name));
        rmdir(l->folder);
        free(l->folder);
        free(l);
}

char *line_address(const struct line *l, const char *address)
{
        return address_at(l->folder, strstr(address, "search_path%3D") + strlen("search_path%3D"));
}

void line_cut_after(struct line *l, bool from_server, size_t bytes)
{
        atomic_store(&l->cut_after[from_server], bytes);
}

void line_freeze(struct line *l, bool frozen)
{
        atomic_store(&l->frozen, frozen);
        wake(l);
}

unsigned line_cuts(struct line *l)
{
        return atomic_load(&l->cuts);
}

size_t line_bytes(struct line *l, bool from_server)
{
        return atomic_load(&l->bytes[from_server]);
}
