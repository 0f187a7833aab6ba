/* A turn waits for the first descriptor or timer with epoll(7), calls the watches that are ready, then the
 * timers that were due before, then the watches that yielded, and then what was deferred. Timers have the
 * full clock and are counted from the call that starts them, so none is early; the wait ends at a whole
 * millisecond, so one may be late by that.
 *
 * A callback may free any watch, also one whose event of the same turn has not been delivered: `ready` then
 * forgets it. The two calls that other threads may make (loop_stop, mailbox_post) write to an eventfd.
 *
 * Signals: a handler writes to the eventfd of the signal, and any loop may watch that. */
#include "ev/loop.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/private.h"

#define LOOP_MAGIC  0x6c6f6f70u
#define COSTLY_TURN 4u
#define SHARE_NS    2000000 /* of a turn, for watches that yield */
#define READY_FIRST 32      /* events that one wait takes; doubled when that many came, up to READY_MAX */
#define READY_MAX   4096
#define WAIT_MAX_MS 3600000

struct timer {
        struct heap_node node;
        int64_t due_ns;
        struct loop *loop;
        void (*fn)(void *arg);
        void *arg;
};

struct watch {
        struct loop *loop;
        int fd, what;
        uint32_t mode; /* EPOLLET or 0 */
        void (*fn)(void *arg, int what);
        void *arg;
        bool yields;
        int ready; /* while it waits: for what it is ready */
        struct watch *next, **at;
};

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
        int epoll_fd, wake_fd;
        struct watch *wake;
        atomic_bool stop;
        struct epoll_event *ready; /* of this turn; data.ptr is the watch, NULL: freed since */
        int n_ready, cap_ready;
        struct heap timers;
        struct deferred_calls deferred, yielding;
        struct child *children;
        unsigned costly;                       /* in this turn */
        struct watch *waiting, **waiting_last; /* ready watches that have yielded, the longest first */
        int64_t share_ns; /* when the first that yields was called in this turn; 0: none was */
};

static void loop_woken(void *arg, int what)
{
        struct loop *l = arg;
        uint64_t n;

        (void)what;
        if (read(l->wake_fd, &n, sizeof(n)) < 0)
                assert(errno == EAGAIN || errno == EINTR);
}

static bool timer_before(const struct heap_node *a, const struct heap_node *b);

struct loop *loop_new(void)
{
        struct loop *l = mem_new(struct loop);

        signal(SIGPIPE, SIG_IGN);
        l->magic = LOOP_MAGIC;
        l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        assert(l->epoll_fd >= 0 && l->wake_fd >= 0);
        l->cap_ready = READY_FIRST;
        l->ready = mem_array(NULL, READY_FIRST, sizeof(*l->ready));
        l->timers.before = timer_before;
        l->waiting_last = &l->waiting;
        l->wake = watch_new(l, l->wake_fd, WATCH_READ, loop_woken, l);
        return l;
}

