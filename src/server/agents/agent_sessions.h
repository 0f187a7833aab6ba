/* agent_sessions: the agents' connections, on the I/O thread.
 *
 * A peer with a certificate sends Hello, and its session then has the certificate's common name; a peer
 * without one may only send Join with a token. Messages become commands for the core thread, in order;
 * messages from the core are sent to the peer. Before Hello a peer has 5 seconds, including the handshake,
 * and 4 kB, and at most 1024 peers may be in this phase. After that a session is closed when it has been
 * silent for three renewal times. There are at most 20000 sessions (fewer if descriptors are short), and
 * ev/admission.h limits how many of both kinds one address may have. */
#pragma once
#include "server/loop/server.h"
#include "wire/session.h"

struct agent_sessions;
/* Listens for agents at the addresses in the settings, with at most max sessions. `loop` and `tls` are
 * borrowed. Returns 0, or -errno with err. */
int agent_sessions_new(struct server *s, struct loop *loop, struct tls_context *tls, size_t most,
                       struct agent_sessions **ret, struct err *err);
void agent_sessions_free(struct agent_sessions *a); /* accepts NULL */
size_t agent_sessions_count_addresses(const struct agent_sessions *a);
const char *agent_sessions_address(const struct agent_sessions *a, size_t n);

/* Sends a message; with `finish`, closes the session afterwards. Does nothing when the session has ended.
 * A Welcome admits the agent: frames may be larger from then on, and the renewal time bounds its silence. */
void agent_sessions_send(struct server *s, uint64_t session, const Drover__ToAgent *m, bool finish);
/* Resumes reading a session that was paused because too many of its commands were pending: see inflow.h. */
void agent_sessions_read_on(struct server *s, uint64_t session);
