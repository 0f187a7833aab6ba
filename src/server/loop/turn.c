/* A flight is one turn's batch with its outbox. `open` is the current turn's; closed ones stand in a queue
 * until their callback. A batch that came back STORE_FULL stands still in its place; when the last callback
 * of those under way is in, the retry timer appends the first again, and each success appends the next, so
 * that order holds.
 *
 * The store's thread itself hands the outbox to the I/O thread as soon as the batch is durable: who waits for
 * an answer does not wait for the core's thread to wake and pass it on. The core learns of it by a landing,
 * and does then what nobody waits for. What it puts behind a flight meanwhile goes into that outbox as long
 * as that has not left, and else to the I/O thread at once; the lock makes it one or the other, so order
 * holds here too.
 */
#include "server/loop/turn.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"

#define RETRY_FIRST_MS 250
#define RETRY_LAST_MS  5000
#define SLEPT_MS       1000 /* less is the time between two looks at the clocks */
#define INFORM_MS      100  /* what only informs is written at the latest after this */

struct outbox { /* what goes to the I/O thread together */
        struct task task;
        struct task *first, **tail;
};
struct flight {
        struct flight *next;
        struct store_batch *batch; /* NULL while the store has it */
        size_t bytes;              /* of it */
        struct turn *turn;
        struct outbox *out; /* NULL: nothing is in it. With the lock once the flight is closed */
        bool left;          /* the batch is durable, and what was in `out` has left. With the lock */
};
struct turn {
        struct server *server;
        const struct turn_hooks *hooks;
        pthread_mutex_t lock; /* see `out` and `left`; the store's thread takes it too */
        struct flight *open;
        struct flight *first, *last;
        unsigned under_way; /* appended, not called back */
        bool begun, full, broken;
        bool urgent; /* the open batch has more than what only informs */
        int64_t retry_ms;
        int64_t asleep_ms; /* for so long the machine has been asleep since it was started */
        struct timer *retry, *inform, *again; /* again: matching goes on */
};
struct landing { /* a callback of the store, on its way to the core thread */
        struct task task;
        struct flight *flight;
        struct store_batch *batch;
        int result;
        uint64_t seq;
        struct err err;
};

static void retry(void *arg);
static void inform(void *arg);
static void match_again(void *arg);

/* ---- outboxes */

static struct task *outbox_take(struct outbox *o)
{
        struct task *task = o->first;

        if (task) {
                o->first = (struct task *)task->mail.next;
                task->mail.next = NULL;
        }
        return task;
}

static void outbox_drop(struct task *t)
{
        struct outbox *o = (struct outbox *)t;

        for (struct task *task; (task = outbox_take(o));)
                task_drop(task);
        free(o);
}

/* On the I/O thread. */
static void outbox_run(struct server *s, struct task *t)
{
        struct outbox *o = (struct outbox *)t;

        for (struct task *task; (task = outbox_take(o));)
                task->run(s, task);
        free(o);
}

static struct outbox *outbox_new(void)
{
        struct outbox *o = mem_new(struct outbox);

        o->task.run = outbox_run;
        o->task.drop = outbox_drop;
        o->tail = &o->first;
        return o;
}

static void outbox_add(struct outbox *o, struct task *task)
{
        task->mail.next = NULL;
        *o->tail = task;
        o->tail = (struct task **)&task->mail.next;
}

/* `behind` has something in it, and is gone. */
static void outbox_append(struct outbox *o, struct outbox *behind)
{
        *o->tail = behind->first;
        o->tail = behind->tail;
        free(behind);
}

/* ---- flights */

static struct flight *flight_new(struct turn *t)
{
        struct flight *f = mem_new(struct flight);

        f->turn = t;
        return f;
}

static void flight_free(struct flight *f)
{
        if (f->out)
                outbox_drop(&f->out->task);
        store_batch_free(f->batch);
        free(f);
}

/* On the store's thread. */
static void flight_leave(struct flight *f, uint64_t seq)
{
        struct turn *t = f->turn;

        pthread_mutex_lock(&t->lock);
        atomic_store(&t->server->durable_seq, seq);
        f->left = true;
        if (f->out)
                server_to_io(t->server, &f->out->task);
        f->out = NULL;
        pthread_mutex_unlock(&t->lock);
}

/* What follows this flight, but not from its batch. */
static void flight_follow(struct flight *f, struct outbox *behind)
{
        struct turn *t = f->turn;

        pthread_mutex_lock(&t->lock);
        if (f->left)
                server_to_io(t->server, &behind->task);
        else if (f->out)
                outbox_append(f->out, behind);
        else
                f->out = behind;
        pthread_mutex_unlock(&t->lock);
}

/* ---- turns */

/* The one clock goes on while the machine sleeps, the other does not. */
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
        t->open = flight_new(t);
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
                struct flight *f = t->first;

                t->first = f->next;
                flight_free(f);
        }
        flight_free(t->open);
        timer_free(t->retry);
        timer_free(t->inform);
        timer_free(t->again);
        pthread_mutex_destroy(&t->lock);
        free(t);
}

/* Leases that ended while we slept were not ours to end: nobody could be heard. Agents that were awake have
 * ended what they had; those of this machine do so now. Either says what it has when it greets. */
