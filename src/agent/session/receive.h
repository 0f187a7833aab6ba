/* receive: unpacks the server's messages about attempts, files and stores, and passes each to the module that
 * handles it.
 */
#pragma once
#include "agent/model/agent.h"
#include "wire/drover.pb-c.h"

/* A kind of message that this agent does not know is ignored. */
void receive_message(struct agent *a, const Drover__ToAgent *m);
