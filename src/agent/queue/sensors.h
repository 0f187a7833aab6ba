/* sensors: small programs of the site, whose lines become attributes of all queues' ads, and a health check
 * of the machine.
 *
 * A sensor with an interval is run again and again; its output counts if it exits with 0, until it has
 * failed for three intervals. A sensor without an interval is kept running: a line "-" ends each set of
 * lines, and it is restarted after a pause when it ends. The attribute <name>Time is the time of a sensor's
 * last output. The health check's exit code is the result, its first line the reason.
 */
#pragma once
#include "base/buf.h"

struct agent;
void sensors_open(struct agent *a);
void sensors_close(struct agent *a); /* ends the programs; also if never opened */
/* Appends attributes for a queue's ad: sensors, NodeFailed while the machine is unhealthy, and facts about
 * the machine. */
void sensors_advertise(struct agent *a, struct buf *out);
/* Calls fn for each number that a sensor reports now; names are borrowed. */
void sensors_numbers(const struct agent *a,
                     void (*fn)(void *arg, const char *sensor, struct str attribute, double value),
                     void *arg);
/* Returns 1, or 0 while the health check fails; -1: there is none. */
int sensors_health(const struct agent *a);
