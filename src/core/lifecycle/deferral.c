#include "core/lifecycle/deferral.h"

#include <stdio.h>

#define SECONDS_MAX 9000000000000 /* far beyond any time, and a thousand of them is a number */

void deferral_class_init(struct core *c, struct class *k)
{
        int64_t at = 0, window = 0;

        if (!eval_integer(&c->eval, k->ad, NULL, c->attr.DeferralTime, &at) || at <= 0 || at > SECONDS_MAX)
                return;
        eval_integer(&c->eval, k->ad, NULL, c->attr.DeferralWindow, &window);
        k->not_before_ms = at * 1000;
        k->missed_ms = INT64_MAX;
        if (window < SECONDS_MAX)
                k->missed_ms = (at + (window > 0 ? window : 0)) * 1000 + DEFERRAL_GRACE_MS;
        k->asleep = true;
        c->deferred++;
}

void deferral_class_deinit(struct core *c, struct class *k)
{
        if (k->not_before_ms)
                c->deferred--;
}

static void hold_missed(struct core *c, struct class *k)
{
        char reason[160];

        snprintf(reason, sizeof(reason),
                 "its deferral_time passed %lld s ago, and no place could take it within the deferral_window",
                 (long long)((c->now_ms - k->not_before_ms) / 1000));
        while (k->idle > 0) {
                struct bucket *b = class_first_bucket(k);
                struct event e = {.type = EVENT_HELD,
                                  .request = b->request->id,
                                  .code = CORE_HOLD_DEFERRAL_MISSED,
                                  .reason = str_of(reason)};

                set_copy(&e.members, &b->idle);
                core_emit(c, &e, NULL);
                event_deinit(&e);
        }
}

bool deferral_is_lost(const struct core *c, const struct class *k)
{
        if (c->lost_until_ms <= c->steady_ms)
                return false;
        for (size_t i = 0; i < k->buckets.count; i++)
                if (container_of(k->buckets.nodes[i], struct bucket, node)->request->id <= c->lost_last)
                        return true;
        return false;
}

/* Milliseconds until those that may run unknown may be given; INT64_MAX: there are none any more. */
static int64_t lost_tick(struct core *c)
{
        void *value;

        if (c->lost_until_ms == 0)
                return INT64_MAX;
        if (c->lost_until_ms > c->steady_ms)
                return c->lost_until_ms - c->steady_ms;
        c->lost_until_ms = 0;
        for (size_t at = 0; map_next(c->classes, &at, NULL, &value);)
                class_look_again(c, value);
        return INT64_MAX;
}

int64_t deferral_tick(struct core *c)
{
        int64_t next = lost_tick(c);
        void *value;

        if (c->deferred == 0 || c->config.shadow)
                return next;
        for (size_t at = 0; map_next(c->classes, &at, NULL, &value);) {
                struct class *k = value;
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
                                class_look_again(c, k);
                        k->asleep = false;
                }
                if (due != INT64_MAX && due - c->now_ms < next)
                        next = due - c->now_ms;
        }
        return next;
}
