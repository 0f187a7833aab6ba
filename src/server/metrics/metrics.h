/* metrics: what the server counts for monitoring (GET /metrics).
 *
 * Counters begin at 0 when the server starts, as is usual with Prometheus. Gauges (jobs, queues, accounts)
 * are not counted here: api/monitoring/metrics.c asks the core for them. Queues and accounts are labels;
 * METRICS_NAMES_MAX of each have samples of their own, and the rest share the name "other".
 *
 * Each function belongs to a thread. */
#pragma once
#include "base/buf.h"
#include "core/core.h"
#include "core/model/event.h"

#define METRICS_NAMES_MAX 200
#define METRICS_OTHER     "other"

struct metrics;
struct series;
struct metrics *metrics_new(int64_t now_ms); /* now_ms: Unix milliseconds, the server's start */
void metrics_free(struct metrics *m);        /* accepts NULL */

/* Core thread: counts an event that the core has applied. */
void metrics_event(struct metrics *m, struct core *c, const struct event *e);
/* Core thread: counts a result that belongs to a current attempt, before the core handles it. */
void metrics_result(struct metrics *m, struct core *c, const struct core_result *r);
/* Core thread: counts a batch of `bytes` bytes that became durable took_ns after the store received it. */
void metrics_commit(struct metrics *m, size_t bytes, int64_t took_ns);
/* Core thread: takes a sample for charts (series.h) if one is due. now_ms: see series_due; wall_ms: Unix. */
void metrics_tick(struct metrics *m, struct core *c, int64_t now_ms, int64_t wall_ms);
const struct series *metrics_series(const struct metrics *m);
/* Core thread: appends the counts of the functions above in Prometheus's text format. */
void metrics_write(const struct metrics *m, struct buf *out);

/* I/O thread: counts an answered call. method and route are constants of the program. */
void metrics_call(struct metrics *m, const char *method, const char *route, int status, int64_t took_ns);
/* I/O thread: appends the counts of metrics_call. */
void metrics_write_calls(const struct metrics *m, struct buf *out);
