/* Signals for programs, as files that their scripts take (batch.h). */
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "run/batch/private.h"

bool batch_has(const struct batch *b, enum batch_verb verb)
{
        return b->verbs & (1u << verb);
}

void batch_order(struct batch *b, struct task *t, int signal)
{
        BUF_CLEANUP struct buf path = {0}, text = {0};
        struct err err = {""};
        const char *name = sigabbrev_np(signal);
        batch_see_begin(b, t);
        if (!t->begun || t->state == TASK_OVER || signal <= 0 || signal > SIGRTMAX)
                return;
        if (name)
                buf_printf(&text, "%s\n", name);
        else
                buf_printf(&text, "%d\n", signal);
        /* names of one length, so that a shell's order is theirs; also after a restart */
        uint64_t serial = (uint64_t)clock_wall_ms() << 8;
        b->order_serial = serial > b->order_serial ? serial : b->order_serial + 1;
        buf_printf(&path, "%s/" BATCH_STEP ".%u.order.%016llx", t->box, t->id.step,
                   (unsigned long long)b->order_serial);
        if (fs_write(AT_FDCWD, buf_z(&path), buf_view(&text), b->errands ? 0644 : 0600, false, &err) < 0) {
                log_warn("msg=\"cannot send a signal\" error=\"%s\"", LOG_TEXT(str_of(err.text)));
                return;
        }
        batch_act(b, t, BATCH_NUDGE);
}
