#include "run/task/event_queue.h"

#include <stdlib.h>

#include "base/mem.h"

enum notice_kind { SIGNAL_WAITS, CHECKPOINTED, QUOTED, READY, UNREACHABLE, SILENT };

struct notice { /* an event other than a task's state */
        enum notice_kind kind;
        size_t before; /* number of task events delivered before it */
        struct run_id id;
        uint64_t begins_ms;
        uint32_t containment;
        int error;
        char *text;
};

struct event_queue {
        const struct run_observer *observer;
        void *arg;
        struct timer *later;
        struct run_event *events;
        size_t count, cap;
        struct notice *notices;
        size_t notice_count, notice_cap;
};

static void on_later(void *arg)
{
        event_queue_tell(arg);
}

struct event_queue *event_queue_new(struct loop *l, const struct run_observer *observer, void *arg)
{
        struct event_queue *q = mem_new(struct event_queue);

        q->observer = observer;
        q->arg = arg;
        q->later = timer_new(l, on_later, q);
        return q;
}

static void events_free(const struct event_queue *q)
{
        for (size_t i = 0; i < q->count; i++)
                free((char *)(uintptr_t)q->events[i].text);
        for (size_t i = 0; i < q->notice_count; i++)
                free(q->notices[i].text);
        free(q->events);
        free(q->notices);
}

void event_queue_free(struct event_queue *q)
{
        if (!q)
                return;
        timer_free(q->later);
        events_free(q);
        free(q);
}

static void notice_tell(const struct run_observer *o, void *arg, const struct notice *n)
{
        switch (n->kind) {
        case SIGNAL_WAITS: o->signal_waits(arg, n->id); break;
        case CHECKPOINTED: o->checkpointed(arg, n->id, n->text); break;
        case QUOTED: o->quoted(arg, &(struct run_quote){n->id, n->begins_ms, n->error, n->text}); break;
        case READY: o->ready(arg, n->containment, n->error); break;
        case UNREACHABLE: o->unreachable(arg, n->text); break;
        case SILENT: o->silent(arg, n->text); break;
        }
}

void event_queue_tell(struct event_queue *q)
{
        const struct event_queue told = *q; /* the queue may be freed during a call */
        size_t from = 0;

        timer_stop(q->later);
        q->events = NULL;
        q->notices = NULL;
        q->count = q->cap = q->notice_count = q->notice_cap = 0;
        for (size_t i = 0; i <= told.notice_count; i++) {
                size_t until = i < told.notice_count ? told.notices[i].before : told.count;

                if (until > from)
                        told.observer->tasks(told.arg, told.events + from, until - from);
                from = until;
                if (i < told.notice_count)
                        notice_tell(told.observer, told.arg, &told.notices[i]);
        }
        events_free(&told);
}

static void tell_later(struct event_queue *q)
{
        if (q->count + q->notice_count == 1)
                timer_start(q->later, 0);
}

void event_queue_task(struct event_queue *q, const struct run_event *e)
{
        MEM_GROW(q->events, q->cap, q->count + 1);
        q->events[q->count] = *e;
        if (e->text)
                q->events[q->count].text = mem_dupz(e->text);
        q->count++;
        tell_later(q);
}

static void notice_add(struct event_queue *q, struct notice n, const char *text)
{
        MEM_GROW(q->notices, q->notice_cap, q->notice_count + 1);
        n.before = q->count;
        n.text = text ? mem_dupz(text) : NULL;
        q->notices[q->notice_count++] = n;
        tell_later(q);
}

void event_queue_signal_waits(struct event_queue *q, struct run_id id)
{
        notice_add(q, (struct notice){.kind = SIGNAL_WAITS, .id = id}, NULL);
}

void event_queue_checkpointed(struct event_queue *q, struct run_id id, const char *files)
{
        notice_add(q, (struct notice){.kind = CHECKPOINTED, .id = id}, files);
}

void event_queue_quoted(struct event_queue *q, const struct run_quote *quote)
{
        notice_add(q,
                   (struct notice){.kind = QUOTED,
                                   .id = quote->id,
                                   .begins_ms = quote->begins_ms,
                                   .error = quote->error},
                   quote->why);
}

void event_queue_ready(struct event_queue *q, uint32_t containment, int hide_error)
{
        notice_add(q, (struct notice){.kind = READY, .containment = containment, .error = hide_error}, NULL);
}

void event_queue_unreachable(struct event_queue *q, const char *why)
{
        notice_add(q, (struct notice){.kind = UNREACHABLE}, why);
}

void event_queue_silent(struct event_queue *q, const char *why)
{
        notice_add(q, (struct notice){.kind = SILENT}, why);
}
