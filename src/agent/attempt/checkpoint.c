#include "agent/attempt/checkpoint.h"

#include <signal.h>
#include <stdlib.h>

#include "agent/attempt/delivery.h"
#include "agent/attempt/kill.h"
#include "agent/attempt/life.h"
#include "agent/model/expand.h"
#include "agent/outbox/outbox.h"
#include "base/sm.h"
#include "base/system/clock.h"
#include "base/system/log.h"

static const char *const state_names[] = {"none", "saving", "carrying", "unacked"};
static const uint32_t moves[] = {
        [CHECKPOINT_NONE] = SM_TO(CHECKPOINT_SAVING) | SM_TO(CHECKPOINT_CARRYING),
        [CHECKPOINT_SAVING] = SM_TO(CHECKPOINT_NONE) | SM_TO(CHECKPOINT_UNACKED),
        [CHECKPOINT_CARRYING] = SM_TO(CHECKPOINT_NONE) | SM_TO(CHECKPOINT_UNACKED),
        [CHECKPOINT_UNACKED] = SM_TO(CHECKPOINT_NONE),
};
static const struct sm machine = {"checkpoint", state_names, moves, CHECKPOINT_STATES};

static void checkpoint_move(struct attempt *at, enum checkpoint_state to)
{
        sm_check(&machine, at->checkpoint.state, to);
        at->checkpoint.state = to;
}

bool checkpoint_under_way(const struct attempt *at)
{
        return at->checkpoint.state == CHECKPOINT_SAVING || at->checkpoint.state == CHECKPOINT_CARRYING;
}

void checkpoint_outputs_drop(struct attempt *at)
{
        for (size_t i = 0; i < at->result.output_count; i++)
                free(at->result.outputs[i].name);
        at->result.output_count = 0;
        if (at->checkpoint.state == CHECKPOINT_UNACKED)
                checkpoint_move(at, CHECKPOINT_NONE);
}

/* ---- made, and saved */

bool checkpoint_made(const struct attempt *at, const struct step_result *r)
{
        if (at->kill.state == KILL_ABANDONED || (at->result.set && at->kill.state != KILL_VACATING))
                return false;
        if (at->kill.state == KILL_VACATING)
                return checkpoint_ended_so(at, r) || at->t->m->keeps_when_evicted;
        return checkpoint_ended_so(at, r) && !checkpoint_goes_home(at, r);
}

void checkpoint_save(struct attempt *at)
{
        checkpoint_outputs_drop(at);
        checkpoint_move(at, CHECKPOINT_SAVING);
        if (at->t->own_cwd)
                delivery_checkpoint(at, NULL);
        else
                checkpoint_saved(at, NULL); /* its files are delivered */
}

void checkpoint_saved(struct attempt *at, const char *reason)
{
        bool carried = at->checkpoint.state == CHECKPOINT_CARRYING;

        if (reason) {
                log_warn("msg=\"a checkpoint cannot be kept\" %s error=\"%s\"",
                         expand_log(at, (char[LOG_NAME]){0}), LOG_TEXT(str_of(reason)));
                checkpoint_outputs_drop(at);
        }
        if (!carried && at->kill.state != KILL_NONE) {
                checkpoint_move(at, CHECKPOINT_NONE);
                at->result.is_checkpoint = at->result.output_count > 0;
                attempt_finish(at);
                return;
        }
        checkpoint_move(at, at->result.output_count ? CHECKPOINT_UNACKED : CHECKPOINT_NONE);
        if (at->result.output_count && at->a->greeted)
                outbox_checkpoint(at);
        if (!carried)
                attempt_next_round(at);
}

void checkpoint_carried(struct attempt *at, const char *files)
{
        if (at->kill.state == KILL_ABANDONED || !at->t->own_cwd)
                return;
        checkpoint_carry_stop(at);
        checkpoint_outputs_drop(at);
        checkpoint_move(at, CHECKPOINT_CARRYING);
        delivery_checkpoint(at, files);
}

void checkpoint_carry_stop(struct attempt *at)
{
        if (at->checkpoint.state != CHECKPOINT_CARRYING)
                return;
        attempt_stop_work(at);
        checkpoint_move(at, CHECKPOINT_NONE);
        checkpoint_outputs_drop(at);
}

void checkpoint_acked(struct attempt *at)
{
        if (at->checkpoint.state == CHECKPOINT_UNACKED)
                checkpoint_outputs_drop(at);
}

void checkpoint_greeted(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        if (at->checkpoint.state == CHECKPOINT_UNACKED)
                                outbox_checkpoint(at);
}

/* ---- asked for */

void checkpoint_ask(struct attempt *at)
{
        const struct job_template *m = at->t->m;

        if (!m->checkpointing || at->state != ATTEMPT_RUNNING || at->kill.state != KILL_NONE)
                return;
        if (!at->stepping || !at->task_runs)
                log_info("msg=\"no checkpoint is asked for: it has made one, and does not run again yet\" "
                         "%s",
                         expand_log(at, (char[LOG_NAME]){0}));
        else
                attempt_send_signal(at, m->checkpointing->signal ? m->checkpointing->signal : m->kill_signal);
}
