/* clock: the system's clocks. The pure modules (classad, jdl, core, place) never call this: their callers
 * pass the time to them. */
#pragma once
#include <stdint.h>

int64_t clock_wall_ms(void);   /* Unix time in milliseconds; may jump */
int64_t clock_boot_ms(void);   /* CLOCK_BOOTTIME: goes on while the machine sleeps; never jumps; for leases */
int64_t clock_mono_ns(void);   /* CLOCK_MONOTONIC, for measuring */
int64_t clock_thread_ns(void); /* processor time of the calling thread */
