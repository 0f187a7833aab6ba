/* ancestry: from which processes a process descends.
 *
 * A process cannot change that: what has left its session and its parents is adopted by the nearest subreaper
 * above it (prctl(2)). Read from /proc, of processes that may fork and end meanwhile. C library only.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

/* Asks about each process above pid, the nearest first, until the answer is true; comm is its name (up to 15
 * bytes), which a process gives itself. 1: it was; 0: it never was; -ESRCH: there is no such process;
 * -EAGAIN: its parents end faster than they can be looked at; -ELOOP: more than 256 are above it. */
int ancestry_find(pid_t pid, bool (*is)(void *arg, pid_t pid, const char *comm), void *arg);
