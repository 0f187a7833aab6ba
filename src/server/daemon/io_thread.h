/* io_thread: the thread with all sockets: agents' sessions (agent_sessions.h) and the HTTP API (http_api.h).
 *
 * Everything is made and listening before the thread starts; from io_thread_start on only tasks reach it.
 */
#pragma once
#include "server/loop/server.h"

struct io_thread;
/* 0 or -errno with err. *ret is for io_thread_free also when it failed. */
int io_thread_new(struct server *s, struct io_thread **ret, struct err *err);
int io_thread_start(struct io_thread *t, struct err *err);
const char *io_thread_api_tls(const struct io_thread *t); /* the API's address over TLS, or NULL; borrowed */
/* Closes the sockets and ends the thread. Waits for it. NULL is fine. */
void io_thread_stop(struct io_thread *t);
void io_thread_free(struct io_thread *t); /* after io_thread_stop; NULL is fine */
