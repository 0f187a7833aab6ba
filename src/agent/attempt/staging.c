#include "agent/attempt/staging.h"

#include <string.h>

#include "agent/attempt/life.h"
#include "agent/attempt/limits.h"
#include "agent/container/containers.h"
#include "agent/credential/credentials.h"
#include "agent/environment/environments.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/inputs.h"
#include "agent/transfer/stage.h"
#include "base/sm.h"
#include "base/system/log.h"

static const char *const state_names[] = {"credentials", "images",  "inputs",
                                          "environment", "copying", "placing"};
static const uint32_t moves[] = {
        [STAGING_CREDENTIALS] = SM_TO(STAGING_IMAGES),
        [STAGING_IMAGES] = SM_TO(STAGING_INPUTS) | SM_TO(STAGING_PLACING),
        [STAGING_INPUTS] = SM_TO(STAGING_ENVIRONMENT),
        [STAGING_ENVIRONMENT] = SM_TO(STAGING_COPYING),
        [STAGING_COPYING] = SM_TO(STAGING_PLACING),
        [STAGING_PLACING] = 0,
};
static const struct sm machine = {"staging", state_names, moves, STAGING_STATES};

static void staging_move(struct attempt *at, enum staging_state to)
{
        sm_check(&machine, at->staging, to);
        at->staging = to;
}

static void staging_fail(struct attempt *at, enum outcome outcome, int hold_code, const char *reason)
{
        inputs_forget(at);
        at->q->staging_failures++;
        attempt_set_outcome(at, outcome, (uint32_t)hold_code, "%s", reason);
        attempt_finish(at);
}

/* The error is the place's, and no fault of the job's: it was given back. */
static bool gave_back(struct attempt *at, int error)
{
        if (!machine_is_out_of_inodes(&at->a->machine, at->a->dir, error))
                return false;
        attempt_give_back(at, MACHINE_NO_INODES);
        return true;
}

/* Everything is where the program will find it; only its credentials may not be. */
static void place(struct attempt *at)
{
        int r = sandbox_make(at);

        if (r == 0)
                r = credentials_place(at);
        if (r > 0) { /* staging_ended is called again afterwards */
                stage_credentials(at);
                return;
        }
        if (gave_back(at, -r))
                return;
        if (r < 0) {
                log_error("msg=\"cannot make a sandbox\" error=\"%s\"", strerror(-r));
                attempt_set_outcome(at, OUTCOME_LOST, 0, "the agent could not make a sandbox: %s",
                                    strerror(-r));
        }
        if (at->result.set || at->kill.state == KILL_ABANDONED) {
                attempt_finish(at);
                return;
        }
        limits_prepare(at);
        attempt_move(at, ATTEMPT_RUNNING);
        attempt_submit_step(at);
}

void staging_go_on(struct attempt *at)
{
        struct err err = {""};
        bool made = environment_asked(at);
        int r = 0;

        switch (at->staging) {
        case STAGING_CREDENTIALS:
                r = credentials_want(at, &err);
                if (r < 0)
                        staging_fail(at, OUTCOME_NOT_STARTED, HOLD_CREDENTIAL, err.text);
                if (r != 0)
                        return;
                staging_move(at, STAGING_IMAGES);
                /* fallthrough */
        case STAGING_IMAGES:
                if (!containers_want(at))
                        return;
                if (!stage_any_inputs(at) && !made && !sandbox_is_shared(at)) {
                        staging_move(at, STAGING_PLACING);
                        place(at);
                        return;
                }
                staging_move(at, STAGING_INPUTS);
                /* fallthrough */
        case STAGING_INPUTS:
                r = stage_any_inputs(at) || made ? inputs_want(at, &err) : 0;
                if (r != 0)
                        break;
                staging_move(at, STAGING_ENVIRONMENT);
                /* fallthrough */
        case STAGING_ENVIRONMENT:
                r = made ? environments_want(at, &err) : 0;
                if (r != 0)
                        break;
                staging_move(at, STAGING_COPYING);
                stage_in(at);
                return;
        default: return;
        }
        if (r < 0)
                staging_ended(at, HOLD_INPUT, err.text);
}

void staging_ended(struct attempt *at, int hold_code, const char *reason)
{
        if (at->state != ATTEMPT_STAGING)
                return;
        if (hold_code && gave_back(at, at->result.hold_subcode))
                return;
        if (hold_code) {
                staging_fail(at, OUTCOME_STAGING_FAILED, hold_code, reason);
                return;
        }
        if (at->staging != STAGING_PLACING)
                staging_move(at, STAGING_PLACING);
        place(at);
}

void staging_begin(struct attempt *at)
{
        at->staging = STAGING_CREDENTIALS;
        staging_go_on(at);
}
