/* The sums, the state of each item and the slots of the workers are in memory that all processes share. An
 * item's state is written by the worker that has it, and by the waiting process once that worker has ended.
 */
#include "move/workers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "move/mover.h"

#define STEP_MS         50
#define MEASURE_MS      500 /* shortest time in which a number of workers is measured */
#define MEASURE_N       16  /* and items, unless it has taken as long as MEASURE_MOST_MS */
#define MEASURE_MOST_MS 4000
#define AGAIN_MS        30000       /* until a greater number is tried again */
#define ITEM_UNITS      (64u << 10) /* what an item counts besides its bytes */
#define FIRST           2u

/* results of items */
#define DONE   254u
#define FAILED 255u

struct shared {
        struct workers_sum sum;
        struct worker slots[WORKERS_MAX];
        atomic_uchar states[]; /* of each item: workers that have ended with it, or a result */
};

struct slot { /* the waiting process's own view of a worker */
        pid_t pid;
        unsigned beats;
        int64_t silent_ms;
};

struct crew {
        const struct workers_spec *spec;
        struct workers_report *report;
        struct shared *s;
        size_t bytes;
        struct slot slots[WORKERS_MAX];
        unsigned wanted, running,
                before;              /* before: the number that `wanted` was raised from; 0: not raised */
        uint64_t rate_before;        /* units a second with `before` workers */
        int64_t looked_ms, since_ms; /* since: the present measurement began */
        uint64_t since_bytes, since_done;
        int64_t settled_ms; /* when the number was found; 0: it is still being looked for */
        size_t *again;      /* items of workers that have ended */
        size_t again_count, again_cap;
};

static int64_t workers_now_ms(void)
{
        return clock_mono_ns() / 1000000;
}

/* ---- in a worker */

static void tell_first(struct workers_sum *sum, const struct err *err)
{
        unsigned none = 0;

        if (!atomic_compare_exchange_strong(&sum->told, &none, 1))
                return;
        sum->first = *err;
        atomic_store(&sum->told, 2);
}

/* An item is not done again once its state is a result. */
static void add_outcome(struct shared *s, size_t item, int r, const struct err *err)
{
        struct workers_sum *sum = &s->sum;

        if (r == 0) {
                atomic_store(&s->states[item], DONE);
                atomic_fetch_add(&sum->done, 1);
                return;
        }
        if (r < 0 || r == MOVER_AGAIN)
                atomic_store(&sum->again, true);
        else
                atomic_store(&sum->refused, true);
        tell_first(sum, err);
        atomic_store(&s->states[item], FAILED);
}

static void do_item(const struct crew *c, struct worker *me, size_t item)
{
        struct workers_sum *sum = &c->s->sum;
        struct err err = {""};
        int r;

        atomic_store(&me->moved, 0);
        atomic_store(&me->begins, item + 1);
        r = c->spec->work(c->spec->arg, me, sum, item, &err);
        if (r < 0 && !*err.text)
                err_set(&err, r, "%s", strerror(-r));
        add_outcome(c->s, item, r, &err);
        atomic_store(&me->claim, 0);
        atomic_store(&me->moved, 0);
        atomic_store(&me->begins, 0);
}

/* first: an item to begin with; SIZE_MAX: none. */
__attribute__((noreturn)) static void work(const struct crew *c, struct worker *me, unsigned number,
                                           size_t first, pid_t parent)
{
        size_t item = first;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(1);
        if (item != SIZE_MAX)
                do_item(c, me, item);
        /* more workers than are wanted: the last ones end */
        while (number < atomic_load(&c->s->sum.wanted) &&
               (item = (size_t)atomic_fetch_add(&c->s->sum.next, 1)) < c->spec->count)
                do_item(c, me, item);
        _exit(0);
}

/* ---- in the process that waits */

