/* metrics: what the server counts while it runs, for monitoring (GET /metrics).
 *
 * Counters begin at 0 when the server starts, as is usual with Prometheus. What there is at the moment (jobs,
 * queues, accounts) is not counted here: api/metrics.c asks the core. Queues and accounts are labels; of each
 * kind METRICS_NAMES_MAX have samples of their own, the rest are together under the name "other".
 *
 * Each function belongs to a thread.
 */
#pragma once
#include "base/buf.h"
#include "core/core.h"
#include "core/model/event.h"

#define METRICS_NAMES_MAX 200
#define METRICS_OTHER     "other"

struct metrics;
struct series;
struct metrics *metrics_new(int64_t now_ms); /* Unix milliseconds: the server was started now */
void metrics_free(struct metrics *m);        /* NULL is fine */

/* Core thread, after the core has applied it. */
void metrics_event(struct metrics *m, struct core *c, const struct event *e);
/* Core thread: a result of an attempt that the core has, before the core is told. */
void metrics_result(struct metrics *m, struct core *c, const struct core_result *r);
/* Core thread: a batch of so many bytes is durable, so long after it was handed to the store. */
void metrics_commit(struct metrics *m, size_t bytes, int64_t took_ns);
/* Core thread: takes a sample for charts (series.h) when it is time for one; now_ms as there, wall_ms Unix.
 */
void metrics_tick(struct metrics *m, struct core *c, int64_t now_ms, int64_t wall_ms);
const struct series *metrics_series(const struct metrics *m);
/* Core thread: appends what the functions above have counted. */
void metrics_write(const struct metrics *m, struct buf *out);

/* I/O thread: a call of the API was answered. method and route are constants of the program. */
void metrics_call(struct metrics *m, const char *method, const char *route, int status, int64_t took_ns);
/* I/O thread: appends what metrics_call has counted. */
void metrics_write_calls(const struct metrics *m, struct buf *out);
