/* admission: which connections a server takes.
 *
 * A connection has a place for as long as it lives. Until its peer has shown who it is the peer is a
 * stranger, and there are far fewer places for strangers: what a connection may make the server keep and
 * compute before that (a TLS handshake, a head, a hello) is bounded in all. Either kind of place is shared
 * (base/share.h) by users of this machine (a unix socket tells which), IPv4 addresses and IPv6 networks of 64
 * bits, of which each may have as many as are free. Not thread-safe.
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
/* A place for the connection of this socket, whose peer is a stranger or known already. False: its holder has
 * its share, or there are no more; then the caller closes the socket. */
bool admission_take(struct admission *a, int fd, bool stranger, struct admission_place *ret);
/* A stranger's place beside the one that was taken as for a known peer: a caller that lets connections wait
 * before it reads from them holds them so. False: its holder has its share of these, or there are no more. */
bool admission_meet(struct admission_place *p);
void admission_known(struct admission_place *p); /* the peer is a stranger no more; again: nothing */
void admission_give(struct admission_place *p);  /* back; none: nothing */
