/* stream: bytes both ways over a unix or TCP socket, with TLS or without.
 *
 * Callbacks come on the loop's thread, never from within a call of the owner. A stream that has told `closed`
 * calls nothing more; its owner frees it. stream_free may be called in any callback. What is written in one
 * turn of the loop is sent together at its end. `in` is the same buf each time and lives as long as the
 * stream. Reading stops by itself while `in` holds read_max bytes that the owner has not consumed; a peer
 * that lets more than write_max bytes pile up is closed ("peer too slow").
 */
#pragma once
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "ev/tls.h"

struct stream;
struct stream_ops {
        void (*ready)(void *arg, struct stream *s); /* connected, TLS handshake done; may be NULL */
        void (*data)(void *arg, struct stream *s,
                     struct buf *in);                 /* more in `in`: buf_consume what was used */
        void (*drained)(void *arg, struct stream *s); /* all was handed to the kernel; may be NULL */
        void (*closed)(void *arg, struct stream *s,
                       const struct err *why); /* by the peer, an error or a limit */
};
struct stream_limits {
        size_t read_max, write_max; /* bytes; 0 means 1 MiB and 64 MiB */
        int64_t handshake_ms;       /* connecting and TLS; 0 means 10 s */
        int64_t silence_ms;         /* closed when nothing came for so long; 0: never */
};

/* address: "unix:/path", "host:port" or "[v6]:port". tls may be NULL. Never fails at once: errors come to
 * closed. */
struct stream *stream_connect(struct loop *l, const char *address, struct tls_context *tls,
                              const struct stream_limits *limits, const struct stream_ops *ops, void *arg);
/* Makes a stream of a descriptor (nonblocking, from a listener), which it then owns. */
struct stream *stream_accept(struct loop *l, int fd, struct tls_context *tls,
                             const struct stream_limits *limits, const struct stream_ops *ops, void *arg);
/* Closes at once; unsent bytes that the kernel does not take now are lost. NULL is fine. */
void stream_free(struct stream *s);
void stream_write(struct stream *s, const void *p,
                  size_t n); /* copied or sent; past write_max the stream closes */
/* Sends the bytes that wait, then closes; `closed` comes when the peer has closed too, at most 2 s after the
 * last byte was sent (10 s without progress before). `data` is not called any more. */
void stream_finish(struct stream *s);
void stream_abort(struct stream *s,
                  const struct err *why); /* closes now; `closed` comes with why, not at once */
void stream_resume(struct stream *s);     /* after consuming from `in` outside of `data`: reading goes on */
void stream_yield(struct stream *s);      /* lets other streams go first: see watch_yield */
size_t stream_pending(const struct stream *s);      /* bytes not yet with the kernel */
void stream_silence(struct stream *s, int64_t ms);  /* a new silence_ms */
void stream_read_max(struct stream *s, size_t max); /* a new read_max, larger than the last */
struct str stream_peer(const struct stream *s);     /* "unix uid=0 pid=7" or "10.0.0.1:4711", for logs */
int stream_peer_uid(const struct stream *s, uid_t *ret,
                    pid_t *ret_pid); /* 0 on a unix socket; else -ENOTSUP */
/* Returns a pidfd of the process that connected, which the caller closes: of that very process if the kernel
 * keeps it (SO_PEERPIDFD, Linux 6.5); else of the process that has its number now. -ESRCH: the process has
 * ended; -ENOTSUP. */
int stream_peer_pidfd(const struct stream *s);
/* The peer's certificate, verified against the context's CA: common name; empty when it gave none. */
struct str stream_peer_name(const struct stream *s);
struct str stream_peer_serial(const struct stream *s); /* hexadecimal */
/* Sends the peer a ticket with what is written next: for a day it may resume this TLS session (ev/tls.h), and
 * is then known by the same certificate, with no check but of its end. For a server's open stream whose peer
 * gave a certificate; else a no-op. */
void stream_send_ticket(struct stream *s);
bool stream_resumed(const struct stream *s); /* this TLS session is one that was resumed */

/* A listening socket. fn gets each accepted descriptor (nonblocking, close-on-exec), and owns it. */
struct listener;
typedef void listener_fn(void *arg, int fd);
/* address as above; a unix socket's path is replaced when nobody answers on it, -EADDRINUSE when somebody
 * does; mode is that of the socket file. Port 0 picks one; listener_address tells it ("127.0.0.1:40123"). 0
 * or -errno. */
int listener_new(struct loop *l, const char *address, mode_t mode, listener_fn *fn, void *arg,
                 struct listener **ret, struct err *err);
const char *listener_address(const struct listener *l);
void listener_free(struct listener *l); /* removes the socket file */
