/* admission: limits on the connections of a server.
 *
 * A connection has a place for as long as it lives. A peer that is not authenticated yet is a
 * stranger, and there are far fewer places for strangers: this bounds the memory and the computation that
 * unauthenticated connections can cost (a TLS handshake, a head, a hello). The places of each kind are shared
 * (base/share.h) among users of this machine (known from a unix socket), IPv4 addresses and IPv6 networks of
 * 64 bits, of which each may have as many as are still free. Not thread-safe.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define ADMISSION_HOLDER_MAX 64

struct admission;
struct admission_place {
        struct admission *admission; /* NULL: none was taken, or it was given back */
        bool stranger;
        char holder[ADMISSION_HOLDER_MAX];
};

struct admission *admission_new(size_t places, size_t strangers);
void admission_free(struct admission *a); /* after all places were given back; NULL is fine */
/* Takes a place for the connection of this socket, whose peer is a stranger or known already. False: its
 * holder has its share, or no place is free; the caller closes the socket. */
bool admission_take(struct admission *a, int fd, bool stranger, struct admission_place *ret);
/* Takes a stranger's place in addition to a place that was taken as for a known peer, for a caller that holds
 * connections before it reads from them. False: the holder has its share of strangers' places, or none is
 * free. */
bool admission_meet(struct admission_place *p);
void admission_known(struct admission_place *p); /* the peer is authenticated: frees the stranger's place;
                                                    no-op if repeated */
void admission_give(struct admission_place *p);  /* gives the places back; no-op if none */
