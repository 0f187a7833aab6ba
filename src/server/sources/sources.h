/* sources: keeps the programs of the setting `sources` running, each under a `drover source` of its own.
 *
 * That process is a client like others: what it submits goes through the API as its owner's, and what is
 * wrong with it does not touch the server. One that ends is started again, after pauses that double.
 *
 * Core thread.
 */
#pragma once
#include "server/loop/server.h"

struct sources;
/* Starts the sources; the API must be there. *ret is NULL if the settings name none. 0; -ENOENT with err: the
 * program `drover` is not installed. */
int sources_open(struct server *s, struct sources **ret, struct err *err);
void sources_free(struct sources *all); /* ends the programs; NULL is fine */
