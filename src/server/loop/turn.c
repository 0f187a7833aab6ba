/* A commit is one turn's batch together with the replies that wait for it. `open` is the current turn's
 * commit. Closed commits stand in a queue until the store has called back. A batch that came back with
 * STORE_FULL keeps its place; when the last outstanding callback has arrived, the retry timer appends the
 * first batch again, and each success appends the next one, so that the order is kept.
 *
 * The store's thread itself passes the deferred replies to the I/O thread as soon as the batch is durable,
 * so that a client does not wait until the core thread wakes up. The core thread does the rest at its next
 * turn; a commit_done wakes it only if something waits for that (turn_hooks.awaited), or if the batch is not
 * durable. If the core defers more replies behind a commit meanwhile, they join its deferred replies while
 * those have not been sent, and otherwise go to the I/O thread at once. The lock decides which of the two
 * happens, so that the order is kept here too. */
#include "server/loop/turn.h"

#include <pthread.h>

#include "base/system/clock.h"
#include "base/system/log.h"

#define RETRY_FIRST_MS 250
#define RETRY_LAST_MS  5000
#define SLEPT_MS       1000 /* a shorter sleep is not told from the time between reading the two clocks */
#define INFORM_MS      100  /* informing records are written after this time at the latest */

struct deferred_replies { /* replies that go to the I/O thread together */
        struct task task;
        struct task *first, **tail;
};
struct commit {
        struct commit *next;
        uint64_t number;
        struct store_batch *batch; /* NULL while the store has it */
        size_t bytes;              /* in the batch */
        int64_t given_ns;          /* when the store received the batch */
        struct turn *turn;
        /* what waits for this commit: replies to calls, and messages to agents; NULL: none. Under the lock
         * once the commit is closed */
        struct deferred_replies *replies, *out;
        bool left;    /* the batch is durable and these were sent. Under the lock */
        bool awaited; /* a commit_done is to come when it is durable. Under the lock */
        uint64_t seq; /* of the last record, once it has left; and how long the store had the batch */
        int64_t took_ns;
};
struct turn {
        struct server *server;
        const struct turn_hooks *hooks;
        pthread_mutex_t lock; /* guards `out` and `left`, which the store's thread uses too */
        struct commit *open;
        struct commit *first, *last;
        atomic_uint_least64_t durable; /* number of the last commit that is; written under the lock */
        unsigned under_way;            /* batches appended and not called back */
        bool begun, full, broken;
        bool urgent; /* the open batch has a record that must not wait */
        int64_t retry_ms;
        int64_t asleep_ms;                    /* how long the machine has slept since it was started */
        struct timer *retry, *inform, *again; /* again: continues matching */
};
struct commit_done { /* a callback of the store on its way to the core thread */
        struct task task;
        struct commit *commit;
        struct store_batch *batch;
        int result;
        struct err err;
};

static void retry(void *arg);
static void inform(void *arg);
static void match_again(void *arg);

/* ---- deferred replies */

static struct task *deferred_take(struct deferred_replies *o)
{
        struct task *task = o->first;

        if (task) {
                o->first = (struct task *)task->mail.next;
                task->mail.next = NULL;
        }
        return task;
}

static void deferred_drop(struct task *t)
{
        struct deferred_replies *o = (struct deferred_replies *)t;

        for (struct task *task; (task = deferred_take(o));)
                task_drop(task);
        free(o);
}

/* Runs on the I/O thread. */
static void deferred_run(struct server *s, struct task *t)
{
        struct deferred_replies *o = (struct deferred_replies *)t;

        for (struct task *task; (task = deferred_take(o));)
                task->run(s, task);
        free(o);
}

static struct deferred_replies *deferred_new(void)
{
        struct deferred_replies *o = mem_new(struct deferred_replies);

        o->task.run = deferred_run;
        o->task.drop = deferred_drop;
        o->tail = &o->first;
        return o;
}

static void deferred_add(struct deferred_replies *o, struct task *task)
{
        task->mail.next = NULL;
        *o->tail = task;
        o->tail = (struct task **)&task->mail.next;
}

