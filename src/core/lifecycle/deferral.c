#include "core/lifecycle/deferral.h"

#include "core/classes/job_class.h"
#include "core/events/apply.h"
#include "core/lifecycle/policy.h"
#include "core/model/pending_match.h"
#include <stdio.h>

static void hold_missed(struct core *c, struct job_class *k)
{
        char reason[160];

        snprintf(reason, sizeof(reason),
                 "its deferral_time passed %lld s ago, and no place could take it within the deferral_window",
                 (long long)((c->now_ms - k->not_before_ms) / 1000));
        policy_hold_class(c, k, CORE_HOLD_DEFERRAL_MISSED, reason);
}

/* Wakes all classes when the time after core_lost is over. Returns the milliseconds until then; INT64_MAX:
 * none. */
static int64_t lost_tick(struct core *c)
{
        void *value;

        if (c->classes->lost_until_ms == 0)
                return INT64_MAX;
        if (c->classes->lost_until_ms > c->steady_ms)
                return c->classes->lost_until_ms - c->steady_ms;
        c->classes->lost_until_ms = 0;
        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);)
                job_class_look_again(c, value);
        return INT64_MAX;
}

int64_t deferral_tick(struct core *c)
{
        int64_t next = lost_tick(c);
        void *value;

        if (c->classes->deferred == 0 || c->config.shadow)
                return next;
        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);) {
                struct job_class *k = value;
                int64_t due = INT64_MAX;

                if (!k->not_before_ms || k->idle == 0)
                        continue;
                if (deferral_waits(c, k)) {
                        due = k->not_before_ms;
                } else if (c->now_ms > k->missed_ms) {
                        hold_missed(c, k);
                } else {
                        due = k->missed_ms + 1;
                        if (k->asleep)
                                job_class_look_again(c, k);
                        k->asleep = false;
                }
                if (due != INT64_MAX && due - c->now_ms < next)
                        next = due - c->now_ms;
        }
        return next;
}
