/* The loop runs the event library one turn at a time: what is ready, then the watches that yielded, then what
 * was deferred. Bases are made without locks, for one thread each; the two calls that other threads may make
 * (loop_stop, mailbox_post) write to an eventfd. Times are taken fresh for each timer (no cached time), so
 * that a long callback does not shorten the timers that it starts, and from the fine clock, so that no timer
 * is early.
 *
 * Signals don't use the library's own handling, which knows one base per process: a handler writes to the
 * eventfd of the signal, and any loop may watch that. */
#include "ev/loop.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/private.h"

#define LOOP_MAGIC  0x6c6f6f70u
#define COSTLY_TURN 4u
#define SHARE_NS    5000000 /* of a turn, for watches that yield */

struct deferred {
        void (*fn)(void *arg);
        void *arg;
};

/* Functions deferred, and those of an earlier turn that run. */
struct deferred_calls {
        struct deferred *list, *running;
        size_t n, cap, n_running, cap_running, at; /* at: the next that runs */
};

struct loop {
        unsigned magic;
        struct event_base *base;
        int wake_fd;
        struct event *wake;
        atomic_bool stop;
        struct deferred_calls deferred, yielding;
        struct child *children;
        unsigned costly;                       /* in this turn */
        struct watch *waiting, **waiting_last; /* ready watches that have yielded, the longest first */
        int64_t share_ns; /* when the first that yields was called in this turn; 0: none was */
};

static void loop_woken(int fd, short what, void *arg)
{
        uint64_t n;

        (void)what;
        (void)arg;
        if (read(fd, &n, sizeof(n)) < 0)
                assert(errno == EAGAIN || errno == EINTR);
}

struct loop *loop_new(void)
{
        struct loop *l = mem_new(struct loop);
        struct event_config *config = event_config_new();

        assert(config);
        signal(SIGPIPE, SIG_IGN);
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME |
                                              EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_IGNORE_ENV);
        l->magic = LOOP_MAGIC;
        l->base = event_base_new_with_config(config);
        event_config_free(config);
        assert(l->base);
        l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        assert(l->wake_fd >= 0);
        l->wake = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, loop_woken, l);
        assert(l->wake);
        event_add(l->wake, NULL);
        l->waiting_last = &l->waiting;
        return l;
}

void loop_free(struct loop *l)
{
        if (!l)
                return;
        assert(l->magic == LOOP_MAGIC);
        children_release(l);
        event_free(l->wake);
        close(l->wake_fd);
        event_base_free(l->base);
        free(l->deferred.list);
        free(l->deferred.running);
        free(l->yielding.list);
        free(l->yielding.running);
        l->magic = 0;
        free(l);
}

static struct event_base *loop_base(struct loop *l)
{
        assert(l->magic == LOOP_MAGIC);
        return l->base;
}

struct child **loop_children(struct loop *l)
{
        return &l->children;
}

static bool loop_share_is_over(struct loop *l)
{
        int64_t now_ns = clock_mono_ns();

        if (!l->share_ns)
                l->share_ns = now_ns;
        return now_ns - l->share_ns >= SHARE_NS;
}

static int watch_wait_no_more(struct watch *w);
static void watch_call(struct watch *w, int what);

static void loop_run_waiting(struct loop *l)
{
        while (l->waiting && !loop_share_is_over(l)) {
                struct watch *w = l->waiting;
                watch_call(w, watch_wait_no_more(w));
        }
}

static bool deferred_any(const struct deferred_calls *d)
{
        return d->n > 0 || d->at < d->n_running;
}

/* Runs the deferred functions; functions that these defer wait for the next turn. until_ns: those that are
 * left then wait too; 0: none does. */
static void deferred_run(struct deferred_calls *d, int64_t until_ns)
{
        if (d->at == d->n_running) {
                struct deferred *list = d->list;
                size_t cap = d->cap;

                d->n_running = d->n;
                d->list = d->running;
                d->cap = d->cap_running;
                d->n = d->at = 0;
                d->running = list;
                d->cap_running = cap;
        }
        while (d->at < d->n_running) {
                struct deferred *next = &d->running[d->at++];

                if (!next->fn)
                        continue;
                next->fn(next->arg);
                if (until_ns && clock_mono_ns() >= until_ns)
                        break;
        }
}

