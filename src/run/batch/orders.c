/* Detects that a program has begun, and sends it signals as files that its script reads (batch.h). */
#include "run/batch/orders.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/batch/acts.h"
#include "run/batch/remote.h"
#include "run/batch/state.h"
#include "run/batch/tasks.h"

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
        /* names of equal length, so that a shell sorts them by time, also after a restart */
        uint64_t serial = (uint64_t)clock_wall_ms() << 8;
        b->order_serial = serial > b->order_serial ? serial : b->order_serial + 1;
        buf_printf(&path, "%s/" BATCH_STEP ".%u.order.%016llx", t->box, t->id.step,
                   (unsigned long long)b->order_serial);
        if (fs_write(AT_FDCWD, buf_z(&path), buf_view(&text), b->user_commands ? 0644 : 0600, false, &err) <
            0) {
                log_warn("msg=\"cannot send a signal\" error=\"%s\"", LOG_TEXT(str_of(err.text)));
                return;
        }
        batch_remote_order(b, buf_z(&path));
        batch_act(b, t, BATCH_NUDGE);
}

/* Stops or continues a task by the system's verb if it has one, else by a signal to the program. */
void batch_stop(struct batch *b, struct task *t, bool on)
{
        enum batch_verb verb = on ? BATCH_STOP : BATCH_CONTINUE;

        t->stopped = on;
        if (batch_has(b, verb))
                batch_act(b, t, verb);
        else
                batch_order(b, t, on ? SIGSTOP : SIGCONT);
}

void batch_see_begin(struct batch *b, struct task *t)
{
        uint64_t at = t->begun ? 0 : batch_written_ms(t, "began");

        if (!at)
                return;
        t->started_ms = at;
        t->begun = true;
        t->begun_ms = clock_boot_ms();
        if (b->listed)
                batch_tell(b, t, false);
        if (t->suspended)
                batch_stop(b, t, true);
}
