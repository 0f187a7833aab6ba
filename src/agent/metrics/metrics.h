/* metrics: serves metrics of the agent: GET /metrics over HTTP, at the address that `metrics` names.
 *
 * Whoever can connect may read: there are numbers and names of queues, nothing of any job. Counters begin at
 * 0 when the agent starts.
 */
#pragma once
#include "agent/model/agent.h"

/* Listens, if an address is set. Returns 0, or -errno with err if the address cannot be used. */
int metrics_open(struct agent *a, struct err *err);
void metrics_close(struct agent *a);
