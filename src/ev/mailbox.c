/* Posters push on a lock-free stack and write to an eventfd when it was empty; the receiver takes the whole
 * stack and turns it round, so that each poster's messages come in order. */
#include "ev/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "ev/private.h"

struct mailbox {
        _Atomic(struct mail *) head;
        int fd;
        struct watch *watch;
        struct mail *batch; /* taken, not handed over yet */
        bool handing, gone; /* messages are being handed over; freed meanwhile */
        void (*fn)(void *arg, struct mail *m);
        void (*idle)(void *arg);
        void *arg;
};

static struct mail *mailbox_take(struct mailbox *mb)
{
        struct mail *m = atomic_exchange_explicit(&mb->head, NULL, memory_order_acquire);
        struct mail *turned = NULL;

        while (m) {
                struct mail *next = m->next;
                m->next = turned;
                turned = m;
                m = next;
        }
        return turned;
}

static void mailbox_readable(void *arg, int what)
{
        struct mailbox *mb = arg;
        uint64_t n;

        (void)what;
        if (read(mb->fd, &n, sizeof(n)) < 0)
                assert(errno == EAGAIN || errno == EINTR);
        mb->batch = mailbox_take(mb);
        if (!mb->batch)
                return;
        mb->handing = true;
        while (mb->batch) { /* mailbox_free empties it */
                struct mail *m = mb->batch;
                mb->batch = m->next;
                m->next = NULL;
                mb->fn(mb->arg, m);
        }
        if (mb->idle && !mb->gone)
                mb->idle(mb->arg);
        mb->handing = false;
        if (mb->gone)
                free(mb);
}

struct mailbox *mailbox_try_new(struct loop *l, void (*fn)(void *arg, struct mail *m),
                                void (*idle)(void *arg), void *arg)
{
        struct mailbox *mb;
        int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

        if (fd < 0)
                return NULL;
        mb = mem_new(struct mailbox);
        mb->fd = fd;
        mb->fn = fn;
        mb->idle = idle;
        mb->arg = arg;
        mb->watch = watch_new(l, mb->fd, WATCH_READ, mailbox_readable, mb);
        return mb;
}

struct mailbox *mailbox_new(struct loop *l, void (*fn)(void *arg, struct mail *m), void (*idle)(void *arg),
                            void *arg)
{
        struct mailbox *mb = mailbox_try_new(l, fn, idle, arg);

        assert(mb);
        return mb;
}

void mailbox_post(struct mailbox *mb, struct mail *m)
{
        struct mail *old = atomic_load_explicit(&mb->head, memory_order_relaxed);
        uint64_t one = 1;

        do
                m->next = old;
        while (!atomic_compare_exchange_weak_explicit(&mb->head, &old, m, memory_order_release,
                                                      memory_order_relaxed));
        if (!old && write(mb->fd, &one, sizeof(one)) < 0)
                assert(errno == EAGAIN || errno == EINTR);
}

void mailbox_free(struct mailbox *mb, void (*drop)(struct mail *m))
{
        struct mail *lists[2];

        if (!mb)
                return;
        assert(!mb->gone);
        lists[0] = mb->batch;
        lists[1] = mailbox_take(mb);
        mb->batch = NULL;
        for (int i = 0; i < 2; i++) {
                while (lists[i]) {
                        struct mail *m = lists[i];
                        lists[i] = m->next;
                        if (drop)
                                drop(m);
                }
        }
        watch_free(mb->watch);
        close(mb->fd);
        mb->gone = true;
        if (!mb->handing)
                free(mb);
}