static bool loop_is_busy(const struct loop *l)
{
        return l->waiting || deferred_any(&l->deferred) || deferred_any(&l->yielding);
}

void loop_run(struct loop *l)
{
        assert(l->magic == LOOP_MAGIC);
        while (!atomic_load_explicit(&l->stop, memory_order_acquire)) {
                l->costly = 0;
                l->share_ns = 0;
                event_base_loop(l->base, EVLOOP_ONCE | (loop_is_busy(l) ? EVLOOP_NONBLOCK : 0));
                loop_run_waiting(l);
                if (deferred_any(&l->deferred))
                        deferred_run(&l->deferred, 0);
                if (deferred_any(&l->yielding))
                        deferred_run(&l->yielding, clock_mono_ns() + SHARE_NS);
        }
        atomic_store(&l->stop, false);
}

bool loop_take_costly(struct loop *l)
{
        if (l->costly == COSTLY_TURN)
                return false;
        l->costly++;
        return true;
}

void loop_stop(struct loop *l)
{
        uint64_t one = 1;

        atomic_store_explicit(&l->stop, true, memory_order_release);
        if (write(l->wake_fd, &one, sizeof(one)) < 0)
                assert(errno == EAGAIN);
}

static void deferred_add(struct deferred_calls *d, void (*fn)(void *arg), void *arg)
{
        MEM_GROW(d->list, d->cap, d->n + 1);
        d->list[d->n++] = (struct deferred){fn, arg};
}

static void deferred_cancel(struct deferred_calls *d, void (*fn)(void *arg), void *arg)
{
        for (size_t i = 0; i < d->n; i++)
                if (d->list[i].fn == fn && d->list[i].arg == arg)
                        d->list[i].fn = NULL;
        for (size_t i = d->at; i < d->n_running; i++)
                if (d->running[i].fn == fn && d->running[i].arg == arg)
                        d->running[i].fn = NULL;
}

void loop_defer(struct loop *l, void (*fn)(void *arg), void *arg)
{
        deferred_add(&l->deferred, fn, arg);
}

void loop_defer_yield(struct loop *l, void (*fn)(void *arg), void *arg)
{
        deferred_add(&l->yielding, fn, arg);
}

void loop_defer_cancel(struct loop *l, void (*fn)(void *arg), void *arg)
{
        deferred_cancel(&l->deferred, fn, arg);
        deferred_cancel(&l->yielding, fn, arg);
}

/* ---- timers */

struct timer {
        struct event *event;
        void (*fn)(void *arg);
        void *arg;
};

static void timer_fired(int fd, short what, void *arg)
{
        struct timer *t = arg;

        (void)fd;
        (void)what;
        t->fn(t->arg);
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
        struct timer *t = mem_new(struct timer);

        t->fn = fn;
        t->arg = arg;
        t->event = evtimer_new(loop_base(l), timer_fired, t);
        assert(t->event);
        return t;
}

void timer_start(struct timer *t, int64_t after_ms)
{
        struct timeval tv;

        if (after_ms < 0)
                after_ms = 0;
        tv.tv_sec = after_ms / 1000;
        tv.tv_usec = after_ms % 1000 * 1000;
        evtimer_add(t->event, &tv);
}

void timer_stop(struct timer *t)
{
        evtimer_del(t->event);
}

bool timer_running(const struct timer *t)
{
        return evtimer_pending(t->event, NULL);
}

void timer_free(struct timer *t)
{
        if (!t)
                return;
        event_free(t->event);
        free(t);
}

/* ---- descriptors */

struct watch {
        struct loop *loop;
        struct event *event;
        int fd, what;
        void (*fn)(void *arg, int what);
        void *arg;
        bool yields;
        int ready; /* while it waits: for what it is ready */
        struct watch *next, **at;
};

static void watch_wait(struct watch *w, int what)
{
        struct loop *l = w->loop;

        if (!w->ready) {
                w->next = NULL;
                w->at = l->waiting_last;
                *w->at = w;
                l->waiting_last = &w->next;
        }
        w->ready |= what;
}

