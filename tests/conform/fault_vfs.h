/* fault_vfs: a file layer for SQLite that fails, stops or forgets when it is told to.
 *
 * It stands in front of the real one and counts the calls that change files: write, flush, truncate, delete.
 * At the chosen number it does what was chosen. "Power loss" keeps for every file what was written since its
 * last flush; at the chosen call it undoes all of that, writes an arbitrary part of it again (sectors of 512
 * bytes, in any choice), and ends the process: what a machine may find on its disk after a power cut.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
        FAULT_NONE,
        FAULT_KILL,      /* SIGKILL instead of the call */
        FAULT_TORN,      /* half of the write, then SIGKILL */
        FAULT_POWER,     /* power loss; ends with SIGKILL as well */
        FAULT_NO_SPACE,  /* writes fail with ENOSPC */
        FAULT_WRITE_EIO, /* writes fail with EIO */
        FAULT_FLUSH_EIO, /* flushes fail with EIO */
};

void fault_install(void); /* makes it SQLite's default; once */
/* From now on: the at-th call (from 1) and the length - 1 after it; of the kind that fails, for the errors.
 */
void fault_arm(enum fault_kind kind, uint64_t at, uint64_t length, unsigned seed);
uint64_t fault_calls(void); /* since fault_arm */
bool fault_reached(void);   /* whether something was made to fail since fault_arm */
