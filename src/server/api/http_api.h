/* http_api: where requests of the HTTP API come in: who is calling is found out, and the route's first step
 * runs.
 *
 * On the unix socket the kernel says who calls; a job's process there, and everybody over TLS, shows a token.
 * I/O thread.
 */
#pragma once
#include "server/loop/server.h"

struct tls_context;
struct http_api;
/* Listens where the settings say, for at most so many connections. 0, or -errno with err; *ret is for
 * http_api_free also when it failed. */
int http_api_new(struct server *s, struct loop *loop, struct tls_context *tls, size_t connections,
                 struct http_api **ret, struct err *err);
const char *http_api_tls_address(const struct http_api *a); /* host:port in use, or NULL; borrowed */
void http_api_free(struct http_api *a);                     /* NULL is fine */
