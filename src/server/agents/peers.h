/* peers: agents' sessions on the front thread.
 *
 * A peer with a certificate says Hello and is then its common name's session; one without may only Join, with
 * a token. What it says is turned into commands for the core thread, in order; what the core says comes as
 * messages. Before Hello a peer has 5 seconds, the handshake included, and 4 kB, and of all peers 1024 may be
 * that far; later it is dropped when it has been silent for three renewal times. There are at most 20000
 * (fewer where descriptors are), and ev/admission.h says how many of either one address may have.
 */
#pragma once
#include "server/daemon/front.h"
#include "wire/session.h"

struct peers;
/* Listens for agents, where the settings say. 0, or -errno with err. */
int peers_new(struct front *f, struct peers **ret, struct err *err);
void peers_free(struct peers *p); /* NULL is fine */
size_t peers_count_addresses(const struct peers *p);
const char *peers_address(const struct peers *p, size_t n);

/* Front thread. A session that is over: nothing happens. Welcome opens it: larger frames, the usual silence.
 */
void peers_send(struct server *s, uint64_t session, const Drover__ToAgent *m, bool finish);
/* Of a session that was not read since too much of what it had said was not done: see inflow.h. */
void peers_read_on(struct server *s, uint64_t session);
