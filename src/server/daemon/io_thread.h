/* io_thread: the thread with all sockets: agents' sessions (agent_sessions.h) and the HTTP API
 * (http_api.h).
 *
 * All sockets are opened and listening before the thread starts; after io_thread_start only tasks reach
 * the thread. */
#pragma once
#include "server/loop/server.h"

struct io_thread;
/* Returns 0, or -errno with err. *ret must be passed to io_thread_free also after an error. */
int io_thread_new(struct server *s, struct io_thread **ret, struct err *err);
int io_thread_start(struct io_thread *t, struct err *err);
/* the address of the API over TLS, or NULL; borrowed */
const char *io_thread_api_tls(const struct io_thread *t);
/* Closes the sockets, ends the thread and waits for it. Accepts NULL. */
void io_thread_stop(struct io_thread *t);
void io_thread_free(struct io_thread *t); /* after io_thread_stop; accepts NULL */
