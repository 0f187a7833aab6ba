/* The connection to the other server:
 *
 *   away --GET /readyz, /v1/server--> up: all tasks there are looked at --all done--> READY is reported
 *    ^                                                                                  |
 *    +---------- a call has no answer: unreachable is reported, tasks are kept ------------+
 *
 * Of several servers that stand in for each other the first call finds the one that leads; their log is the
 * same, and all tasks are looked at there.
 *
 * While the connection is up one long poll of the other server's log tells what happens to all tasks; room
 * and paths are asked for at intervals. Leases, and what acts.c has to send, go out one call after the
 * other.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "run/drover/link.h"
#include "run/drover/state.h"

#define CALL_MS       60000
#define RETRY_MAX_MS  10000
#define RETRY_TELL_MS 1000
#define QUICK_CALL_MS 10000 /* timeout of small calls, where another server may lead */

struct http_call *remote_ask(struct remote *f, const char *method, struct buf *path, struct str body,
                             http_call_fn *fn)
{
        const struct http_call_spec spec = {
                .method = method, .path = buf_z(path), .body = body, .timeout_ms = CALL_MS};

        return http_client_call(f->client, &spec, fn, f);
}

struct http_call *remote_get(struct remote *f, const char *path, http_call_fn *fn)
{
        const struct http_call_spec spec = {
                .method = "GET", .path = path, .timeout_ms = f->addresses.n > 1 ? QUICK_CALL_MS : CALL_MS};

        return http_client_call(f->client, &spec, fn, f);
}

/* ---- reachable or not */

/* The message is shown at the queue and at its jobs; it is not repeated. */
void remote_tell_unreachable(struct remote *f, const char *what, const char *why)
{
        BUF_CLEANUP struct buf text = {.max = 512};

        buf_printf(&text, "the other server, %.100s, %s: %.300s", f->address, what, why);
        if (f->link.why && !strcmp(f->link.why, buf_z(&text)))
                return;
        free(f->link.why);
        f->link.why = mem_dupz(buf_z(&text));
        event_queue_unreachable(f->events, f->link.why);
}

void remote_unreachable(struct remote *f, const char *why)
{
        if (!f->link.up)
                return;
        f->link.up = false;
        f->link.down_ms = clock_boot_ms();
        log_warn("msg=\"the other server does not answer\" queue=%s server=\"%s\" why=\"%s\"", f->queue,
                 f->address, LOG_TEXT(str_of(why)));
        for (int i = 0; i < REMOTE_POLLS; i++) {
                http_call_cancel(f->polls[i]);
                f->polls[i] = NULL;
        }
        remote_tell_unreachable(f, "does not answer", why);
        f->link.listed = false;
        f->link.retry_ms = REMOTE_RETRY_MS;
        timer_start(f->link.hello, f->link.retry_ms);
}

void remote_ask_next(struct remote *f)
{
        f->link.at = (f->link.at + 1) % f->addresses.n;
        http_client_move(f->client, f->addresses.v[f->link.at]);
}

/* Where servers stand in for each other one of them soon leads, well before leases end. */
void remote_retry(struct remote *f, bool answered, const char *why)
{
        int64_t max_ms = f->addresses.n > 1 ? RETRY_MAX_MS / 10 : RETRY_MAX_MS;

        if (f->link.retry_ms >= RETRY_TELL_MS)
                remote_tell_unreachable(
                        f, !answered && *f->link.server ? "does not answer" : "cannot be used", why);
        if (f->link.retry_ms >= max_ms / 2 && f->link.retry_ms < max_ms)
                log_warn("msg=\"the other server cannot be used\" queue=%s server=\"%s\" why=\"%s\"",
                         f->queue, f->address, LOG_TEXT(str_of(why)));
        f->link.retry_ms = f->link.retry_ms * 2 > max_ms ? max_ms : f->link.retry_ms * 2;
        timer_start(f->link.hello, f->link.retry_ms);
}