static int worker_start(struct crew *c, unsigned number, size_t first)
{
        struct worker *me = &c->s->slots[number];
        pid_t parent = getpid();

        memset(me, 0, sizeof(*me));
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
                work(c, me, number, first, parent);
        if (pid < 0)
                return -errno;
        c->slots[number] = (struct slot){.pid = pid};
        c->running++;
        return 0;
}

static bool has_result(const struct crew *c, size_t item)
{
        return atomic_load(&c->s->states[item]) >= DONE;
}

/* An item whose worker has ended in the middle is done again, unless it has ended too many. */
static void do_again(struct crew *c, size_t item)
{
        struct err err = {""};

        if (atomic_fetch_add(&c->s->states[item], 1) + 1 < WORKERS_LIVES) {
                MEM_GROW(c->again, c->again_cap, c->again_count + 1);
                c->again[c->again_count++] = item;
                return;
        }
        err_set(&err, -EAGAIN, "the process that moved it died, or hung and was ended");
        add_outcome(c->s, item, MOVER_AGAIN, &err);
}

static void item_left(struct crew *c, struct worker *w)
{
        uint64_t begins = atomic_load(&w->begins);

        if (!begins || has_result(c, (size_t)begins - 1))
                return;
        atomic_fetch_sub(&c->s->sum.claimed, atomic_load(&w->claim));
        do_again(c, (size_t)begins - 1);
}

/* Finds, after the end of all workers, items that a worker had taken and not yet named when it ended. */
static void find_lost(struct crew *c)
{
        for (size_t i = 0; i < c->spec->count; i++)
                if (!has_result(c, i))
                        do_again(c, i);
}

static void ended(struct crew *c, unsigned number)
{
        c->slots[number].pid = 0;
        c->running--;
        item_left(c, &c->s->slots[number]);
}

/* A gap between two looks counts as a second at most: this process may have been stopped, and the workers
 * with it. */
static void look_at_workers(struct crew *c)
{
        int64_t now = workers_now_ms(), passed = now - c->looked_ms;

        c->looked_ms = now;
        for (unsigned i = 0; i < WORKERS_MAX; i++) {
                struct slot *slot = &c->slots[i];
                unsigned beats = atomic_load(&c->s->slots[i].beats);

                if (!slot->pid)
                        continue;
                if (waitpid(slot->pid, NULL, WNOHANG) == slot->pid) {
                        ended(c, i);
                        continue;
                }
                slot->silent_ms =
                        beats != slot->beats ? 0 : slot->silent_ms + (passed < 1000 ? passed : 1000);
                slot->beats = beats;
                if (slot->silent_ms <= (int64_t)c->spec->silent_ms)
                        continue;
                kill(slot->pid, SIGKILL);
                waitpid(slot->pid, NULL, 0);
                ended(c, i);
        }
}

static uint64_t bytes_now(const struct crew *c)
{
        uint64_t bytes = atomic_load(&c->s->sum.bytes);

        for (unsigned i = 0; i < WORKERS_MAX; i++)
                if (c->slots[i].pid)
                        bytes += atomic_load(&c->s->slots[i].moved);
        return bytes;
}

static void measure_from_now(struct crew *c)
{
        c->since_ms = workers_now_ms();
        c->since_bytes = bytes_now(c);
        c->since_done = atomic_load(&c->s->sum.done);
}

static void want(struct crew *c, unsigned wanted)
{
        c->wanted = wanted;
        atomic_store(&c->s->sum.wanted, wanted);
        measure_from_now(c);
}

static void note(struct crew *c, uint64_t bytes, uint64_t items, uint64_t ms)
{
        struct workers_report *r = c->report;

        if (r->tried_count == WORKERS_TRIED)
                return;
        r->tried[r->tried_count++] = (struct workers_tried){c->wanted, bytes * 1000 / ms, items * 1000 / ms};
}

