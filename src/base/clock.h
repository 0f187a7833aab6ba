/* clock: what time it is, for programs that may know. The pure modules (classad, jdl, core, place) never call
 * it: they are told. */
#pragma once
#include <stdint.h>

int64_t clock_wall_ms(void);   /* Unix time in milliseconds; may jump */
int64_t clock_boot_ms(void);   /* CLOCK_BOOTTIME: goes on while the machine sleeps; never jumps; for leases */
int64_t clock_mono_ns(void);   /* CLOCK_MONOTONIC, for measuring */
int64_t clock_thread_ns(void); /* processor time of the calling thread */