static void look_for_sleep(struct turn *t)
{
        int64_t before = t->asleep_ms;

        t->asleep_ms = asleep_ms();
        if (t->asleep_ms - before < SLEPT_MS)
                return;
        log_warn("msg=\"this machine has been asleep: leases begin anew, and agents greet again\" "
                 "seconds=%lld",
                 (long long)((t->asleep_ms - before) / 1000));
        core_ready(t->server->core);
        t->hooks->slept(t->server);
}

void turn_begin(struct turn *t)
{
        if (t->begun)
                return;
        t->begun = true;
        core_clock(t->server->core, clock_wall_ms(), clock_boot_ms());
        look_for_sleep(t);
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

static bool open_has_records(const struct turn *t)
{
        return t->open->batch && !store_batch_empty(t->open->batch);
}

void turn_send(struct turn *t, struct task *task, enum turn_when when)
{
        t->urgent |= when == TURN_DURABLE;
        if (when == TURN_NOW || (when == TURN_READ && t->full)) {
                server_to_io(t->server, task);
                return;
        }
        if (!t->open->out)
                t->open->out = outbox_new();
        outbox_add(t->open->out, task);
}

bool turn_full(const struct turn *t)
{
        return t->full;
}

bool turn_idle(const struct turn *t)
{
        return !t->first && !open_has_records(t);
}

static void landed_drop(struct task *task)
{
        struct landing *l = (struct landing *)task;

        store_batch_free(l->batch);
        free(l);
}

/* What is left to do when it is durable and its outbox has left. */
static void flight_done(struct turn *t, struct flight *f, uint64_t seq)
{
        size_t bytes;

        if (f != t->first) {
                server_fatal(t->server, "the store finished a batch out of order");
                return;
        }
        t->first = f->next;
        if (!t->first)
                t->last = NULL;
        bytes = f->bytes;
        flight_free(f);
        t->hooks->durable(t->server, seq, bytes);
}

static void enter_full(struct turn *t)
{
        if (t->full)
                return;
        t->full = true;
        t->retry_ms = RETRY_FIRST_MS;
        log_error("msg=\"the disk is full: no new work is accepted until there is space\" dir=\"%s\"",
                  t->server->paths.dir);
        if (store_reserve_release(t->server->store) != 0)
                log_warn("msg=\"the reserve file could not be released\"");
}

static void landed(struct server *s, struct task *task)
{
        struct landing *l = (struct landing *)task;
        struct turn *t = s->turn;

        t->under_way--;
        if (l->result == STORE_DURABLE) {
                flight_done(t, l->flight, l->seq);
        } else if (l->result == STORE_FULL) {
                l->flight->batch = l->batch;
                enter_full(t);
        } else {
                t->broken = true;
                server_fatal(s, "msg=\"the store failed, stopping to recover\" result=%d why=\"%s\"",
                             l->result, LOG_TEXT(str_of(l->err.text)));
        }
        if (t->full && t->under_way == 0 && !t->broken) {
                if (l->result == STORE_DURABLE && (t->first || open_has_records(t)))
                        retry(t); /* there is space again: the next at once */
                else
                        timer_start(t->retry, t->retry_ms);
        }
        free(l);
}

/* On the store's thread. */
static void done(void *arg, int result, uint64_t last_seq, struct store_batch *batch, const struct err *err)
{
        struct flight *f = arg;
        struct landing *l = mem_new(struct landing);

        l->task.run = landed;
        l->task.drop = landed_drop;
        l->flight = f;
        l->batch = batch;
        l->result = result;
        l->seq = last_seq;
        if (err)
                l->err = *err;
        if (result == STORE_DURABLE)
                flight_leave(f, last_seq);
        server_to_core(f->turn->server, &l->task);
}

static void append(struct turn *t, struct flight *f)
{
        struct store_batch *b = f->batch;

        f->batch = NULL;
        f->bytes = store_batch_bytes(b);
        t->under_way++;
        store_append(t->server->store, t->server->term, b, done, f);
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

/* The open batch goes to the store; its outbox waits for it. */
static void close_open(struct turn *t)
{
        struct flight *f = t->open;

        t->open = flight_new(t);
        t->urgent = false;
        timer_stop(t->inform);
        if (t->last)
                t->last->next = f;
        else
                t->first = f;
        t->last = f;
        append(t, f);
}

/* Nothing of this turn needs the disk: what it says follows what is under way. */
static void follow_last(struct turn *t)
{
        struct outbox *out = t->open->out;

        if (!out)
                return;
        t->open->out = NULL;
        if (t->last)
                flight_follow(t->last, out);
        else
                server_to_io(t->server, &out->task);
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
        bool stopping = atomic_load(&t->server->stopping);

        if (!t->begun)
                return;
        if (!t->full && !stopping && core_match(t->server->core))
                timer_start(t->again, 0);
        t->hooks->ending(t->server);
        t->begun = false;
        if (t->broken)
                return;
        if (open_has_records(t) && (t->urgent || stopping)) {
                if (!t->full || !t->first) /* else it gathers behind what cannot be written */
                        close_open(t);
                return;
        }
        t->urgent = false;
        follow_last(t);
        if (open_has_records(t) && !timer_running(t->inform))
                timer_start(t->inform, INFORM_MS);
}