/* Moves `behind`, which may be NULL, to the end of *o. */
static void deferred_append(struct deferred_replies **o, struct deferred_replies *behind)
{
        if (*o && behind) {
                *(*o)->tail = behind->first;
                (*o)->tail = behind->tail;
                free(behind);
        } else if (behind) {
                *o = behind;
        }
}

/* ---- commits */

static struct commit *commit_new(struct turn *t, uint64_t number)
{
        struct commit *c = mem_new(struct commit);

        c->turn = t;
        c->number = number;
        return c;
}

static void commit_free(struct commit *c)
{
        if (c->replies)
                deferred_drop(&c->replies->task);
        if (c->out)
                deferred_drop(&c->out->task);
        store_batch_free(c->batch);
        free(c);
}

static void send_deferred(struct turn *t, struct deferred_replies *replies, struct deferred_replies *out)
{
        if (replies)
                server_to_io_priority(t->server, &replies->task);
        if (out)
                server_to_io(t->server, &out->task);
}

/* Marks the commit as durable and sends its replies. Returns whether the core thread is to be woken. Runs on
 * the store's thread; the core thread may free the commit as soon as the lock is released. */
static bool commit_release(struct commit *c, uint64_t seq)
{
        struct turn *t = c->turn;
        bool awaited;

        pthread_mutex_lock(&t->lock);
        atomic_store(&t->server->durable_seq, seq);
        atomic_store(&t->durable, c->number);
        c->left = true;
        c->seq = seq;
        c->took_ns = clock_mono_ns() - c->given_ns;
        send_deferred(t, c->replies, c->out);
        c->replies = c->out = NULL;
        awaited = c->awaited;
        pthread_mutex_unlock(&t->lock);
        return awaited;
}

static bool commit_has_left(struct commit *c)
{
        bool left;

        pthread_mutex_lock(&c->turn->lock);
        left = c->left;
        pthread_mutex_unlock(&c->turn->lock);
        return left;
}

/* The core thread is to have a turn as soon as the commit is durable. */
static void commit_await(struct commit *c)
{
        struct turn *t = c->turn;

        pthread_mutex_lock(&t->lock);
        c->awaited = true;
        if (c->left)
                timer_start(t->again, 0);
        pthread_mutex_unlock(&t->lock);
}

/* Adds replies that follow this commit without belonging to its batch. */
static void commit_follow(struct commit *c, struct deferred_replies *replies, struct deferred_replies *out)
{
        struct turn *t = c->turn;

        pthread_mutex_lock(&t->lock);
        if (c->left) {
                send_deferred(t, replies, out);
        } else {
                deferred_append(&c->replies, replies);
                deferred_append(&c->out, out);
        }
        pthread_mutex_unlock(&t->lock);
}

/* Sends replies behind the last commit under way. */
static void follow_last(struct turn *t, struct deferred_replies *replies, struct deferred_replies *out)
{
        if (t->last)
                commit_follow(t->last, replies, out);
        else
                send_deferred(t, replies, out);
}

/* ---- turns */

/* CLOCK_BOOTTIME counts the time during which the machine sleeps, CLOCK_MONOTONIC does not. */
static int64_t asleep_ms(void)
{
        return clock_boot_ms() - clock_mono_ns() / 1000000;
}

struct turn *turn_new(struct server *s, const struct turn_hooks *hooks)
{
        struct turn *t = mem_new(struct turn);

        t->server = s;
        t->hooks = hooks;
        pthread_mutex_init(&t->lock, NULL);
        t->open = commit_new(t, 1);
        t->asleep_ms = asleep_ms();
        t->retry = timer_new(s->loop, retry, t);
        t->inform = timer_new(s->loop, inform, t);
        t->again = timer_new(s->loop, match_again, t);
        return t;
}

void turn_free(struct turn *t)
{
        if (!t)
                return;
        while (t->first) {
                struct commit *c = t->first;

                t->first = c->next;
                commit_free(c);
        }
        commit_free(t->open);
        timer_free(t->retry);
        timer_free(t->inform);
        timer_free(t->again);
        pthread_mutex_destroy(&t->lock);
        free(t);
}

