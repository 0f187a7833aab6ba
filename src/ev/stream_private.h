/* stream_private: the inside of a stream, for stream*.c.
 *
 * A stream is a non-blocking socket, with OpenSSL on it or not, and two buffers. An SSL_write that could not
 * be finished is repeated from the same bytes, and the end of a connection is told after the bytes before it.
 *
 *   RESOLVING -> CONNECTING -> HANDSHAKE -> OPEN -> FINISHING -> DEAD      (from any state to DEAD)
 *
 *   RESOLVING   stream_resolved()   a name is looked up
 *   CONNECTING  stream_connected()  connect() runs; address after address is tried
 *   HANDSHAKE   stream_handshake()  TLS
 *   OPEN        stream_read() stream_push()
 *   FINISHING   stream_linger()     see stream_finish()
 *   DEAD        stream_die()        the descriptor is closed
 *
 * In FINISHING the sending side is shut down when all is sent, and what the peer still sends is thrown away
 * until it closes too: closing with unread bytes would make TCP take back what we sent last. DEAD is told by
 * `closed`, at the end of the turn and as the last callback.
 *
 * `ready`, `drained` and `closed` come from stream_turn(), at the end of the loop's turn, so that no call of
 * the owner leads to a callback; stream_turn also sends the bytes written since the last one, in as few
 * writes as possible.
 *
 *   stream.c        the states from OPEN on, and what the owner calls
 *   stream_open.c   those before
 *   stream_bytes.c  bytes in and out of a socket, with TLS or without
 */
#pragma once
#include <sys/socket.h>

#include "ev/private.h"
#include "ev/resolve.h"
#include "ev/stream.h"

#define STREAM_MAGIC     0x73747265u
#define STREAM_LINGER_MS 2000 /* time that the peer has to close after us */

enum stream_state { RESOLVING, CONNECTING, HANDSHAKE, OPEN, FINISHING, DEAD };

struct stream {
        unsigned magic;
        struct loop *loop;
        const struct stream_ops *ops;
        void *arg;
        struct stream_limits limits;
        enum stream_state state;
        int fd;
        struct watch *watch;
        struct tls_context *tls;
        SSL *ssl;
        bool read_wants_write, write_wants_read; /* TLS, seldom: a key update */
        struct buf in, out;
        size_t out_at; /* bytes of out that are sent */
        struct timer *timer;
        int64_t heard_ns;
        bool turn;    /* stream_turn is deferred, or is to run again */
        bool in_turn; /* stream_turn runs */
        bool yields;
        bool tell_ready, tell_drained, half_closed;
        bool refused;  /* a handshake failed: FINISHING only to let the alert arrive */
        bool gone;     /* freed by its owner while a function of stream*.c runs */
        unsigned busy; /* number of functions of stream*.c that run */
        struct err why;
        char *address;
        struct resolve *resolve;
        struct addrinfo *addresses, *address_next;
        struct buf peer, peer_name, peer_serial;
        bool is_unix;
        uid_t uid;
        pid_t pid;
};

/* stream.c */
void stream_soon(struct stream *s); /* defers stream_turn to the end of this turn */
/* Closes the descriptor, and with it the watch and TLS; the stream is in no state that needs one. */
void stream_drop_descriptor(struct stream *s);
__attribute__((format(printf, 2, 3))) void stream_die(struct stream *s, const char *fmt, ...);
void stream_interest(struct stream *s); /* from OPEN on: sets the readiness that is watched for */
void stream_event(void *stream, int what);
void stream_timed_out(void *stream);

/* stream_open.c */
void stream_connected(struct stream *s); /* CONNECTING: connect() has ended */
void stream_handshake(struct stream *s); /* HANDSHAKE: continues it */

/* stream_bytes.c: a count, 0 at the end of the stream, -EAGAIN, or another -errno with s->why set */
ssize_t stream_get(struct stream *s, char *room, size_t n);
ssize_t stream_put(struct stream *s, const char *p, size_t n);
