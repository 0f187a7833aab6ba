#include "server/sources/sources.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "ev/kept_child.h"

struct source {
        struct sources *all;
        const struct config_source *config;
        struct args argv;
        struct kept_child *program;
};
struct sources {
        struct server *server;
        struct source items[CONFIG_SOURCES_MAX];
        size_t count;
};

static void on_due(void *arg)
{
        struct source *x = arg;

        if (kept_child_run(x->program))
                log_info("msg=\"a source was started\" source=%s owner=%s", x->config->name,
                         x->config->owner);
}

static void on_ended(void *arg, int status, const struct err *why)
{
        struct source *x = arg;

        if (why)
                log_error("msg=\"a source cannot be started\" source=%s error=\"%s\"", x->config->name,
                          LOG_TEXT(str_of(why->text)));
        else
                log_warn("msg=\"a source has ended, and is started again\" source=%s signal=%d status=%d",
                         x->config->name, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                         WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static const struct kept_child_ops source_ops = {on_due, on_ended};

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
                make_command(x, buf_z(&program));
                x->program = kept_child_new(s->loop, x->argv.v, &source_ops, x);
                kept_child_start(x->program);
        }
        return 0;
}

void sources_free(struct sources *all)
{
        if (!all)
                return;
        for (size_t i = 0; i < all->count; i++) {
                struct source *x = &all->items[i];

                kept_child_free(x->program);
                args_deinit(&x->argv);
        }
        free(all);
}
