/* deferral: jobs with a start time. For the files of core/ only.
 *
 * A class whose jobs have a DeferralTime is compared with no offer before that time; core_tick then wakes it.
 * Jobs that no place has taken when the window after that time is over are held, as HTCondor holds a job that
 * missed its time. The window is DEFERRAL_GRACE_MS longer than requested, because the clock ticks only every
 * second and dispatch takes time. The same tick wakes classes that core_lost holds back.
 */
#pragma once
#include <stdint.h>

struct core;

/* Wakes classes whose time has come, and holds jobs whose window is over. Returns the milliseconds to the
 * next such time; INT64_MAX: none. */
int64_t deferral_tick(struct core *c);
