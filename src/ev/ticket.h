/* ticket: sessions of TLS that are resumed (RFC 8446, 2.2 and 4.6.1). Private to ev/.
 *
 * A ticket lets a client that was connected before begin again without certificates and signatures, which is
 * most of what a handshake costs. What the server needs for that, the client's certificate included, is in
 * the ticket, encrypted with a key that only servers of the same secret know; the server keeps nothing. Keys
 * are derived from the secret and the day (UTC), so that they change daily and outlive a restart; a server
 * takes tickets of today and of yesterday. Each resumed session has a new key exchange, so an old connection
 * stays secret when the secret is stolen; who has it can make tickets in the name of anybody, as with the key
 * of the CA.
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