/* Leases must not be ended for the time during which the machine slept, because no renewal could be
 * received. Agents on machines that were awake have ended their jobs; agents of this machine end them now.
 * Both report what they still have when they reconnect. */
static void check_slept(struct turn *t)
{
        int64_t before = t->asleep_ms;

        t->asleep_ms = asleep_ms();
        if (t->asleep_ms - before < SLEPT_MS)
                return;
        log_warn("msg=\"this machine has been asleep: leases begin anew, and agents connect again\" "
                 "seconds=%lld",
                 (long long)((t->asleep_ms - before) / 1000));
        core_ready(t->server->core);
        t->hooks->slept(t->server);
}

/* Finishes the commits that are durable and whose replies were sent. */
static void finish_commits(struct turn *t)
{
        while (t->first && commit_has_left(t->first)) {
                struct commit *c = t->first;

                t->first = c->next;
                if (!t->first)
                        t->last = NULL;
                t->under_way--;
                t->hooks->durable(t->server, c->seq, c->bytes, c->took_ns);
                commit_free(c);
        }
}

void turn_begin(struct turn *t)
{
        if (t->begun)
                return;
        t->begun = true;
        core_clock(t->server->core, clock_wall_ms(), clock_boot_ms());
        check_slept(t);
        finish_commits(t);
}

struct store_batch *turn_inform(struct turn *t)
{
        if (!t->open->batch)
                t->open->batch = store_batch_new();
        return t->open->batch;
}

struct store_batch *turn_batch(struct turn *t)
{
        t->urgent = true;
        return turn_inform(t);
}

uint64_t turn_commit(const struct turn *t)
{
        return t->open->number;
}

uint64_t turn_durable(const struct turn *t)
{
        return atomic_load(&t->durable);
}

static bool open_has_records(const struct turn *t)
{
        return t->open->batch && !store_batch_empty(t->open->batch);
}

/* False: the task waits for nothing. */
static bool defer(struct turn *t, struct deferred_replies **list, struct task *task, enum turn_when when)
{
        t->urgent |= when == TURN_DURABLE;
        if (when == TURN_NOW || (when == TURN_READ && t->full))
                return false;
        if (!*list)
                *list = deferred_new();
        deferred_add(*list, task);
        return true;
}

void turn_send(struct turn *t, struct task *task, enum turn_when when)
{
        if (!defer(t, &t->open->out, task, when))
                server_to_io(t->server, task);
}

/* What was read before this turn has a record of its own depends on earlier commits only. */
static bool read_before_records(const struct turn *t, enum turn_when when)
{
        return when == TURN_READ && !t->full && !t->open->replies && !open_has_records(t);
}

void turn_reply(struct turn *t, struct task *task, enum turn_when when)
{
        struct deferred_replies *alone = NULL;
        bool early = read_before_records(t, when);

        if (!defer(t, early ? &alone : &t->open->replies, task, when))
                server_to_io_priority(t->server, task);
        else if (early)
                follow_last(t, alone, NULL);
}

bool turn_full(const struct turn *t)
{
        return t->full;
}

bool turn_idle(const struct turn *t)
{
        return (!t->last || commit_has_left(t->last)) && !open_has_records(t);
}

static void commit_done_drop(struct task *task)
{
        struct commit_done *d = (struct commit_done *)task;

        store_batch_free(d->batch);
        free(d);
}

static void enter_full(struct turn *t, const struct err *why)
{
        if (t->full)
                return;
        t->full = true;
        t->retry_ms = RETRY_FIRST_MS;
        log_error("msg=\"the disk is full: no new work is accepted until there is space\" dir=\"%s\" "
                  "why=\"%s\"",
                  t->server->paths.dir, LOG_TEXT(str_of(why->text)));
        if (store_reserve_release(t->server->store) != 0)
                log_warn("msg=\"the reserve file could not be released\"");
}

