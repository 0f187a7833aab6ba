/* Performs what is due on every tick and after events: sending and fetching files, making requests of tasks,
 * sending what is pending, and ending leases. */
#include "run/drover/work.h"
#include "base/system/clock.h"
#include "run/drover/acts.h"
#include "run/drover/credential_sync.h"
#include "run/drover/feed.h"
#include "run/drover/fetch.h"
#include "run/drover/give_back.h"
#include "run/drover/group.h"
#include "run/drover/job.h"
#include "run/drover/lease.h"
#include "run/drover/send.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define TICK_MS      1000
#define WORKING_MAX  6   /* most tasks whose files are transferred at the same time */
#define LOOK_MAX     64  /* most tasks whose files are looked at in one turn */
#define SOON_MS      5   /* wait of READY tasks for others that may follow */
#define GATHER_MS    100 /* wait for others that are being prepared */
#define GATHER_TASKS 1000

static bool is_busy(const struct remote_task *t)
{
        return t->call || t->user_command;
}

/* Continues a few tasks whose files are to be sent or fetched and that have no call in progress. Returns
 * true if more FRESH tasks are being sent, or are next. */
static bool work_tasks(struct remote *f, int64_t now)
{
        size_t busy = 0, looked = 0;
        bool more = false;

        for (struct remote_task *t = f->table.all; t; t = t->next)
                busy += is_busy(t) && (t->state == REMOTE_FRESH || t->state == REMOTE_FETCHING);
        for (struct remote_task *t = f->table.all, *next; t; t = next) {
                next = t->next;
                more |= is_busy(t) && t->state == REMOTE_FRESH;
                if (is_busy(t) || t->given || now < t->not_before_ms)
                        continue;
                if (t->state == REMOTE_IN && t->dirty) {
                        remote_look(t);
                } else if (t->state == REMOTE_FRESH && (busy >= WORKING_MAX || looked >= LOOK_MAX)) {
                        more = true;
                } else if (t->state == REMOTE_FRESH) {
                        looked += t->files.n > 0;
                        remote_send_files(t);
                        busy += is_busy(t);
                        more |= is_busy(t);
                } else if (t->state == REMOTE_FETCHING && busy < WORKING_MAX) {
                        busy++, remote_fetch(t);
                }
        }
        if (looked >= LOOK_MAX)
                timer_start(f->later, 0);
        return more;
}

/* Returns whether READY tasks are to be submitted now: they are submitted together, but do not wait long for
 * others' files. */
static bool is_time(const struct remote *f, int64_t now, bool more)
{
        size_t ready = 0;
        int64_t wait = more ? GATHER_MS : SOON_MS;

        for (const struct remote_task *t = f->table.all; t; t = t->next) {
                if (t->state != REMOTE_READY)
                        continue;
                ready++;
                if (now - t->ready_ms >= wait || ready >= GATHER_TASKS)
                        return true;
        }
        if (ready)
                timer_start(f->gather, wait);
        return false;
}

void remote_work(struct remote *f)
{
        int64_t now = clock_boot_ms();

        if (!f->link.up)
                return;
        bool more = work_tasks(f, now);
        if (is_time(f, now, more))
                remote_group(f);
        for (struct remote_request *r = f->table.sent, *next; r && f->link.up; r = next) {
                next = r->next;
                if (r->call || now < r->not_before_ms)
                        continue;
                if (r->number)
                        remote_credential_sync(r);
                else
                        remote_submit(r);
        }
}

void remote_flush(struct remote *f)
{
        if (!f->link.up)
                return;
        remote_acts_send(f);
        remote_lease_send(f);
}

void remote_kill(struct remote_task *t, enum run_why why)
{
        if (t->state == REMOTE_OVER || t->killing)
                return;
        t->killing = true;
        t->lease_ended = why == RUN_LEASE_ENDED;
        if (t->state == REMOTE_FRESH || t->state == REMOTE_READY)
                remote_over(t,
                            &(struct run_event){
                                    .state = RUN_ENDED, .why = why, .signaled = true, .exit_code = 15},
                            NULL);
        else if (remote_number(t))
                remote_act(t, REMOTE_REMOVE);
}

/* Ends all tasks at the end of the agent's lease. */
static void lease_ended(struct remote *f)
{
        for (struct remote_task *t = f->table.all, *next; t; t = next) {
                next = t->next;
                remote_kill(t, RUN_LEASE_ENDED);
        }
}

/* Gives up tasks of a server that does not answer, once their leases there have ended by its own clock. Those
 * that were killed, and could not be told of, have ended then; the others are lost, and can run elsewhere. */
static void work_give_up(struct remote *f, int64_t now)
{
        int64_t lease_ms = remote_lease_given_ms(f);
        bool lost = now - f->link.down_ms > lease_ms;

        for (struct remote_task *t = f->table.all, *next; t && !f->link.up; t = next) {
                next = t->next;
                if (t->state == REMOTE_OVER)
                        continue;
                if (t->killing && now - (t->in ? t->in->renewed_ms : 0) > lease_ms)
                        remote_over(t,
                                    &(struct run_event){.state = RUN_ENDED,
                                                        .why = t->lease_ended ? RUN_LEASE_ENDED : RUN_KILLED,
                                                        .signaled = true,
                                                        .exit_code = 15},
                                    NULL);
                else if (!t->killing && lost)
                        remote_over(t, &(struct run_event){.state = RUN_LOST},
                                    "the other server has not answered for the lease's time");
        }
}

static void tick(void *arg)
{
        struct remote *f = arg;
        int64_t now = clock_boot_ms();

        timer_start(f->tick, TICK_MS);
        if (remote_lease_is_over(f, now))
                lease_ended(f);
        work_give_up(f, now);
        if (!f->link.up)
                return;
        remote_feed_look(f, now);
        remote_give_back(f, now);
        remote_flush(f);
        remote_work(f);
}

static void work(void *remote)
{
        remote_work(remote);
}

void remote_work_open(struct remote *f)
{
        f->later = timer_new(f->loop, work, f);
        f->gather = timer_new(f->loop, work, f);
        f->tick = timer_new(f->loop, tick, f);
}

void remote_work_start(struct remote *f)
{
        timer_start(f->tick, TICK_MS);
        f->link.down_ms = clock_boot_ms();
}

void remote_work_close(struct remote *f)
{
        timer_free(f->later);
        timer_free(f->gather);
        timer_free(f->tick);
}
