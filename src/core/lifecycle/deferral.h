/* deferral: jobs that start at a time, and those that may run where nobody knows of it (core_lost). For the
 * files of core/ only.
 *
 * A class whose jobs have a DeferralTime meets no offer before it; core_tick wakes it then. What has not been
 * given to a place when the window after that time is over is held, as HTCondor holds a job that missed its
 * time. The window has some seconds more than was asked for: a clock that ticks every second and the way to a
 * place take their time.
 */
#pragma once
#include "core/model/state.h"

#define DEFERRAL_GRACE_MS 10000

void deferral_class_init(struct core *c, struct class *k); /* from its ad */
void deferral_class_deinit(struct core *c, struct class *k);
static inline bool deferral_waits(const struct core *c, const struct class *k)
{
        return k->not_before_ms > c->now_ms;
}
/* The class has an idle job that may run unknown. */
bool deferral_is_lost(const struct core *c, const struct class *k);
/* Wakes classes whose time has come and holds what is too late. Milliseconds until there is something to do
 * again, INT64_MAX: nothing. */
int64_t deferral_tick(struct core *c);