static void on_commit_done(struct server *s, struct task *task)
{
        struct commit_done *d = (struct commit_done *)task;
        struct turn *t = s->turn;

        finish_commits(t);
        if (d->result == STORE_FULL) {
                t->under_way--;
                d->commit->batch = d->batch;
                enter_full(t, &d->err);
        } else if (d->result != STORE_DURABLE) {
                t->under_way--;
                if (!t->broken) /* the other commits under way end in the same way */
                        server_fatal(s, "msg=\"the store failed, stopping to recover\" result=%d why=\"%s\"",
                                     d->result, LOG_TEXT(str_of(d->err.text)));
                t->broken = true;
        }
        if (t->full && t->under_way == 0 && !t->broken) {
                if (d->result == STORE_DURABLE && (t->first || open_has_records(t)))
                        retry(t); /* there is space again: append the next batch at once */
                else
                        timer_start(t->retry, t->retry_ms);
        }
        free(d);
}

/* Runs on the store's thread. */
static void batch_done(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                       const struct err *err)
{
        struct commit *c = arg;
        struct server *s = c->turn->server;
        struct commit_done *d;

        if (result == STORE_DURABLE && !commit_release(c, last_seq))
                return;
        d = mem_new(struct commit_done);
        d->task.run = on_commit_done;
        d->task.drop = commit_done_drop;
        d->commit = c;
        d->batch = batch;
        d->result = result;
        if (err)
                d->err = *err;
        server_to_core(s, &d->task);
}

static void append(struct turn *t, struct commit *c)
{
        struct store_batch *b = c->batch;

        c->batch = NULL;
        c->bytes = store_batch_bytes(b);
        c->given_ns = clock_mono_ns();
        c->awaited |= t->full; /* the next one is appended after it */
        t->under_way++;
        store_append(t->server->store, t->server->term, b, batch_done, c);
}

static void retry(void *arg)
{
        struct turn *t = arg;

        if (t->broken || t->under_way)
                return;
        if (t->first) {
                append(t, t->first);
        } else if (open_has_records(t)) {
                inform(t);
        } else if (store_reserve_take(t->server->store) == 0) {
                t->full = false;
                log_info("msg=\"there is space on the disk again\"");
                turn_begin(t);
                turn_end(t);
                return;
        }
        t->retry_ms = t->retry_ms * 2 > RETRY_LAST_MS ? RETRY_LAST_MS : t->retry_ms * 2;
        if (!t->under_way)
                timer_start(t->retry, t->retry_ms);
}

/* Passes the open batch to the store; its replies wait for it. */
static void close_open(struct turn *t, bool awaited)
{
        struct commit *c = t->open;

        t->open = commit_new(t, c->number + 1);
        t->urgent = false;
        timer_stop(t->inform);
        if (t->last)
                t->last->next = c;
        else
                t->first = c;
        t->last = c;
        c->awaited = awaited;
        append(t, c);
}

void turn_beat(struct turn *t)
{
        if (t->under_way || t->full || t->broken || t->first || open_has_records(t))
                return;
        if (!t->open->batch)
                t->open->batch = store_batch_new();
        close_open(t, false);
}

static void inform(void *arg)
{
        struct turn *t = arg;

        turn_begin(t);
        t->urgent = true;
        turn_end(t);
}

static void match_again(void *arg)
{
        struct turn *t = arg;

        turn_begin(t);
        turn_end(t);
}

void turn_end(struct turn *t)
{
        bool stopping = atomic_load(&t->server->stopping), awaited;

        if (!t->begun)
                return;
        if (!t->full && !stopping && core_match(t->server->core))
                timer_start(t->again, 0);
        t->hooks->ending(t->server);
        t->begun = false;
        if (t->broken)
                return;
        awaited = t->hooks->awaited(t->server);
        if (open_has_records(t) && (t->urgent || stopping)) {
                if (!t->full ||
                    !t->first) /* otherwise the batch grows behind the one that cannot be written */
                        close_open(t, awaited);
                return;
        }
        if (awaited && t->last)
                commit_await(t->last);
        t->urgent = false;
        if (t->open->replies || t->open->out)
                follow_last(t, t->open->replies, t->open->out);
        t->open->replies = t->open->out = NULL;
        if (open_has_records(t) && !timer_running(t->inform))
                timer_start(t->inform, INFORM_MS);
}
