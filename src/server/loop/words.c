#include "server/loop/words.h"

#include <time.h>

#include "core/core.h"
#include "core/data/data.h"

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
