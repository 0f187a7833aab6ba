/* deferral: jobs that start at a time, and those that may run where nobody knows of it (core_lost). For the
 * files of core/ only.
 *
 * A class whose jobs have a DeferralTime meets no offer before it; core_tick wakes it then. What has not been
 * given to a place when the window after that time is over is held, as HTCondor holds a job that missed its
 * time. The window has some seconds more than was asked for: a clock that ticks every second and the way to a
 * place take their time.
 */
#pragma once
#include <stdint.h>

struct core;

/* Wakes classes whose time has come and holds what is too late. Milliseconds until there is something to do
 * again, INT64_MAX: nothing. */
int64_t deferral_tick(struct core *c);
