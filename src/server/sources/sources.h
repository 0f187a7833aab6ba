/* sources: keeps the programs of the setting `sources` running, each under its own `drover source`.
 *
 * That process is an ordinary client: it submits through the API as its owner, and its errors do not
 * affect the server. A process that ends is started again, after pauses that double.
 *
 * Core thread. */
#pragma once
#include "server/loop/server.h"

struct sources;
/* Starts the sources; the API must be open. *ret is NULL if the settings name none. Returns 0; -ENOENT
 * with err: the program `drover` is not installed. */
int sources_open(struct server *s, struct sources **ret, struct err *err);
void sources_free(struct sources *all); /* ends the programs; accepts NULL */
