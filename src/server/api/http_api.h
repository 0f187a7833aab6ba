/* http_api: receives requests of the HTTP API, authenticates the caller, and runs the route's first step.
 *
 * On the unix socket the kernel identifies the caller. Processes of jobs there, and all callers over TLS,
 * must send a token. I/O thread. */
#pragma once
#include "server/loop/server.h"

struct tls_context;
struct http_api;
/* Listens at the addresses in the settings, for at most this many connections. Returns 0, or -errno with
 * err; *ret must be passed to http_api_free also after an error. */
int http_api_new(struct server *s, struct loop *loop, struct tls_context *tls, size_t connections,
                 struct http_api **ret, struct err *err);
const char *http_api_tls_address(const struct http_api *a); /* the host:port in use, or NULL; borrowed */
void http_api_free(struct http_api *a);                     /* accepts NULL */
