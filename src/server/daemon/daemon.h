/* daemon: the server from its opening to its end. */
#pragma once
#include "server/daemon/recover.h"

/* Opens the state (config and paths are set). 0, or an error with err. */
int server_open(struct server *s, struct recovered *ret, struct err *err);
/* Serves until a signal or a fatal error; s->exit_code says which. An error when it could not start. */
int server_run(struct server *s, struct err *err);
/* After either, also when they failed. */
void server_close(struct server *s);
