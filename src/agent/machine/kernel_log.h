/* kernel_log: reads messages of the kernel about memory.
 *
 * The counter of a control group (memory.events, memory.oom_control) is removed with the group, which a
 * container engine removes as soon as the container has ended; dockerd then sometimes does not know why it
 * ended. The kernel's log still has the line:
 * "oom-kill:...,oom_memcg=PATH,task_memcg=PATH,task=NAME,pid=N,uid=N" (dump_oom_summary in the kernel's
 * mm/oom_kill.c, since 4.20).
 */
#pragma once
#include <stdbool.h>

#include "base/str.h"

/* Returns whether the kernel killed a process because a control group whose path contains `part`, such as a
 * container's id, ran out of memory. Returns false also if the log may not be read (for others than root if
 * kernel.dmesg_restrict is set), or if the kernel dropped the line (after ten in five seconds). Reads the
 * whole log, which takes some milliseconds. */
bool kernel_log_out_of_memory(struct str part);
