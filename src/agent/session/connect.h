/* connect: opens the session with the server, and opens it again when it is lost. */
#pragma once
#include "agent/model/agent.h"

void connect_open(struct agent *a); /* starts connecting */
void connect_close(struct agent *a);
/* Tells the shepherd the new end of the lease. */
void connect_lease_changed(struct agent *a);
/* Ends the session, if there is one; the next one begins with the present state. */
void connect_anew(struct agent *a);
