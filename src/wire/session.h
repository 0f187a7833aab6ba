/* session: protocol messages over a stream.
 *
 * A frame is a 4-byte little-endian length and that many bytes of one protobuf message (ToServer from agents,
 * ToAgent from the server: drover.proto). A frame longer than frame_max, or one that does not parse, ends the
 * session with a reason. Each message is unpacked with an allocator capped at a small multiple of the frame,
 * so that a small frame cannot make a large one; it is freed when the callback returns.
 */
#pragma once
#include "ev/stream.h"
#include "wire/drover.pb-c.h"

#define SESSION_FRAME_MAX   (16u << 20)
#define SESSION_FRAME_HELLO 4096u /* before the peer is known */

enum session_role { SESSION_AGENT, SESSION_SERVER }; /* our own side: a server receives ToServer */

struct session;
struct session_ops {
        void (*ready)(void *arg, struct session *s);                              /* may be NULL */
        void (*message)(void *arg, struct session *s, const ProtobufCMessage *m); /* ToServer or ToAgent */
        void (*closed)(void *arg, struct session *s,
                       const struct err *why); /* the owner then frees the session */
};
/* Connects to a server; for address and tls see ev/stream.h. silence_ms: the session is closed when nothing
 * was received for so long; 0: never. ops is borrowed. Never returns NULL: errors are passed to `closed`. */
struct session *session_connect(struct loop *l, const char *address, struct tls_context *tls,
                                int64_t silence_ms, const struct session_ops *ops, void *arg);
/* Starts the server's side of a session on an accepted socket, which is taken. */
struct session *session_accept(struct loop *l, int fd, struct tls_context *tls, int64_t silence_ms,
                               const struct session_ops *ops, void *arg);
void session_free(struct session *s); /* allowed in any callback; NULL is allowed */
void session_send(struct session *s, const ProtobufCMessage *m);
void session_finish(struct session *s); /* closes when all is sent */
void session_frame_max(struct session *s,
                       size_t max); /* sets frame_max; SESSION_FRAME_HELLO at first on a server */
/* Stops delivering messages until session_read_on; the socket is still read until the stream's buffer is
 * full. Must be called in `message` or outside of callbacks. */
void session_pause(struct session *s);
void session_read_on(struct session *s); /* delivers waiting messages, unless paused again */
struct stream *session_stream(struct session *s);
