/* resolve: resolution of host names without blocking the loop (a short-lived thread calls the system's
 * resolver; numeric addresses need none). For ev/ only. */
#pragma once
#include <netdb.h>

#include "base/err.h"
#include "ev/loop.h"

struct resolve;
/* Starts a resolution. fn is called once, never from within this call, with error 0 and the addresses, which
 * fn frees (freeaddrinfo); or with error -errno or -EHOSTUNREACH, the reason in why, and list NULL. The
 * resolve is freed after fn. */
struct resolve *resolve_start(struct loop *l, const char *host, const char *port,
                              void (*fn)(void *arg, int error, struct addrinfo *list, const struct err *why),
                              void *arg);
void resolve_cancel(struct resolve *r); /* fn is not called any more; NULL is fine */
/* Splits "host:port" or "[v6]:port". 0, or -EINVAL with err. The caller frees both parts. */
int resolve_split(const char *address, char **ret_host, char **ret_port, struct err *err);