/* Doubles the number while that brings a tenth more. */
static void tune(struct crew *c)
{
        int64_t now = workers_now_ms(), ms = now - c->since_ms;
        uint64_t bytes = bytes_now(c), done = atomic_load(&c->s->sum.done);
        uint64_t items = done - c->since_done, moved = bytes > c->since_bytes ? bytes - c->since_bytes : 0;

        if (c->spec->fixed || ms < MEASURE_MS || (items < MEASURE_N && ms < MEASURE_MOST_MS))
                return;
        if (c->settled_ms && now - c->settled_ms < AGAIN_MS)
                return;
        uint64_t rate = (moved + items * ITEM_UNITS) * 1000 / (uint64_t)ms;
        note(c, moved, items, (uint64_t)ms);
        c->settled_ms = 0;
        if (c->before && rate < c->rate_before + c->rate_before / 10) {
                c->settled_ms = now;
                unsigned back = c->before;
                c->before = 0;
                want(c, back);
        } else if (c->wanted == c->spec->most) {
                c->settled_ms = now;
                c->before = 0;
                measure_from_now(c);
        } else {
                c->before = c->wanted;
                c->rate_before = rate;
                want(c, c->wanted * 2 > c->spec->most ? c->spec->most : c->wanted * 2);
        }
}

/* Starts what is wanted. Returns -errno if no worker can be started and none runs. */
static int fill(struct crew *c)
{
        int r = 0;

        for (unsigned i = 0; i < c->wanted && r == 0; i++) {
                bool left = atomic_load(&c->s->sum.next) < c->spec->count;

                if (c->slots[i].pid || (!left && c->again_count == 0))
                        continue;
                r = worker_start(c, i, c->again_count ? c->again[c->again_count - 1] : SIZE_MAX);
                if (r == 0 && c->again_count)
                        c->again_count--;
        }
        return c->running ? 0 : r;
}

static void end_all(struct crew *c)
{
        for (unsigned i = 0; i < WORKERS_MAX; i++) {
                if (!c->slots[i].pid)
                        continue;
                kill(c->slots[i].pid, SIGKILL);
                waitpid(c->slots[i].pid, NULL, 0);
                ended(c, i);
        }
}

static bool is_over(struct crew *c)
{
        if (c->running || c->again_count || atomic_load(&c->s->sum.next) < c->spec->count)
                return false;
        find_lost(c);
        return c->again_count == 0;
}

static void count_results(const struct crew *c)
{
        for (size_t i = 0; i < c->spec->count; i++) {
                unsigned state = atomic_load(&c->s->states[i]);

                c->report->done += state == DONE;
                c->report->failed += state == FAILED;
        }
}

static int run(struct crew *c)
{
        const struct workers_spec *s = c->spec;
        int r = 0;

        c->looked_ms = workers_now_ms();
        want(c, s->fixed || s->most < FIRST ? s->most : FIRST);
        while (r == 0 && !is_over(c)) {
                r = fill(c);
                if (r == 0)
                        poll(NULL, 0, STEP_MS);
                look_at_workers(c);
                if (r == 0)
                        r = s->alive(s->arg, bytes_now(c), atomic_load(&c->s->sum.done));
                tune(c);
        }
        end_all(c);
        return r;
}

int workers_run(const struct workers_spec *s, struct workers_report *ret)
{
        struct crew c = {.spec = s, .report = ret, .bytes = sizeof(struct shared) + s->count};

        *ret = (struct workers_report){0};
        c.s = mmap(NULL, c.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (c.s == MAP_FAILED)
                return -errno;
        int r = run(&c);
        const struct workers_sum *sum = &c.s->sum;
        ret->bytes = atomic_load(&sum->bytes);
        ret->tries = atomic_load(&sum->tries);
        count_results(&c);
        ret->again = atomic_load(&sum->again);
        ret->refused = atomic_load(&sum->refused);
        ret->denied = atomic_load(&sum->denied);
        ret->last = c.wanted;
        if (atomic_load(&sum->told) == 2)
                ret->first = sum->first;
        munmap(c.s, c.bytes);
        free(c.again);
        return r;
}
