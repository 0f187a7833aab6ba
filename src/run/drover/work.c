/* What is due: with every tick, and when something has happened. Whose files go up or come down, which tasks
 * become requests, what is sent there, and leases that are over. */
#include "base/clock.h"
#include "run/drover/private.h"

#define TICK_MS      1000
#define WORKING_MAX  6   /* tasks whose files are on the way at the same time */
#define LOOK_MAX     64  /* tasks whose files are looked at in one turn */
#define SOON_MS      5   /* what is ready waits for others that may come */
#define GATHER_MS    100 /* and for those that are known to come */
#define GATHER_TASKS 1000

static bool is_busy(const struct far_task *t)
{
        return t->call || t->errand;
}

/* Those without a call under way, whose files are to go up or come down: a few at a time. True: more FRESH
 * ones are on their way, or next. */
static bool work_tasks(struct far *f, int64_t now)
{
        size_t busy = 0, looked = 0;
        bool more = false;
        for (struct far_task *t = f->table.all; t; t = t->next)
                busy += is_busy(t) && (t->state == FAR_FRESH || t->state == FAR_FETCHING);
        for (struct far_task *t = f->table.all, *next; t; t = next) {
                next = t->next;
                more |= is_busy(t) && t->state == FAR_FRESH;
                if (is_busy(t) || t->given || now < t->not_before_ms)
                        continue;
                if (t->state == FAR_IN && t->dirty) {
                        far_look(t);
                } else if (t->state == FAR_FRESH && (busy >= WORKING_MAX || looked >= LOOK_MAX)) {
                        more = true;
                } else if (t->state == FAR_FRESH) {
                        looked += t->files.n > 0;
                        far_send_files(t);
                        busy += is_busy(t);
                        more |= is_busy(t);
                } else if (t->state == FAR_FETCHING && busy < WORKING_MAX) {
                        busy++, far_fetch(t);
                }
        }
        if (looked >= LOOK_MAX)
                timer_start(f->later, 0);
        return more;
}

/* Jobs are handed on together; one whose files are there does not wait long for others' files. */
static bool is_time(const struct far *f, int64_t now, bool more)
{
        size_t ready = 0;
        int64_t wait = more ? GATHER_MS : SOON_MS;
        for (const struct far_task *t = f->table.all; t; t = t->next) {
                if (t->state != FAR_READY)
                        continue;
                ready++;
                if (now - t->ready_ms >= wait || ready >= GATHER_TASKS)
                        return true;
        }
        if (ready)
                timer_start(f->gather, wait);
        return false;
}

void far_work(struct far *f)
{
        int64_t now = clock_boot_ms();
        if (!f->link.up)
                return;
        bool more = work_tasks(f, now);
        if (is_time(f, now, more))
                far_group(f);
        for (struct far_request *r = f->table.sent, *next; r && f->link.up; r = next) {
                next = r->next;
                if (r->call || now < r->not_before_ms)
                        continue;
                if (r->number)
                        far_carry(r);
                else
                        far_submit(r);
        }
}

void far_flush(struct far *f)
{
        if (!f->link.up)
                return;
        far_acts_send(f);
        far_lease_send(f);
}

void far_kill(struct far_task *t, enum run_why why)
{
        if (t->state == FAR_OVER || t->killing)
                return;
        t->killing = true;
        t->lease_ended = why == RUN_LEASE_ENDED;
        if (t->state == FAR_FRESH || t->state == FAR_READY)
                far_over(t,
                         &(struct run_event){
                                 .state = RUN_ENDED, .why = why, .signaled = true, .exit_code = 15},
                         NULL);
        else if (far_number(t))
                far_act(t, FAR_REMOVE);
}

/* The agent's: everything is ended. */
static void lease_ended(struct far *f)
{
        for (struct far_task *t = f->table.all, *next; t; t = next) {
                next = t->next;
                far_kill(t, RUN_LEASE_ENDED);
        }
}

/* Nobody could tell the far server: by its own clock the lease is over there. */
static void give_up_killed(struct far *f, int64_t now)
{
        for (struct far_task *t = f->table.all, *next; t; t = next) {
                next = t->next;
                int64_t renewed_ms = t->in ? t->in->renewed_ms : 0;
                if (t->state != FAR_OVER && t->killing && !f->link.up &&
                    now - renewed_ms > far_lease_given_ms(f))
                        far_over(t,
                                 &(struct run_event){.state = RUN_ENDED,
                                                     .why = t->lease_ended ? RUN_LEASE_ENDED : RUN_KILLED,
                                                     .signaled = true,
                                                     .exit_code = 15},
                                 NULL);
        }
}

static void tick(void *arg)
{
        struct far *f = arg;
        int64_t now = clock_boot_ms();
        timer_start(f->tick, TICK_MS);
        if (far_lease_is_over(f, now))
                lease_ended(f);
        give_up_killed(f, now);
        if (!f->link.up)
                return;
        far_feed_look(f, now);
        far_flush(f);
        far_work(f);
}

static void work(void *far)
{
        far_work(far);
}

void far_work_open(struct far *f)
{
        f->later = timer_new(f->loop, work, f);
        f->gather = timer_new(f->loop, work, f);
        f->tick = timer_new(f->loop, tick, f);
}

void far_work_start(struct far *f)
{
        timer_start(f->tick, TICK_MS);
}

void far_work_close(struct far *f)
{
        timer_free(f->later);
        timer_free(f->gather);
        timer_free(f->tick);
}