void loop_free(struct loop *l)
{
        if (!l)
                return;
        assert(l->magic == LOOP_MAGIC);
        children_release(l);
        watch_free(l->wake);
        close(l->wake_fd);
        close(l->epoll_fd);
        heap_deinit(&l->timers);
        free(l->ready);
        free(l->deferred.list);
        free(l->deferred.running);
        free(l->yielding.list);
        free(l->yielding.running);
        l->magic = 0;
        free(l);
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
static void watch_fired(struct watch *w, uint32_t events);

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

static struct timer *timer_first(const struct loop *l)
{
        return container_of(heap_first(&l->timers), struct timer, node);
}

static int loop_wait_ms(const struct loop *l)
{
        int64_t left_ns;

        if (loop_is_busy(l))
                return 0;
        if (!heap_first(&l->timers))
                return -1;
        left_ns = timer_first(l)->due_ns - clock_mono_ns();
        if (left_ns <= 0)
                return 0;
        return left_ns / 1000000 >= WAIT_MAX_MS ? WAIT_MAX_MS : (int)((left_ns + 999999) / 1000000);
}

/* Waits for what is ready, and calls watches and timers. */
static void loop_wait(struct loop *l)
{
        int64_t now_ns;

        l->n_ready = epoll_wait(l->epoll_fd, l->ready, l->cap_ready, loop_wait_ms(l));
        assert(l->n_ready >= 0 || errno == EINTR);
        now_ns = clock_mono_ns();
        for (int i = 0; i < l->n_ready; i++)
                if (l->ready[i].data.ptr)
                        watch_fired(l->ready[i].data.ptr, l->ready[i].events);
        if (l->n_ready == l->cap_ready && l->cap_ready < READY_MAX) {
                l->cap_ready *= 2;
                l->ready = mem_array(l->ready, (size_t)l->cap_ready, sizeof(*l->ready));
        }
        l->n_ready = 0;
        while (heap_first(&l->timers) && timer_first(l)->due_ns <= now_ns) {
                struct timer *t = timer_first(l);

                timer_stop(t);
                t->fn(t->arg);
        }
}

void loop_run(struct loop *l)
{
        assert(l->magic == LOOP_MAGIC);
        while (!atomic_load_explicit(&l->stop, memory_order_acquire)) {
                l->costly = 0;
                l->share_ns = 0;
                loop_wait(l);
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

static bool timer_before(const struct heap_node *a, const struct heap_node *b)
{
        return container_of(a, struct timer, node)->due_ns < container_of(b, struct timer, node)->due_ns;
}

struct timer *timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
        struct timer *t = mem_new(struct timer);

        assert(l->magic == LOOP_MAGIC);
        t->loop = l;
        t->fn = fn;
        t->arg = arg;
        return t;
}

void timer_start(struct timer *t, int64_t after_ms)
{
        t->due_ns = clock_mono_ns() + (after_ms > 0 ? after_ms : 0) * 1000000;
        if (timer_running(t))
                heap_moved(&t->loop->timers, &t->node);
        else
                heap_put(&t->loop->timers, &t->node);
}

void timer_stop(struct timer *t)
{
        heap_take(&t->loop->timers, &t->node);
}

bool timer_running(const struct timer *t)
{
        return t->node.place != 0;
}

void timer_free(struct timer *t)
{
        if (!t)
                return;
        timer_stop(t);
        free(t);
}

/* ---- descriptors */

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

static void watch_fired(struct watch *w, uint32_t events)
{
        int ready = (events & EPOLLIN ? WATCH_READ : 0) | (events & EPOLLOUT ? WATCH_WRITE : 0);

        if (events & (EPOLLERR | EPOLLHUP))
                ready = WATCH_READ | WATCH_WRITE;
        if (w->yields && (w->loop->waiting || loop_share_is_over(w->loop)))
                watch_wait(w, ready);
        else
                watch_call(w, ready);
}

struct watch *watch_new(struct loop *l, int fd, int what, void (*fn)(void *arg, int what), void *arg)
{
        struct watch *w = mem_new(struct watch);

        assert(l->magic == LOOP_MAGIC);
        *w = (struct watch){.loop = l, .fd = fd, .fn = fn, .arg = arg};
        watch_set(w, what);
        return w;
}

/* Tells the kernel. A descriptor may have been closed before its watch is made quiet or freed. */
static void watch_control(struct watch *w, int op)
{
        struct epoll_event e = {.events = (w->what & WATCH_READ ? EPOLLIN : 0) |
                                          (w->what & WATCH_WRITE ? EPOLLOUT : 0) | w->mode,
                                .data.ptr = w};
        int r = epoll_ctl(w->loop->epoll_fd, op, w->fd, &e);

        assert(r == 0 || op == EPOLL_CTL_DEL);
}

/* Events of this turn that have not been delivered are forgotten. */
static void watch_forget(struct watch *w)
{
        for (int i = 0; i < w->loop->n_ready; i++)
                if (w->loop->ready[i].data.ptr == w)
                        w->loop->ready[i].data.ptr = NULL;
}

void watch_set(struct watch *w, int what)
{
        int before = w->what;

        if (what == before)
                return;
        w->what = what;
        watch_control(w, !before ? EPOLL_CTL_ADD : what ? EPOLL_CTL_MOD : EPOLL_CTL_DEL);
}

void watch_free(struct watch *w)
{
        if (!w)
                return;
        watch_set(w, 0);
        watch_wait_no_more(w);
        watch_forget(w);
        free(w);
}

void watch_edge(struct watch *w)
{
        assert(w->what == WATCH_READ);
        w->mode = EPOLLET;
        watch_control(w, EPOLL_CTL_MOD);
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
