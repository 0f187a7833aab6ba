/* What happens by time alone: leases end, periodic policies are evaluated, what ended is filed and forgotten.
 */
#include "core/classes/class.h"
#include "core/data/inputs.h"
#include "core/events/apply.h"
#include "core/events/history.h"
#include "core/fairness/claim.h"
#include "core/forecast/eta.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/lifecycle/deferral.h"
#include "core/lifecycle/hop.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/leave.h"
#include "core/lifecycle/policy.h"
#include "core/match/better.h"
#include "core/match/overrun.h"
#include "core/model/forgotten.h"

#define FILE_SLICE     300u /* history rows in one call */
#define PERIODIC_SLICE 500u /* evaluations in one call */
#define INDEX_SLICE    500u /* classes or queues in one call */

/* Those of owners who have little room left go before their time, so that what has ended keeps nobody from
 * submitting. */
static void forget_old(struct core *c)
{
        struct buf BUF_CLEANUP values = {0};
        struct forgotten_request known;
        bool crowded = c->crowded;

        c->crowded = false;
        for (size_t i = 0; i < c->finished_count;) {
                uint64_t id = c->finished[i];
                struct request *r = request_find(c, id);
                struct event e = {.type = EVENT_PURGED, .request = id};
                bool old = c->finished_count > c->config.keep_finished ||
                           c->now_ms - request_rare(r)->finished_ms >= c->config.keep_finished_ms;

                if (!old && !crowded)
                        break;
                if ((!old && !claim_crowded(r)) || hop_keeps_results(r)) {
                        i++;
                        continue;
                }
                known = (struct forgotten_request){.digest = r->digest, .owner = str_of(request_owner(r))};
                memcpy(known.uuid, r->uuid, sizeof(known.uuid));
                buf_reset(&values);
                forgotten_pack_one(&values, &known);
                e.values = buf_view(&values);
                core_emit(c, &e, NULL);
                c->world.forget(c->world.arg, id);
        }
}

int64_t core_tick(struct core *c)
{
        int64_t wait = leases_end(c), better = better_tick(c), eta = eta_tick(c), deferred = deferral_tick(c),
                reserve = reserve_step(c), hops = hops_tick(c), left = leave_tick(c), gang = gang_tick(c);

        if (better < wait)
                wait = better;
        if (eta < wait)
                wait = eta;

        if (left < wait)
                wait = left;
        if (deferred < wait)
                wait = deferred;
        if (reserve < wait)
                wait = reserve;
        if (hops < wait)
                wait = hops;
        if (gang < wait)
                wait = gang;
        if (history_file_slice(c, FILE_SLICE))
                wait = 0;
        if (index_slice(c, INDEX_SLICE))
                wait = 0;
        if (core_rekey_slice(c))
                wait = 0;
        if (inputs_fill_slice(c))
                wait = 0;
        if (c->leaks_wanted)
                policy_hold_leaks(c);
        c->leaks_wanted = false;
        overrun_tick(c);
        forget_old(c);
        if (c->steady_ms >= c->periodic_due_ms || c->periodic_request) {
                if (policy_periodic_step(c, PERIODIC_SLICE))
                        wait = 0;
                else
                        c->periodic_due_ms = c->steady_ms + c->config.periodic_ms;
        }
        if (c->periodic_due_ms - c->steady_ms < wait)
                wait = c->periodic_due_ms - c->steady_ms;
        return wait < 0 ? 0 : wait > 1000 ? 1000 : wait;
}

void core_ready(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                ((struct core_agent *)value)->renewed_steady_ms = c->steady_ms;
        hops_ready(c);
        c->periodic_due_ms = c->steady_ms + c->config.periodic_ms;
        gang_ready(c);
}
