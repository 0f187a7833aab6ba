/* kernel_log: what the kernel has said of memory.
 *
 * The count of a control group (memory.events, memory.oom_control) goes with the group, which a container
 * engine removes as soon as the container has ended; dockerd then sometimes does not know why. The kernel's
 * log still has the line: "oom-kill:...,oom_memcg=PATH,task_memcg=PATH,task=NAME,pid=N,uid=N"
 * (dump_oom_summary in the kernel's mm/oom_kill.c, since 4.20).
 */
#pragma once
#include <stdbool.h>

#include "base/str.h"

/* Whether it ended a process since it ran out of the memory of a control group whose path has `part`, a
 * container's id for instance, in it. False also if the log may not be read, as by others than root where
 * kernel.dmesg_restrict is set, or if the kernel left the line out, which it does behind ten of them in five
 * seconds. Reads what the log holds, some milliseconds. */
bool kernel_log_out_of_memory(struct str part);
