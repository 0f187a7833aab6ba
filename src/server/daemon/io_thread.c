#include "server/daemon/io_thread.h"

#include <sys/resource.h>

#include "base/system/log.h"
#include "server/access/access.h"
#include "server/agents/agent_sessions.h"
#include "server/api/http_api.h"
#include "server/loop/thread.h"

/* file descriptors that connections must leave to the store, the spool and files of jobs */
#define FILES_RESERVED 512u
#define AGENTS_MAX     20000u
#define API_MAX        4096u
#define CLOCK_LOOK_MS  5000

struct io_thread {
        struct server *server;
        struct thread *thread;
        struct http_api *api;
        struct tls_context *tls; /* has the server's certificate, and asks clients for theirs */
        struct timer *clock;     /* checks the wall clock */
};

static size_t least(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* Limits connections so that files can always be opened. */
static void limit_connections(size_t *ret_api, size_t *ret_agents)
{
        struct rlimit files = {.rlim_cur = RLIM_INFINITY};
        size_t room;

        getrlimit(RLIMIT_NOFILE, &files);
        room = files.rlim_cur < 2 * FILES_RESERVED ? files.rlim_cur / 2 : files.rlim_cur - FILES_RESERVED;
        *ret_api = least(API_MAX, room / 3);
        *ret_agents = least(AGENTS_MAX, room - *ret_api);
}

/* Renews the certificate if the wall clock was set. */
static void on_clock(void *arg)
{
        struct io_thread *t = arg;
        struct err err = {0};
        int r = access_tls_renew(t->server->access, &t->server->config, t->tls, &err);

        if (r > 0)
                log_info("msg=\"the clock was set: the server has a new certificate\"");
        else if (r < 0)
                log_warn("msg=\"the server's certificate cannot be made anew\" why=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
        timer_start(t->clock, CLOCK_LOOK_MS);
}

int io_thread_new(struct server *s, struct io_thread **ret, struct err *err)
{
        struct io_thread *t = mem_new(struct io_thread);
        size_t api_max, agents_max;
        int r;

        limit_connections(&api_max, &agents_max);
        t->server = s;
        t->thread = thread_new(s);
        t->clock = timer_new(thread_loop(t->thread), on_clock, t);
        s->io_mail = thread_mail(t->thread);
        *ret = t;
        r = access_tls(s, &t->tls, err);
        if (r == 0)
                r = http_api_new(s, thread_loop(t->thread), t->tls, api_max, &t->api, err);
        if (r == 0 && !s->following)
                r = agent_sessions_new(s, thread_loop(t->thread), t->tls, agents_max, &s->agent_sessions,
                                       err);
        return r;
}

int io_thread_start(struct io_thread *t, struct err *err)
{
        timer_start(t->clock, CLOCK_LOOK_MS);
        return thread_start(t->thread, err);
}

const char *io_thread_api_tls(const struct io_thread *t)
{
        return http_api_tls_address(t->api);
}

void io_thread_stop(struct io_thread *t)
{
        if (t)
                thread_stop(t->thread);
}

/* Some tasks hold calls with HTTP requests, so tasks are freed first. */
void io_thread_free(struct io_thread *t)
{
        if (!t)
                return;
        agent_sessions_free(t->server->agent_sessions);
        t->server->io_mail = NULL;
        thread_drop_tasks(t->thread);
        http_api_free(t->api);
        tls_unref(t->tls);
        timer_free(t->clock);
        thread_free(t->thread);
        free(t);
}
