/* daemon: opens, runs and closes the server. */
#pragma once
#include "server/daemon/recover.h"

/* Opens the state; config and paths must be set. Returns 0, or an error with err. */
int server_open(struct server *s, struct recovered *ret, struct err *err);
/* Serves until a signal or a fatal error; s->exit_code tells which. Returns an error if the server could
 * not start. */
int server_run(struct server *s, struct err *err);
/* To be called after both, also when they failed. */
void server_close(struct server *s);