/* Returns for what it is ready; 0: it did not wait. */
static int watch_wait_no_more(struct watch *w)
{
        int ready = w->ready;

        if (!ready)
                return 0;
        *w->at = w->next;
        if (w->next)
                w->next->at = w->at;
        else
                w->loop->waiting_last = w->at;
        w->ready = 0;
        return ready;
}

/* Calls the watch's function, unless the watch was made quiet since its descriptor became ready. */
static void watch_call(struct watch *w, int what)
{
        if (what & w->what)
                w->fn(w->arg, what & w->what);
}

static void watch_fired(int fd, short what, void *arg)
{
        struct watch *w = arg;
        int ready = (what & EV_READ ? WATCH_READ : 0) | (what & EV_WRITE ? WATCH_WRITE : 0);

        (void)fd;
        if (w->yields && (w->loop->waiting || loop_share_is_over(w->loop)))
                watch_wait(w, ready);
        else
                w->fn(w->arg, ready);
}

struct watch *watch_new(struct loop *l, int fd, int what, void (*fn)(void *arg, int what), void *arg)
{
        struct watch *w = mem_new(struct watch);

        *w = (struct watch){.loop = l, .fd = fd, .fn = fn, .arg = arg};
        w->event = event_new(loop_base(l), fd, EV_PERSIST | EV_READ, watch_fired, w);
        assert(w->event);
        watch_set(w, what);
        return w;
}

void watch_set(struct watch *w, int what)
{
        short events = (what & WATCH_READ ? EV_READ : 0) | (what & WATCH_WRITE ? EV_WRITE : 0);

        if (what == w->what)
                return;
        w->what = what;
        event_del(w->event);
        if (!events)
                return;
        event_assign(w->event, loop_base(w->loop), w->fd, EV_PERSIST | events, watch_fired, w);
        event_add(w->event, NULL);
}

void watch_free(struct watch *w)
{
        if (!w)
                return;
        watch_wait_no_more(w);
        event_free(w->event);
        free(w);
}

void watch_edge(struct watch *w)
{
        struct event_base *base = loop_base(w->loop);

        assert(event_base_get_features(base) & EV_FEATURE_ET && w->what == WATCH_READ);
        event_del(w->event);
        event_assign(w->event, base, w->fd, EV_PERSIST | EV_READ | EV_ET, watch_fired, w);
        event_add(w->event, NULL);
}

void watch_yield(struct watch *w)
{
        w->yields = true;
}

/* ---- signals */

struct watch_signal {
        int signo;
        struct watch *watch;
        struct sigaction before;
        void (*fn)(void *arg);
        void *arg;
};

static _Atomic int signal_fds[NSIG]; /* eventfd + 1; 0: not watched */

static void signal_caught(int signo)
{
        int saved = errno;
        uint64_t one = 1;
        int fd = atomic_load(&signal_fds[signo]) - 1;

        if (fd >= 0) {
                ssize_t done = write(fd, &one, sizeof(one));
                (void)done; /* full: it is readable already */
        }
        errno = saved;
}

static void signal_readable(void *arg, int what)
{
        struct watch_signal *w = arg;
        uint64_t n;

        (void)what;
        if (read(atomic_load(&signal_fds[w->signo]) - 1, &n, sizeof(n)) == sizeof(n))
                w->fn(w->arg);
}

struct watch_signal *watch_signal_new(struct loop *l, int signo, void (*fn)(void *arg), void *arg)
{
        struct watch_signal *w = mem_new(struct watch_signal);
        struct sigaction act = {.sa_handler = signal_caught, .sa_flags = SA_RESTART};
        int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

        assert(fd >= 0 && signo > 0 && signo < NSIG && atomic_load(&signal_fds[signo]) == 0);
        *w = (struct watch_signal){.signo = signo, .fn = fn, .arg = arg};
        atomic_store(&signal_fds[signo], fd + 1);
        w->watch = watch_new(l, fd, WATCH_READ, signal_readable, w);
        sigaction(signo, &act, &w->before);
        return w;
}

void watch_signal_free(struct watch_signal *w)
{
        int fd;

        if (!w)
                return;
        sigaction(w->signo, &w->before, NULL);
        fd = atomic_exchange(&signal_fds[w->signo], 0) - 1;
        watch_free(w->watch);
        close(fd);
        free(w);
}
