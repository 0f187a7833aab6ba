/* leave: ends an agent that is configured to end: after a time (leave_after), when it was idle for a while
 * (leave_idle), or by SIGTERM if it has either setting.
 *
 *      stays --- time, idleness, SIGTERM ---> leaves --- no attempt left, or HURRY_MS over ---> loop ends
 *
 * While it stays, offers say how much time is left: a job that states its run time is taken if that is
 * enough, another one while at least leave_unknown is left. When it leaves, its ads say so ("Leaving"): the
 * server assigns nothing more, has running jobs vacated, and treats the node as drained. Attempts left after
 * HURRY_MS are killed, and go back to the queue like those of a lost agent.
 */
#pragma once
#include "agent/model/agent.h"

void leave_open(struct agent *a);
void leave_close(struct agent *a);
void leave_tick(struct agent *a); /* once a second */
/* Handles SIGTERM: an agent with an end of its own begins to leave. A batch system may send the signal more
 * than once, so a later one changes nothing. False: the agent has no such end and is to stop at once. */
bool leave_told(struct agent *a);
bool leave_begun(const struct agent *a);
/* Returns the longest run time of acceptable jobs, in milliseconds; 0: no limit. Values are rounded to
 * steps, so that ads do not change all the time. */
uint64_t leave_left_ms(const struct agent *a);
extern const char leave_requirement[]; /* condition on jobs at agents that end; uses the attributes of
                                          leave_advertise */
bool leave_has_time(const struct agent *a);
void leave_advertise(const struct agent *a, struct buf *out);
