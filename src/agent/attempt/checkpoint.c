#include "agent/attempt/checkpoint.h"

#include <signal.h>
#include <stdlib.h>

#include "agent/attempt/life.h"
#include "agent/outbox/outbox.h"
#include "agent/transfer/stage.h"
#include "base/clock.h"
#include "base/log.h"

#define VACATE_MS 60000

/* ---- made, and saved */

bool checkpoint_made(const struct attempt *at, const Drover__StepResult *r)
{
        if (at->abandon || (at->outcome_set && !at->vacating))
                return false;
        if (at->vacating)
                return checkpoint_ended_so(at, r) || at->t->m->keeps_when_evicted;
        return checkpoint_ended_so(at, r) && !checkpoint_goes_home(at, r);
}

void checkpoint_save(struct attempt *at)
{
        checkpoint_outputs_drop(at);
        at->checkpointing = true;
        if (at->t->own_cwd)
                stage_checkpoint(at, NULL);
        else
                checkpoint_saved(at, NULL); /* its files are where they belong */
}

static void tell(struct attempt *at)
{
        Drover__ToServer m = DROVER__TO_SERVER__INIT;
        BUF_CLEANUP struct buf packed = {0};
        outbox_pack_result(at, &packed);
        m.kind_case = DROVER__TO_SERVER__KIND_CHECKPOINT;
        m.checkpoint = drover__job_result__unpack(NULL, packed.n, (const uint8_t *)packed.p);
        if (at->a->greeted && m.checkpoint)
                outbox_send(at->a, &m);
        drover__job_result__free_unpacked(m.checkpoint, NULL);
}

void checkpoint_saved(struct attempt *at, const char *reason)
{
        bool carried = at->carrying;
        at->checkpointing = at->carrying = false;
        if (reason) {
                log_warn("msg=\"a checkpoint cannot be kept\" job=%llu.%u error=\"%s\"",
                         (unsigned long long)at->request, at->member, LOG_TEXT(str_of(reason)));
                checkpoint_outputs_drop(at);
        }
        if (!carried && (at->abandon || at->killing)) {
                at->checkpoint_result = at->output_count > 0;
                attempt_finish(at);
                return;
        }
        if (at->output_count) {
                at->checkpoint_unacked = true;
                tell(at);
        }
        if (!carried)
                attempt_next_round(at);
}

void checkpoint_carried(struct attempt *at, const char *files)
{
        if (at->abandon || !at->t->own_cwd)
                return;
        checkpoint_carry_stop(at);
        checkpoint_outputs_drop(at);
        at->checkpointing = at->carrying = true;
        stage_checkpoint(at, files);
}

void checkpoint_carry_stop(struct attempt *at)
{
        if (!at->carrying)
                return;
        attempt_stop_work(at);
        at->checkpointing = at->carrying = false;
        checkpoint_outputs_drop(at);
}

void checkpoint_acked(struct attempt *at)
{
        if (at->checkpoint_unacked)
                checkpoint_outputs_drop(at);
}

void checkpoint_greeted(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        if (at->checkpoint_unacked)
                                tell(at);
}

/* ---- asked for */

static void send_signal(struct attempt *at, int number)
{
        struct runner *r = at->q->backend->runner;
        if (at->suspended) /* what is stopped hears nothing */
                r->kind->resume(r, attempt_task(at));
        runner_signal(r, attempt_task(at), number ? number : SIGTERM);
}

void checkpoint_ask(struct attempt *at)
{
        const Drover__Template *m = at->t->m;
        if (!m->checkpointing || at->state != ATTEMPT_RUNNING || at->killing)
                return;
        if (!at->stepping || !at->task_runs)
                log_info("msg=\"no checkpoint is asked for: it has made one, and does not run again yet\" "
                         "job=%llu.%u",
                         (unsigned long long)at->request, at->member);
        else
                send_signal(at, m->checkpointing->signal ? m->checkpointing->signal : m->kill_signal);
}

bool checkpoint_vacate(struct attempt *at, const char *reason)
{
        const Drover__Template *m = at->t->m;
        if (at->vacating && at->state == ATTEMPT_RUNNING)
                return true; /* said again, by a server that is back */
        if ((!m->checkpointing && !m->keeps_when_evicted && !m->kill_signal) || at->outcome_set)
                return false;
        if (at->adopted && at->state == ATTEMPT_WAITING && !at->q->backend->ready) {
                at->vacate_later = reason; /* it may have made its checkpoint while nobody looked */
                return true;
        }
        if (at->state != ATTEMPT_RUNNING || (!at->stepping && !at->checkpointing))
                return false;
        attempt_set_outcome(at, DROVER__OUTCOME__KILLED, 0, "%s", reason);
        at->killing = at->vacating = true;
        if (!at->stepping)
                return true;
        at->kill_at_ms = clock_boot_ms() + (int64_t)(m->vacate_ms ? m->vacate_ms : VACATE_MS);
        send_signal(at, m->kill_signal ? m->kill_signal : m->checkpointing ? m->checkpointing->signal : 0);
        return true;
}

void checkpoint_known(struct attempt *at)
{
        const char *reason = at->vacate_later;
        at->vacate_later = NULL;
        if (!reason || at->state != ATTEMPT_RUNNING || checkpoint_vacate(at, reason))
                return;
        attempt_set_outcome(at, DROVER__OUTCOME__KILLED, 0, "%s", reason);
        at->killing = at->vacating = true;
}

void checkpoint_nobody(struct attempt *at)
{
        at->nobody_hears = at->vacating;
}

/* What waits elsewhere has no use for its time; but what it has made before may be on its way to the server.
 */
static bool is_time(const struct attempt *at, int64_t now)
{
        return at->kill_at_ms && at->stepping &&
               (now >= at->kill_at_ms || (at->nobody_hears && !at->carrying));
}

void checkpoint_tick(struct agent *a)
{
        int64_t now = clock_boot_ms();
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        if (is_time(at, now)) {
                                at->kill_at_ms = 0;
                                runner_kill(at->q->backend->runner, attempt_task(at),
                                            a->config.kill_grace_ms);
                        }
}
