/* sensors: small programs of the admin's, whose lines become attributes of all queues' ads, and one that says
 * whether the machine is well.
 *
 * A sensor that has an interval is run again and again; what it printed counts when it ends with 0, until it
 * has failed for three intervals. One without is kept running: a line "-" ends what it says at a time, and it
 * is started again after a pause when it ends. Each has a time, as <name>Time, of when it last said
 * something. The health check's exit code is its word, and the first line that it prints the reason.
 */
#pragma once
#include "base/buf.h"

struct agent;
void sensors_open(struct agent *a);
void sensors_close(struct agent *a); /* ends their programs; also if it was never opened */
/* Adds what is known to a queue's ad: sensors, NodeFailed while the machine is not well, and what the machine
 * is. */
void sensors_advertise(struct agent *a, struct buf *out);
