#include "agent/attempt/kill.h"

#include <signal.h>

#include "agent/attempt/checkpoint.h"
#include "agent/attempt/life.h"
#include "agent/transfer/output_transfers.h"
#include "base/sm.h"
#include "base/system/clock.h"

#define VACATE_MS 60000

static const char *const state_names[] = {"none", "vacating", "killed", "ended", "abandoned"};
static const uint32_t moves[] = {
        [KILL_NONE] = SM_TO(KILL_VACATING) | SM_TO(KILL_KILLED) | SM_TO(KILL_ENDED) | SM_TO(KILL_ABANDONED),
        [KILL_VACATING] = SM_TO(KILL_ABANDONED),
        [KILL_KILLED] = SM_TO(KILL_ABANDONED),
        [KILL_ENDED] = SM_TO(KILL_ABANDONED),
        [KILL_ABANDONED] = 0,
};
static const struct sm machine = {"kill", state_names, moves, KILL_STATES};

static void kill_move(struct attempt *at, enum kill_state to)
{
        sm_check(&machine, at->kill.state, to);
        at->kill.state = to;
}

void attempt_stop_delivery(struct attempt *at, enum outcome outcome, const char *reason, uint32_t hold_code)
{
        attempt_clear_outcome(at);
        attempt_set_outcome(at, outcome, hold_code, "%s", reason);
        attempt_stop_work(at);
        attempt_finish(at);
}

void attempt_kill(struct attempt *at, enum outcome outcome, uint64_t grace_ms, const char *reason,
                  uint32_t hold_code)
{
        if (at->state == ATTEMPT_DELIVERING &&
            output_transfers_wait_for_store(at)) { /* the wait has no known end */
                attempt_stop_delivery(at, outcome, reason, hold_code);
                return;
        }
        if (at->state >= ATTEMPT_DELIVERING)
                return; /* the program has ended by itself */
        attempt_set_outcome(at, outcome, hold_code, "%s", reason);
        if (at->kill.state == KILL_NONE)
                kill_move(at, KILL_KILLED);
        if (at->state == ATTEMPT_RUNNING && at->stepping) {
                runner_kill(at->q->backend->runner, attempt_task(at), grace_ms);
                return;
        }
        attempt_stop_work(at);
        attempt_finish(at);
}

void attempt_end(struct attempt *at, const char *reason)
{
        if (at->state != ATTEMPT_RUNNING || !at->stepping || at->result.set) {
                attempt_kill(at, OUTCOME_KILLED, at->a->config.kill_grace_ms, reason, 0);
                return;
        }
        if (at->kill.state == KILL_NONE)
                kill_move(at, KILL_ENDED);
        runner_kill(at->q->backend->runner, attempt_task(at), at->a->config.kill_grace_ms);
}

void attempt_abandon(struct attempt *at)
{
        struct agent *a = at->a;

        if (at->kill.state != KILL_ABANDONED)
                kill_move(at, KILL_ABANDONED);
        agent_turn_later(a);
        if (at->state == ATTEMPT_DELIVERING) {
                attempt_stop_work(at); /* what is not yet delivered is not delivered */
                attempt_finish(at);
                return;
        }
        if (at->state == ATTEMPT_RUNNING && at->stepping && at->q->backend->ready) {
                runner_kill(at->q->backend->runner, attempt_task(at), 0);
                return;
        }
        attempt_stop_work(at);
        attempt_forget(at);
}

/* ---- vacated */

void attempt_send_signal(struct attempt *at, int number)
{
        struct runner *r = at->q->backend->runner;

        if (at->suspended) /* a stopped process handles no signal */
                r->kind->resume(r, attempt_task(at));
        runner_signal(r, attempt_task(at), number ? number : SIGTERM);
}

bool attempt_vacate(struct attempt *at, const char *reason)
{
        const struct job_template *m = at->t->m;

        if ((at->kill.state == KILL_VACATING || at->kill.state == KILL_ABANDONED) &&
            at->state == ATTEMPT_RUNNING)
                return true; /* repeated by a reconnected server, or already being ended */
        if ((!m->checkpointing && !m->keeps_when_evicted && !m->kill_signal) || at->result.set)
                return false;
        if (at->adopted && at->state == ATTEMPT_WAITING && !at->q->backend->ready) {
                at->kill.vacate_later = reason; /* a checkpoint may have been made meanwhile */
                return true;
        }
        if (at->state != ATTEMPT_RUNNING || (!at->stepping && !checkpoint_under_way(at)))
                return false;
        attempt_set_outcome(at, OUTCOME_KILLED, 0, "%s", reason);
        kill_move(at, KILL_VACATING);
        if (!at->stepping)
                return true;
        at->kill.at_ms = clock_boot_ms() + (int64_t)(m->vacate_ms ? m->vacate_ms : VACATE_MS);
        attempt_send_signal(at, m->kill_signal     ? m->kill_signal
                                : m->checkpointing ? m->checkpointing->signal
                                                   : 0);
        return true;
}

void attempt_vacate_known(struct attempt *at)
{
        const char *reason = at->kill.vacate_later;

        at->kill.vacate_later = NULL;
        if (!reason || at->state != ATTEMPT_RUNNING || attempt_vacate(at, reason))
                return;
        attempt_set_outcome(at, OUTCOME_KILLED, 0, "%s", reason);
        if (at->kill.state == KILL_NONE)
                kill_move(at, KILL_VACATING);
}

void attempt_vacate_unheard(struct attempt *at)
{
        at->kill.nobody_hears = at->kill.state == KILL_VACATING;
}

/* Returns whether a vacated attempt has used up its time to end by itself. An attempt that waits at another
 * place needs no time, unless a checkpoint that it made before is still on its way to the server. */
static bool is_time(const struct attempt *at, int64_t now)
{
        return at->kill.at_ms && at->stepping &&
               (now >= at->kill.at_ms ||
                (at->kill.nobody_hears && at->checkpoint.state != CHECKPOINT_CARRYING));
}

void attempt_kill_tick(struct agent *a)
{
        int64_t now = clock_boot_ms();

        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        if (is_time(at, now)) {
                                at->kill.at_ms = 0;
                                runner_kill(at->q->backend->runner, attempt_task(at),
                                            a->config.kill_grace_ms);
                        }
}
