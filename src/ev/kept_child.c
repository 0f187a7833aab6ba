#include "ev/kept_child.h"

#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "ev/children.h"

#define PAUSE_FIRST_MS 1000
#define PAUSE_MAX_MS   60000
#define GOOD_MS        60000 /* after a run of this length the pause is short again */

struct kept_child {
        struct loop *loop;
        char *const *argv;
        const struct kept_child_ops *ops;
        void *arg;
        struct child *child; /* NULL: not running */
        struct timer *due;
        struct backoff backoff;
        int64_t started_ms; /* boot clock */
        bool stopped;       /* not due again */
};

static void kept_due(void *arg)
{
        struct kept_child *k = arg;

        if (!k->child && !k->stopped)
                k->ops->due(k->arg);
}

struct kept_child *kept_child_new(struct loop *l, char *const *argv, const struct kept_child_ops *ops,
                                  void *arg)
{
        struct kept_child *k = mem_new(struct kept_child);

        *k = (struct kept_child){.loop = l,
                                 .argv = argv,
                                 .ops = ops,
                                 .arg = arg,
                                 .backoff = BACKOFF(PAUSE_FIRST_MS, PAUSE_MAX_MS),
                                 .stopped = true};
        k->due = timer_new(l, kept_due, k);
        return k;
}

void kept_child_free(struct kept_child *k)
{
        if (!k)
                return;
        if (k->child) {
                child_kill(k->child, SIGTERM);
                child_forget(k->child);
        }
        timer_free(k->due);
        free(k);
}

void kept_child_start(struct kept_child *k)
{
        k->stopped = false;
        if (k->child)
                return;
        backoff_reset(&k->backoff);
        timer_start(k->due, 0);
}

void kept_child_start_later(struct kept_child *k)
{
        k->stopped = false;
        if (!k->child)
                timer_start(k->due, backoff_wait(&k->backoff));
}

static void end(struct kept_child *k, int status, const struct err *why)
{
        k->child = NULL;
        if (clock_boot_ms() - k->started_ms >= GOOD_MS)
                backoff_reset(&k->backoff);
        if (!k->stopped)
                timer_start(k->due, backoff_wait(&k->backoff));
        k->ops->ended(k->arg, status, why);
}

static void kept_exited(void *arg, struct child *c, int status)
{
        (void)c;
        end(arg, status, NULL);
}

bool kept_child_run(struct kept_child *k)
{
        struct child_spec spec = {.argv = k->argv,
                                  .stdin_fd = -1,
                                  .stdout_fd = -1,
                                  .stderr_fd = -1,
                                  .die_with_parent = true,
                                  .new_session = true};
        struct err err = {0};

        if (k->child)
                return true;
        k->started_ms = clock_boot_ms();
        if (child_spawn(k->loop, &spec, kept_exited, k, &k->child, &err) == 0)
                return true;
        end(k, 0, &err);
        return false;
}

void kept_child_stop(struct kept_child *k)
{
        k->stopped = true;
        timer_stop(k->due);
        if (k->child)
                child_kill(k->child, SIGTERM);
}

void kept_child_kill(struct kept_child *k)
{
        k->stopped = true;
        timer_stop(k->due);
        if (k->child)
                child_end(k->child);
        k->child = NULL;
}

bool kept_child_running(const struct kept_child *k)
{
        return k->child;
}
