/* agent_sessions: the agents' connections, on the I/O thread.
 *
 * A peer with a certificate says Hello and is then its common name's session; one without may only Join, with
 * a token. What it says is turned into commands for the core thread, in order; what the core says comes as
 * messages. Before Hello a peer has 5 seconds, the handshake included, and 4 kB, and of all peers 1024 may be
 * that far; later it is dropped when it has been silent for three renewal times. There are at most 20000
 * (fewer where descriptors are), and ev/admission.h says how many of either one address may have.
 */
#pragma once
#include "server/loop/server.h"
#include "wire/session.h"

struct agent_sessions;
/* Listens for agents, where the settings say, and has so many sessions at most. `loop` and `tls` are
 * borrowed. 0, or -errno with err. */
int agent_sessions_new(struct server *s, struct loop *loop, struct tls_context *tls, size_t most,
                       struct agent_sessions **ret, struct err *err);
void agent_sessions_free(struct agent_sessions *a); /* NULL is fine */
size_t agent_sessions_count_addresses(const struct agent_sessions *a);
const char *agent_sessions_address(const struct agent_sessions *a, size_t n);

/* Sends a message; with `finish`, ends the session behind it. Nothing happens when the session is over. A
 * Welcome admits the agent: frames may be larger, and silence is measured by the renewal time. */
void agent_sessions_send(struct server *s, uint64_t session, const Drover__ToAgent *m, bool finish);
/* Reads a session again that was not read because too much of what it had said was not done: see inflow.h. */
void agent_sessions_read_on(struct server *s, uint64_t session);
