/* ticket: resumption of TLS sessions (RFC 8446, 2.2 and 4.6.1). Private to ev/.
 *
 * With a ticket a client resumes an earlier session without certificates and signatures, which are most of
 * the cost of a handshake. The server keeps no state: the ticket contains what it needs, including the
 * client's certificate, encrypted with a key that only servers with the same secret can derive. Keys are
 * derived from the secret and the day (UTC), so that they change daily and survive a restart; a server
 * accepts tickets of today and yesterday. Each resumed session has a new key exchange, so a stolen secret
 * does not reveal old connections. Like the CA's key, the secret allows its holder to impersonate any agent.
 */
#pragma once
#include <openssl/ssl.h>

#include "base/str.h"

#define TICKET_SECRET_BYTES 32
#define TICKET_LIFE_S       86400

/* The context takes tickets of this secret (borrowed; it lives as long as ctx), and makes them for who is
 * asked for by ticket_send. Only those of clients whose certificate was signed by this CA, and has not ended,
 * are taken; with any other the handshake is made as without a ticket. */
void ticket_serve(SSL_CTX *ctx, const unsigned char *secret, struct str ca_pem);
/* The next bytes that are written bring the client a ticket. Server's side, after the handshake. */
void ticket_send(SSL *ssl);

/* The context puts the ticket that came last into *kept, NULL at first. */
void ticket_keep(SSL_CTX *ctx, SSL_SESSION **kept);
void ticket_offer(SSL *ssl, SSL_SESSION *kept); /* before the handshake; NULL: none */
