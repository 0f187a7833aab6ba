/* Posters push on a lock-free stack, one for each kind, and write to an eventfd when it was empty; the
 * receiver takes the whole stack and turns it round, so that each poster's messages come in order. */
#include "ev/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "ev/private.h"

#define SHARE_NS     2000000 /* for messages without priority, where others have it */
#define SHARE_NS_MAX 20000000
#define BATCH_NS     4000000 /* for a batch of messages none of which has priority */
#define LOOK_EACH    16      /* messages without priority between looks at the clock */

struct mailbox {
        _Atomic(struct mail *) head, priority_head;
        int fd;
        struct watch *watch;
        struct mail *batch, *priority; /* taken, not handed over yet */
        bool handing, gone;            /* messages are being handed over; freed meanwhile */
        void (*fn)(void *arg, struct mail *m);
        void (*idle)(void *arg);
        void *arg;
};

static struct mail *mailbox_take(_Atomic(struct mail *) *head)
{
        struct mail *m = atomic_exchange_explicit(head, NULL, memory_order_acquire);
        struct mail *turned = NULL;

        while (m) {
                struct mail *next = m->next;

                m->next = turned;
                turned = m;
                m = next;
        }
        return turned;
}

static void mailbox_hand_first(struct mailbox *mb, struct mail **list)
{
        struct mail *m = *list;

        *list = m->next;
        m->next = NULL;
        mb->fn(mb->arg, m);
}

static bool mailbox_has_priority(struct mailbox *mb)
{
        return atomic_load_explicit(&mb->priority_head, memory_order_relaxed) != NULL;
}

/* Hands over one batch. mailbox_free empties both lists. */
static void mailbox_hand(struct mailbox *mb)
{
        int64_t begun_ns = clock_mono_ns(), others_ns = begun_ns, share_ns = SHARE_NS;
        bool divided;
        unsigned handed = 0;

        mb->priority = mailbox_take(&mb->priority_head);
        divided = mb->priority != NULL;
        while (mb->priority)
                mailbox_hand_first(mb, &mb->priority);
        if (divided) {
                others_ns = clock_mono_ns();
                if (others_ns - begun_ns > share_ns)
                        share_ns = others_ns - begun_ns < SHARE_NS_MAX ? others_ns - begun_ns : SHARE_NS_MAX;
        }
        while (mb->batch) {
                mailbox_hand_first(mb, &mb->batch);
                divided |= mailbox_has_priority(mb);
                if ((divided || ++handed % LOOK_EACH == 0) &&
                    clock_mono_ns() - others_ns >= (divided ? share_ns : BATCH_NS))
                        break;
        }
        if (mb->idle && !mb->gone)
                mb->idle(mb->arg);
}

static void mailbox_readable(void *arg, int what)
{
        struct mailbox *mb = arg;

        (void)what;
        mb->batch = mailbox_take(&mb->head);
        mb->handing = true;
        do /* what is posted meanwhile, by a receiver too, comes after the loop's other events */
                mailbox_hand(mb);
        while (mb->batch);
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
        watch_edge(mb->watch);
        return mb;
}

struct mailbox *mailbox_new(struct loop *l, void (*fn)(void *arg, struct mail *m), void (*idle)(void *arg),
                            void *arg)
{
        struct mailbox *mb = mailbox_try_new(l, fn, idle, arg);

        assert(mb);
        return mb;
}

static void mailbox_push(struct mailbox *mb, _Atomic(struct mail *) *head, struct mail *m)
{
        struct mail *old = atomic_load_explicit(head, memory_order_relaxed);
        uint64_t one = 1;

        do
                m->next = old;
        while (!atomic_compare_exchange_weak_explicit(head, &old, m, memory_order_release,
                                                      memory_order_relaxed));
        if (!old && write(mb->fd, &one, sizeof(one)) < 0)
                assert(errno == EAGAIN || errno == EINTR);
}

void mailbox_post(struct mailbox *mb, struct mail *m)
{
        mailbox_push(mb, &mb->head, m);
}

void mailbox_post_priority(struct mailbox *mb, struct mail *m)
{
        mailbox_push(mb, &mb->priority_head, m);
}

void mailbox_free(struct mailbox *mb, void (*drop)(struct mail *m))
{
        struct mail *lists[4];

        if (!mb)
                return;
        assert(!mb->gone);
        lists[0] = mb->priority;
        lists[1] = mailbox_take(&mb->priority_head);
        lists[2] = mb->batch;
        lists[3] = mailbox_take(&mb->head);
        mb->batch = mb->priority = NULL;
        for (int i = 0; i < 4; i++) {
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
