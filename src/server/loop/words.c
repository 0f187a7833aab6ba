#include "server/loop/words.h"

#include <time.h>

#include "core/core.h"
#include "core/data/data.h"
#include "core/query.h"

void words_time(struct buf *out, int64_t ms)
{
        time_t t = (time_t)(ms / 1000);
        struct tm tm;
        char text[40];

        gmtime_r(&t, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
        buf_addz(out, text);
}

static void say_down(void *arg, const struct core_store_down *d)
{
        struct buf *out = arg;

        if (out->n)
                buf_addz(out, "; ");
        buf_printf(out, "store " STR_FMT " has not answered ", STR_ARG(d->store));
        if (d->agents > 1)
                buf_printf(out, "%u of %u agents, %s since ", d->agents, d->of, d->agent);
        else
                buf_printf(out, "agent %s since ", d->agent);
        words_time(out, d->since_ms);
        if (*d->why)
                buf_printf(out, ": %s", d->why);
}

void words_stores_down(struct buf *out, struct core *core, uint64_t request, uint32_t member)
{
        core_job_stores_down(core, request, member, say_down, out);
}

void words_dependency(struct buf *out, const struct core_dependency *d)
{
        static const char *const how[] = {"to succeed", "to fail",       "to end",
                                          "to succeed", "to end",        "to fail or succeed",
                                          "to be held", "to be started", "to end"};

        if (d->all)
                buf_printf(out, "request %llu", (unsigned long long)d->request);
        else
                buf_printf(out, "job%s %llu.", d->total == 1 ? "" : "s", (unsigned long long)d->request);
        if (!d->all)
                set_print(out, &d->members);
        buf_printf(out, " %s", how[d->when]);
        if (d->total > 1)
                buf_printf(out, ": %llu of %llu jobs done", (unsigned long long)(d->succeeded + d->failed),
                           (unsigned long long)d->total);
}

struct waits {
        struct buf *out;
        unsigned open;
};

static void say_open(void *arg, const struct core_dependency *d)
{
        struct waits *w = arg;

        if (d->satisfied || w->open++)
                return;
        buf_addz(w->out, "waits for ");
        words_dependency(w->out, d);
}

void words_dependencies(struct buf *out, struct core *core, uint64_t request, uint32_t member)
{
        struct waits w = {.out = out};

        core_job_dependencies(core, request, member, say_open, &w);
        if (w.open > 1)
                buf_addz(out, ", and for others");
}
