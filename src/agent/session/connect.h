/* connect: the session with the server. */
#pragma once
#include "agent/model/agent.h"

void connect_open(struct agent *a); /* begins to dial */
void connect_close(struct agent *a);
/* The lease's end has moved: the shepherd must know. */
void connect_lease_changed(struct agent *a);
/* If there is a session, it ends, and the next one begins with what we have now. */
void connect_anew(struct agent *a);
