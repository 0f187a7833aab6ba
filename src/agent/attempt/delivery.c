#include "agent/attempt/delivery.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/attempt/checkpoint.h"
#include "agent/attempt/life.h"
#include "agent/transfer/output_transfers.h"
#include "agent/transfer/spool.h"
#include "agent/transfer/stage.h"
#include "base/mem.h"
#include "base/sm.h"

enum delivery_state { DELIVERY_STAGING, DELIVERY_SENDING, DELIVERY_UPLOADING, DELIVERY_STATES };

struct delivery {
        enum delivery_state state;
        struct outputs outputs;
};

static const char *const state_names[] = {"staging", "sending", "uploading"};
static const uint32_t moves[] = {
        [DELIVERY_STAGING] = SM_TO(DELIVERY_SENDING) | SM_TO(DELIVERY_UPLOADING),
        [DELIVERY_SENDING] = SM_TO(DELIVERY_UPLOADING),
        [DELIVERY_UPLOADING] = 0,
};
static const struct sm machine = {"delivery", state_names, moves, DELIVERY_STATES};

static void delivery_move(struct delivery *d, enum delivery_state to)
{
        sm_check(&machine, d->state, to);
        d->state = to;
}

void delivery_forget(struct attempt *at)
{
        struct delivery *d = at->delivery;

        if (!d)
                return;
        at->delivery = NULL;
        outputs_deinit(&d->outputs);
        free(d);
}

static void delivery_over(struct attempt *at, int hold_code, const char *reason)
{
        delivery_forget(at);
        if (checkpoint_under_way(at)) {
                checkpoint_saved(at, hold_code ? reason : NULL);
                return;
        }
        if (hold_code && at->result.outcome == OUTCOME_EXITED && at->kill.state != KILL_ABANDONED) {
                attempt_clear_outcome(at);
                attempt_set_outcome(at, OUTCOME_STAGING_FAILED, (uint32_t)hold_code, "%s", reason);
        }
        attempt_finish(at);
}

/* Delivery goes on with its next state: outputs to URLs, then to the spool; when neither is left it is over.
 */
static void delivery_go_on(struct attempt *at)
{
        struct delivery *d = at->delivery;
        struct outputs *o = &d->outputs;

        if (d->state == DELIVERY_STAGING && o->count) {
                delivery_move(d, DELIVERY_SENDING);
                output_transfers_start(at, o);
        } else if (d->state != DELIVERY_UPLOADING && o->paths) {
                char **paths = o->paths;
                int data = o->data;

                o->paths = NULL;
                o->data = -1;
                delivery_move(d, DELIVERY_UPLOADING);
                spool_upload(at, paths, data);
        } else {
                delivery_over(at, 0, NULL);
        }
}

void delivery_outputs(struct attempt *at, struct outputs *outputs)
{
        at->delivery->outputs = *outputs;
        delivery_go_on(at);
}

void delivery_part_over(struct attempt *at, int hold_code, const char *reason)
{
        if (hold_code)
                delivery_over(at, hold_code, reason);
        else
                delivery_go_on(at);
}

static void delivery_new(struct attempt *at)
{
        delivery_forget(at);
        at->delivery = mem_new(struct delivery);
        at->delivery->outputs.data = -1;
}

void delivery_begin(struct attempt *at)
{
        delivery_new(at);
        stage_out(at);
}

void delivery_checkpoint(struct attempt *at, const char *carried)
{
        delivery_new(at);
        stage_checkpoint(at, carried);
}
