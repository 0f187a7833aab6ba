/* What happens by time alone: leases end, periodic policies are evaluated, what ended is filed and forgotten.
 */
#include "core/billing/billing.h"
#include "core/classes/admission.h"
#include "core/classes/job_class.h"
#include "core/data/inputs.h"
#include "core/data/locality.h"
#include "core/dependency/dependency.h"
#include "core/events/apply.h"
#include "core/events/history.h"
#include "core/fairness/charge.h"
#include "core/forecast/eta.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/lifecycle/deferral.h"
#include "core/lifecycle/delegation.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/losses.h"
#include "core/lifecycle/lots.h"
#include "core/lifecycle/nodes.h"
#include "core/lifecycle/policy.h"
#include "core/lifecycle/reservations.h"
#include "core/lifecycle/retention.h"
#include "core/match/delay_scheduling.h"
#include "core/match/overrun.h"
#include "core/meta/meta.h"
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
        bool crowded = c->requests->crowded;

        c->requests->crowded = false;
        for (size_t i = 0; i < c->requests->finished_count;) {
                uint64_t id = c->requests->finished[i];
                struct request *r = request_find(c, id);
                struct event e = {.type = EVENT_PURGED, .request = id};
                bool old = c->requests->finished_count > c->config.keep_finished ||
                           c->now_ms - request_cold(r)->finished_ms >= c->config.keep_finished_ms;

                if (!old && !crowded)
                        break;
                if ((!old && !charge_crowded(r)) || delegation_keeps_results(r) || dependency_keeps(c, r)) {
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

/* What has its own clock, in the order in which it is called. Each returns how long until it wants to be
 * called again. */
static int64_t (*const clocks[])(struct core *) = {reservations_tick, leases_end,     delay_scheduling_tick,
                                                   eta_tick,          deferral_tick,  reserve_step,
                                                   delegations_tick,  retention_tick, gang_tick,
                                                   losses_tick,       nodes_tick,     billing_tick,
                                                   lots_tick,         meta_tick,      locality_tick};

/* A slice of each thing that takes long. True: there is more of some. */
static bool slices(struct core *c)
{
        bool more = false;

        more |= history_file_slice(c, FILE_SLICE);
        more |= index_slice(c, INDEX_SLICE);
        more |= core_rekey_slice(c);
        more |= inputs_fill_slice(c);
        return more;
}

static int64_t min(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

int64_t core_tick(struct core *c)
{
        struct policies *p = c->policies;
        int64_t wait = INT64_MAX;

        for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
                wait = min(wait, clocks[i](c));
        if (slices(c))
                wait = 0;
        if (c->classes->leaks)
                policy_hold_leaks(c);
        c->classes->leaks = false;
        overrun_tick(c);
        forget_old(c);
        if (c->steady_ms >= p->due_ms || p->request) {
                if (policy_periodic_step(c, PERIODIC_SLICE))
                        wait = 0;
                else
                        p->due_ms = c->steady_ms + c->config.periodic_ms;
        }
        wait = min(wait, p->due_ms - c->steady_ms);
        return wait < 0 ? 0 : min(wait, 1000);
}

void core_ready(struct core *c)
{
        void *value;

        request_load_over(c);
        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                ((struct core_agent *)value)->renewed_steady_ms = c->steady_ms;
        delegations_ready(c);
        c->policies->due_ms = c->steady_ms + c->config.periodic_ms;
        gang_ready(c);
        dependency_ready(c);
        meta_ready(c);
}
