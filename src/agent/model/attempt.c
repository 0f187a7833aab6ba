#include "agent/model/attempt.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct attempt_name attempt_name(const struct attempt *at)
{
        return (struct attempt_name){at->request, at->fence, at->member};
}

struct run_id attempt_task(const struct attempt *at)
{
        return (struct run_id){at->request, at->member, at->fence,
                               at->step + STEPS_MAX * at->checkpoint.round, 0};
}

void attempt_set_outcome(struct attempt *at, enum outcome outcome, uint32_t hold_code, const char *fmt, ...)
{
        if (at->result.set)
                return;
        at->result.set = true;
        at->result.outcome = outcome;
        at->result.hold_code = hold_code;
        struct buf b = {.max = 1024};
        va_list ap;
        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        at->result.reason = buf_take(&b);
}

void attempt_clear_outcome(struct attempt *at)
{
        at->result.set = false;
        free(at->result.reason);
        at->result.reason = NULL;
}

bool attempt_has_container(const struct attempt *at)
{
        if (queue_hands_on(at->q))
                return false;
        for (size_t i = 0; i < at->t->m->step_count; i++)
                if (*at->t->m->steps[i].container)
                        return true;
        return false;
}

struct held_template *held_template_ref(struct held_template *t)
{
        t->refs++;
        return t;
}

void held_template_unref(struct held_template *t)
{
        if (!t || --t->refs > 0)
                return;
        t->a->held_bytes -= t->bytes;
        job_template_free(t->m);
        free(t->not_mapped);
        free(t);
}
