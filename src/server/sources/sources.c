#include "server/sources/sources.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "ev/children.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_MAX_MS   60000
#define GOOD_MS        60000 /* after a run of this length the pause is reset */

struct source {
        struct sources *all;
        const struct config_source *config;
        struct args argv;
        struct child *child; /* NULL: not running */
        struct timer *start;
        struct backoff backoff;
        int64_t started_ms; /* boot clock */
};
struct sources {
        struct server *server;
        struct source items[CONFIG_SOURCES_MAX];
        size_t count;
};

static void start_later(struct source *x)
{
        if (clock_boot_ms() - x->started_ms >= GOOD_MS)
                backoff_reset(&x->backoff);
        timer_start(x->start, backoff_wait(&x->backoff));
}

static void exited(void *arg, struct child *c, int status)
{
        struct source *x = arg;

        (void)c;
        x->child = NULL;
        log_warn("msg=\"a source has ended, and is started again\" source=%s signal=%d status=%d",
                 x->config->name, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                 WIFEXITED(status) ? WEXITSTATUS(status) : 0);
        start_later(x);
}

static void start(void *arg)
{
        struct source *x = arg;
        struct child_spec spec = {.argv = x->argv.v,
                                  .stdin_fd = -1,
                                  .stdout_fd = -1,
                                  .stderr_fd = -1,
                                  .die_with_parent = true,
                                  .new_session = true};
        struct err err = {0};

        x->started_ms = clock_boot_ms();
        if (child_spawn(x->all->server->loop, &spec, exited, x, &x->child, &err) == 0) {
                log_info("msg=\"a source was started\" source=%s owner=%s", x->config->name,
                         x->config->owner);
                return;
        }
        log_error("msg=\"a source cannot be started\" source=%s error=\"%s\"", x->config->name,
                  LOG_TEXT(str_of(err.text)));
        start_later(x);
}

static void make_command(struct source *x, const char *program)
{
        const struct config_source *c = x->config;
        char most[24];

        snprintf(most, sizeof(most), "%llu", (unsigned long long)c->most);
        args_add(&x->argv, str_of(program));
        args_add(&x->argv, STR("source"));
        args_add(&x->argv, STR("--dir"));
        args_add(&x->argv, str_of(x->all->server->paths.dir));
        args_add(&x->argv, STR("--name"));
        args_add(&x->argv, str_of(c->name));
        args_add(&x->argv, STR("--owner"));
        args_add(&x->argv, str_of(c->owner));
        if (c->most) {
                args_add(&x->argv, STR("--most"));
                args_add(&x->argv, str_of(most));
        }
        args_add(&x->argv, STR("--"));
        for (size_t i = 0; i < c->command.n; i++)
                args_add(&x->argv, str_of(c->command.v[i]));
}

int sources_open(struct server *s, struct sources **ret, struct err *err)
{
        BUF_CLEANUP struct buf program = {0};
        const struct config_sources *c = &s->config.sources;
        struct sources *all;

        *ret = NULL;
        if (c->count == 0)
                return 0;
        if (program_find("drover", &program, err) != 0)
                return -ENOENT;
        *ret = all = mem_new(struct sources);
        all->server = s;
        for (; all->count < c->count; all->count++) {
                struct source *x = &all->items[all->count];

                x->all = all;
                x->config = &c->items[all->count];
                x->backoff = BACKOFF(PAUSE_FIRST_MS, PAUSE_MAX_MS);
                x->start = timer_new(s->loop, start, x);
                make_command(x, buf_z(&program));
                timer_start(x->start, 0);
        }
        return 0;
}

void sources_free(struct sources *all)
{
        if (!all)
                return;
        for (size_t i = 0; i < all->count; i++) {
                struct source *x = &all->items[i];

                if (x->child) {
                        child_kill(x->child, SIGTERM);
                        child_forget(x->child);
                }
                timer_free(x->start);
                args_deinit(&x->argv);
        }
        free(all);
}
