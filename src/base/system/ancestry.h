/* ancestry: the processes that a process descends from.
 *
 * A process cannot change its ancestry: one that has left its session, and whose parents have ended, is
 * adopted by the nearest subreaper above it (prctl(2)). The ancestry is read from /proc, while the processes
 * may fork and end. Needs the C library only.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Calls `is` for each ancestor of pid, the nearest first, until it returns true. comm is the ancestor's name
 * (up to 15 bytes), which a process chooses itself. Returns 1 if `is` returned true, 0 if it never did;
 * -ESRCH: there is no process pid; -EAGAIN: the ancestors end faster than they can be read; -ELOOP: pid has
 * more than 256 ancestors. */
int ancestry_find(pid_t pid, bool (*is)(void *arg, pid_t pid, const char *comm), void *arg);
