/* Bytes in and out of a stream's socket; TLS may have to read in order to write, and the other way round. */
#include <errno.h>
#include <string.h>

#include "ev/stream_private.h"

static ssize_t stream_tls_result(struct stream *s, int done, bool *other_way, int other)
{
        int code = SSL_get_error(s->ssl, done);

        *other_way = code == other;
        switch (code) {
        case SSL_ERROR_WANT_READ:
        case SSL_ERROR_WANT_WRITE: return -EAGAIN;
        case SSL_ERROR_ZERO_RETURN: return 0;
        default: tls_explain(s->ssl, errno, &s->why); return -EIO;
        }
}

ssize_t stream_get(struct stream *s, char *room, size_t n)
{
        ssize_t done;

        if (s->ssl) {
                size_t got = 0;

                ERR_clear_error();
                errno = 0;
                done = SSL_read_ex(s->ssl, room, n, &got);
                if (done == 1) {
                        s->read_wants_write = false;
                        return got;
                }
                return stream_tls_result(s, done, &s->read_wants_write, SSL_ERROR_WANT_WRITE);
        }
        do
                done = recv(s->fd, room, n, 0);
        while (done < 0 && errno == EINTR);
        if (done >= 0)
                return done;
        if (errno != EAGAIN)
                err_set(&s->why, 0, "%s", strerror(errno));
        return -errno;
}

ssize_t stream_put(struct stream *s, const char *p, size_t n)
{
        ssize_t done;

        if (s->ssl) {
                size_t put = 0;

                ERR_clear_error();
                errno = 0;
                done = SSL_write_ex(s->ssl, p, n, &put);
                if (done == 1) {
                        s->write_wants_read = false;
                        return put;
                }
                done = stream_tls_result(s, done, &s->write_wants_read, SSL_ERROR_WANT_READ);
                return done ? done : -EPIPE;
        }
        do
                done = send(s->fd, p, n, MSG_NOSIGNAL);
        while (done < 0 && errno == EINTR);
        if (done >= 0)
                return done;
        if (errno != EAGAIN)
                err_set(&s->why, 0, "%s", strerror(errno));
        return -errno;
}
