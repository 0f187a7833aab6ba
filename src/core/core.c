/* The core's life. */
#include "core/core.h"

#include <errno.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/billing/billing.h"
#include "core/classes/admission.h"
#include "core/classes/job_class.h"
#include "core/data/data_state.h"
#include "core/data/label.h"
#include "core/dependency/dependency.h"
#include "core/estimate/estimate.h"
#include "core/fairness/charge.h"
#include "core/fairness/order.h"
#include "core/forecast/eta.h"
#include "core/forecast/forecast.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/lifecycle/delegation.h"
#include "core/lifecycle/draft.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/nodes.h"
#include "core/lifecycle/policy.h"
#include "core/lifecycle/reservations.h"
#include "core/lifecycle/retention.h"
#include "core/match/matching.h"
#include "core/meta/meta.h"
#include "core/model/pending_match.h"

static void agent_made(struct core *c, struct core_agent *a)
{
        a->cleared = label_cleared(c, a->name);
}

static void event_before(struct core *c, struct event *e)
{
        retention_mark(c, e);
        billing_before(c, e);
        reservations_before(c, e);
}

static void event_after(struct core *c, const struct event *e)
{
        billing_after(c, e);
        retention_look(c, e);
        gang_event(c, e);
        dependency_event(c, e);
        nodes_event(c, e);
        meta_event(c, e);
}

static void bucket_gone(struct core *c, const struct bucket *b)
{
        forecast_bucket_gone(c, b);
        meta_bucket_gone(c, b);
}

static void rekeyed(struct core *c)
{
        eta_rekeyed(c);
        meta_rekeyed(c);
}

/* What lower parts tell to higher ones. */
static const struct core_listeners listeners = {
        .agent_made = agent_made,
        .class_ready = reserve_class_ready,
        .class_gone = reserve_class_gone,
        .bucket_gone = bucket_gone,
        .request_gone = forecast_request_gone,
        .limit_grew = charge_limit_grew,
        .rekeyed = rekeyed,
        .matching = meta_matching,
        .event_before = event_before,
        .event_after = event_after,
        .attempt_began = lease_began,
        .job_started = eta_started,
};

struct core *core_new(const struct core_config *config, const struct core_world *world)
{
        struct core *c = mem_new(struct core);

        c->magic = CORE_MAGIC;
        c->config = *config;
        c->world = *world;
        c->listeners = listeners;
        if (!c->config.weights.given)
                c->config.weights =
                        (struct order_weights){.fair_share = 1, .qos = 1, .credential = 1, .waiting = 1};
        if (!c->config.lease_ms)
                c->config.lease_ms = 300000;
        if (!c->config.lease_margin_ms)
                c->config.lease_margin_ms = 10000;
        if (!c->config.periodic_ms)
                c->config.periodic_ms = 20000;
        if (!c->config.keep_finished_ms)
                c->config.keep_finished_ms = 86400000;
        if (!c->config.keep_finished)
                c->config.keep_finished = 10000;
        if (!c->config.classes_max)
                c->config.classes_max = 1000;
        if (!c->config.rekey_slice)
                c->config.rekey_slice = 120;
        if (!c->config.names_max)
                c->config.names_max = 50000;
        if (!c->config.account_classes_max)
                c->config.account_classes_max = 20000;
        if (!c->config.better_wait_ms)
                c->config.better_wait_ms = 300000;
        if (!c->config.max_lost)
                c->config.max_lost = 5;
        if (!c->config.node_silent_ms)
                c->config.node_silent_ms = 600000;
        if (!c->config.lost_pause_ms)
                c->config.lost_pause_ms = LOSSES_PAUSE_MS;
        if (!c->config.gang_wait_ms)
                c->config.gang_wait_ms = 30000;
        c->symbols = symbols_new();
        attributes_intern(&c->attr, c->symbols);
        eval_init(&c->eval, 0, config->seed);
        c->eval.steps_max = CORE_EVAL_STEPS_MAX;
        c->eval.bytes_max = CORE_EVAL_BYTES_MAX;
        c->eval.clock_ns = config->eval_clock_ns;
        c->requests = requests_new();
        c->templates = map_new();
        c->lenders = idmap_new();
        c->agents = map_new();
        c->pending = pending_match_new();
        c->limits = limits_new();
        c->shares = shares_new(&config->share);
        c->bank = bank_new();
        billing_init(c);
        c->index = index_new();
        delegations_init(c);
        estimates_init(c);
        data_init(c);
        fairness_init(c);
        c->classes = classes_new();
        gang_init(c);
        dependency_init(c);
        reserve_init(c);
        advances_init(c);
        meta_init(c);
        c->matching = mem_new(struct matching);
        c->leases = mem_new(struct leases);
        c->policies = mem_new(struct policies);
        c->retention = mem_new(struct retention);
        return c;
}

void core_free(struct core *c)
{
        if (!c)
                return;
        while (c->drafts)
                core_draft_free(c->drafts);
        meta_deinit(c);
        reserve_deinit(c);
        while (c->requests->first)
                request_free(c, c->requests->first);
        request_load_over(c);
        delegations_deinit(c);
        data_deinit(c);
        estimates_deinit(c);
        index_free(c->index);
        eta_free(c->eta);
        gang_deinit(c);
        dependency_deinit(c);
        advances_deinit(c);
        agents_free(c);
        pending_match_free(c->pending);
        map_free(c->templates);
        idmap_free(c->lenders);
        classes_free(c->classes);
        requests_free(c->requests);
        limits_free(c->limits);
        fairness_deinit(c);
        shares_free(c->shares);
        billing_deinit(c);
        bank_free(c->bank);
        free(c->matching);
        free(c->leases);
        set_deinit(&c->policies->each);
        free(c->policies);
        free(c->retention);
        eval_deinit(&c->eval);
        symbols_free(c->symbols);
        free(c);
}

struct symbols *core_symbols(struct core *c)
{
        return c->symbols;
}

void core_numbers_from(struct core *c, uint64_t request, uint32_t fence)
{
        c->requests->number_from = request;
        c->requests->fence_from = fence;
}

void core_lost(struct core *c, uint64_t last, int64_t wait_ms)
{
        c->classes->lost_last = last;
        c->classes->lost_until_ms = c->steady_ms + wait_ms;
        core_rekey(c);
}

int64_t core_lost_wait_ms(const struct core *c, uint64_t request)
{
        bool waits = request <= c->classes->lost_last && c->classes->lost_until_ms > c->steady_ms;

        return waits ? c->classes->lost_until_ms - c->steady_ms : 0;
}

void core_clock(struct core *c, int64_t wall_ms, int64_t steady_ms)
{
        c->now_ms = wall_ms;
        c->steady_ms = steady_ms;
        c->eval.now_s = wall_ms / 1000;
}

int core_data_set(struct core *c, const struct core_data *data, struct err *err)
{
        int r = data_set(c, data, err);

        if (!r)
                core_rekey(c);
        return r;
}
