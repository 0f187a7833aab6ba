/* resolve: host names to addresses without holding up the loop (a short-lived thread asks the system's
 * resolver; numeric addresses need none). For ev/ only. */
#pragma once
#include <netdb.h>

#include "base/err.h"
#include "ev/loop.h"

struct resolve;
/* fn comes once, never from within this call: error is 0 and list the addresses (the callee's: freeaddrinfo),
 * or error is -errno or -EHOSTUNREACH, why says what, and list is NULL. The resolve is freed after fn. */
struct resolve *resolve_start(struct loop *l, const char *host, const char *port,
                              void (*fn)(void *arg, int error, struct addrinfo *list, const struct err *why),
                              void *arg);
void resolve_cancel(struct resolve *r); /* fn is not called any more; NULL is fine */
/* Takes "host:port" or "[v6]:port" apart. 0, or -EINVAL with err. Both are the caller's to free. */
int resolve_split(const char *address, char **ret_host, char **ret_port, struct err *err);
