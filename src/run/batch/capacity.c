/* Asks the system at intervals for its nodes, and sooner after tasks have ended. */
#include "run/batch/capacity.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/u64.h"
#include "run/batch/calls.h"
#include "run/batch/runner.h"
#include "run/batch/state.h"
#include "run/batch/throttle.h"

#define CAPACITY_MS 5000 /* interval between queries */
#define ENDED_MS    1000 /* interval when tasks have ended since */
#define TOOK_TIMES  5    /* the interval is at least this multiple of a query's duration */
#define SAID_MAX    300

struct nodes {
        struct run_capacity last;
        int64_t asked_ms; /* boot clock; 0: never */
        int64_t took_ms;  /* duration of the last query */
        uint64_t asked_wall_ms;
        char *nothing; /* why the system has no nodes for the queue; NULL: it has some */
};

struct nodes *batch_nodes_new(void)
{
        return mem_new(struct nodes);
}

void batch_nodes_free(struct nodes *r)
{
        if (r)
                free(r->nothing);
        free(r);
}

/* Logs once that the queue can run nothing, because its settings name something that does not exist or is
 * closed. */
static void nothing_there(struct batch *b, const char *why, struct str errors)
{
        const char *const names[] = {"partition", "queue"};
        struct buf text = {.max = SAID_MAX + 200};

        buf_addz(&text, b->system->name);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (batch_setting(&b->settings, names[i]))
                        buf_printf(&text, ", %s %.100s", names[i], batch_setting(&b->settings, names[i]));
        buf_printf(&text, ": %s", why ? why : "it has no such queue, or it is closed");
        errors = str_head(str_trim(errors), str_trim(errors).n < SAID_MAX ? str_trim(errors).n : SAID_MAX);
        if (errors.n)
                buf_printf(&text, " (" STR_FMT ")", STR_ARG(errors));
        if (!b->nodes->nothing)
                log_warn("msg=\"nothing to offer\" queue=%s why=\"%s\"", b->queue, LOG_TEXT(buf_view(&text)));
        free(b->nodes->nothing);
        b->nodes->nothing = buf_take(&text);
}

/* Keeps the largest number of free GPUs ever seen as the total, for a system that reports only free ones. */
static void remember_gpus(const struct batch *b, struct run_capacity *c)
{
        if (!b->system->gpus_left)
                return;
        c->gpus = u64_max(c->gpus, b->nodes->last.gpus);
        c->node_gpus = u64_max(c->node_gpus, b->nodes->last.node_gpus);
}

/* Returns why a query failed; Grid Engine's qstat prints no error for an unknown queue. */
static const char *no_answer(const struct batch *b, struct str errors)
{
        if (!str_trim(errors).n && batch_setting(&b->settings, "queue"))
                return "it says nothing of that queue: is there none of that name?";
        return "it does not say what it has";
}

static void on_capacity(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;
        struct run_capacity c = {.known = true, .at_ms = b->nodes->asked_wall_ms, .tasks_max = UINT32_MAX};

        b->nodes->took_ms = clock_boot_ms() - b->nodes->asked_ms;
        if (status == 0) {
                b->system->capacity_read(&b->settings, out, &c);
                remember_gpus(b, &c);
                b->nodes->last = c;
        }
        if (status != 0 || c.cpus_milli == 0) {
                nothing_there(b, status == 0 ? c.nothing : no_answer(b, errors), errors);
        } else {
                free(b->nodes->nothing);
                b->nodes->nothing = NULL;
        }
}

static void ask_capacity(struct batch *b)
{
        struct batch_call call = {.settings = &b->settings};

        b->nodes->asked_ms = clock_boot_ms();
        b->nodes->asked_wall_ms = (uint64_t)clock_wall_ms();
        b->system->capacity(&call);
        batch_run(b, SLOT_CAPACITY, &call, on_capacity, b);
}

void batch_capacity_look(struct batch *b, int64_t now)
{
        int64_t every = b->ended_ms >= b->nodes->asked_ms ? ENDED_MS : CAPACITY_MS;

        if (batch_makes_requests(b) && every < b->nodes->took_ms * TOOK_TIMES) /* this thread reads it */
                every = b->nodes->took_ms * TOOK_TIMES;
        if (b->system->capacity && !batch_busy(b, SLOT_CAPACITY) &&
            (!b->nodes->asked_ms || now - b->nodes->asked_ms >= every))
                ask_capacity(b);
}

static bool gives_several_nodes(const struct batch *b)
{
        const char *setting = b->system->nodes_setting;

        return setting && (!*setting || batch_setting(&b->settings, setting));
}

void batch_capacity(struct runner *r, struct run_capacity *ret)
{
        const struct batch *b = (const struct batch *)(const void *)r;

        *ret = b->nodes->last;
        ret->nothing = b->nodes->nothing;
        ret->task_nodes = gives_several_nodes(b) ? ret->nodes : 1;
        if (batch_throttled(b)) /* no more than is waiting */
                ret->idle_cpus_milli = ret->idle_gpus = 0;
}
