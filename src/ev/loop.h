/* loop: one event loop per thread. Only its .c file knows epoll(7).
 *
 * Everything made on a loop (timers, watches, mailboxes' receiving side, streams, HTTP servers, children)
 * belongs to the loop's thread: it is made before loop_run, or on that thread, and its callbacks run there.
 * The only calls allowed from other threads are loop_stop and mailbox_post.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop *loop_new(void);    /* also makes the process ignore SIGPIPE */
void loop_free(struct loop *l); /* after everything made on it is freed; NULL is fine */
void loop_run(struct loop *l);  /* until loop_stop */
void loop_stop(struct loop *l); /* from any thread; also before loop_run */
/* Calls fn once, after the callbacks of this turn: for work that is gathered during a turn (group commit,
 * batches). */
void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg);
/* The same for one of thousands that may be deferred at once: calls that yield have 2 ms of a turn, in order,
 * and those that are left follow in the next turns. */
void loop_defer_yield(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_defer_cancel(struct loop *l, void (*fn)(void *arg),
                       void *arg); /* cancels the deferred call of fn with arg, if any */

/* One-shot timers, on the monotonic clock. */
struct timer;
struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg);
void timer_start(struct timer *t, int64_t after_ms); /* again: moves it; 0 is the next turn */
void timer_stop(struct timer *t);
bool timer_running(const struct timer *t);
void timer_free(struct timer *t); /* NULL is fine */

/* Readiness of a descriptor, level-triggered, until freed. The descriptor stays the caller's. */
enum { WATCH_READ = 1, WATCH_WRITE = 2 };
struct watch;
struct watch *watch_new(struct loop *l, int fd, int what, void (*fn)(void *arg, int what), void *arg);
void watch_set(struct watch *w, int what); /* 0: quiet */
/* Lets the others go first, for descriptors of which thousands may be ready at once: all watches that yield
 * have 2 ms of a turn of the loop, and at least one of them has its callback; those that are left have theirs
 * in the next turns, before any that get ready later. */
void watch_yield(struct watch *w);
void watch_free(struct watch *w);

/* A signal, delivered on the loop. One watch per signal in the process; several arrivals may be one call. */
struct watch_signal;
struct watch_signal *watch_signal_new(struct loop *l, int signo, void (*fn)(void *arg), void *arg);
void watch_signal_free(struct watch_signal *w);
