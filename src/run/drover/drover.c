/* The drover runner: another Drover server as a place. This file has the runner's calls; tasks.h has the
 * states of a task, submit.h what is sent.
 *
 * The runner uses the other server's HTTP API on the agent's loop, as one of that server's users. The other
 * server is not trusted beyond that: a document that does not match docs/openapi.json is an error, and a
 * file name that would leave the sandbox is refused.
 */
#include <errno.h>

#include "base/map.h"
#include "run/drover/acts.h"
#include "run/drover/credentials.h"
#include "run/drover/describe.h"
#include "run/drover/feed.h"
#include "run/drover/fetch.h"
#include "run/drover/lease.h"
#include "run/drover/open.h"
#include "run/drover/output.h"
#include "run/drover/quote.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"
#include "run/drover/users.h"
#include "run/drover/work.h"

static struct remote *drover_self(struct runner *r)
{
        return (struct remote *)(void *)r;
}

static struct remote_task *find_task(struct remote *f, struct run_id id)
{
        return map_get(f->table.tasks, run_key(&id));
}

static void drover_submit(struct runner *r, const struct run_spec *spec)
{
        struct remote *f = drover_self(r);

        if (find_task(f, spec->id))
                return;
        struct remote_task *t = remote_task_new(f, spec->id);
        t->state = REMOTE_FRESH;
        t->given = f->gathering = true;
        remote_describe(t, spec);
}

static void drover_kill(struct runner *r, struct run_id id, uint64_t grace_ms)
{
        struct remote_task *t = find_task(drover_self(r), id);

        (void)grace_ms; /* the last agent has its own grace */
        if (t)
                remote_kill(t, RUN_KILLED);
}

static void drover_suspend(struct runner *r, struct run_id id)
{
        struct remote_task *t = find_task(drover_self(r), id);

        if (!t || t->suspended)
                return;
        t->suspended = true;
        t->held = !t->begun;
        if (remote_number(t))
                remote_act(t, t->held ? REMOTE_HOLD : REMOTE_SUSPEND);
}

static void drover_resume(struct runner *r, struct run_id id)
{
        struct remote_task *t = find_task(drover_self(r), id);

        if (!t || !t->suspended)
                return;
        t->suspended = false;
        if (remote_number(t) && !(t->held && t->waits))
                remote_act(t, t->held ? REMOTE_RELEASE : REMOTE_RESUME);
        t->held = false;
}

static void drover_hold(struct runner *r, struct run_id id)
{
        struct remote_task *t = find_task(drover_self(r), id);

        if (!t || t->begun || t->waits)
                return;
        t->waits = true;
        if (remote_number(t))
                remote_act(t, REMOTE_HOLD);
}

static void drover_release(struct runner *r, struct run_id id)
{
        struct remote_task *t = find_task(drover_self(r), id);

        if (!t || !t->waits)
                return;
        t->waits = false;
        if (remote_number(t) && !t->held)
                remote_act(t, REMOTE_RELEASE);
}

static void drover_signal(struct runner *r, struct run_id id, int signal)
{
        struct remote_task *t = find_task(drover_self(r), id);

        if (!t || t->state > REMOTE_IN || t->killing || signal < 1 || signal > 64)
                return;
        if (t->state == REMOTE_IN) { /* the other server knows whether it runs */
                remote_signal(t, signal);
                return;
        }
        t->signals |= UINT64_C(1) << (signal - 1);
        if (t->state < REMOTE_SAVED)
                event_queue_signal_waits(t->remote->events, t->id);
}

static void drover_credential(struct runner *r, struct run_id id, const struct run_credential *c)
{
        struct remote *f = drover_self(r);
        struct remote_task *t = find_task(f, id);

        if (!t || t->state == REMOTE_OVER)
                return;
        remote_credential_set(t->in ? &t->in->credentials : &t->credentials, c);
        timer_start(f->later, 0);
}

static void drover_quote(struct runner *r, const struct run_spec *spec)
{
        remote_quote(drover_self(r), spec);
}

static void drover_status(struct runner *r, const struct run_id *ids, size_t count)
{
        struct remote *f = drover_self(r);

        for (size_t i = 0; i < count; i++) {
                struct remote_task *t = find_task(f, ids[i]);

                if (t)
                        remote_tell(f, t, true);
        }
}

static void forget(struct remote_task *t)
{
        struct remote *f = t->remote;
        struct remote_request *in = t->in;
        uint32_t member = t->member;

        if (remote_number(t)) {
                if (t->state != REMOTE_OVER || t->result.state != RUN_ENDED)
                        remote_act(t, REMOTE_REMOVE); /* not wanted any more */
                remote_taken(f, in->number, member);
        }
        if ((t->out_append || t->err_append) && !f->user)
                remote_forget_marks(t);
        remote_task_free(t);
        if (in)
                remote_request_left(in, member);
}

static void drover_forget(struct runner *r, struct run_id id)
{
        struct remote *f = drover_self(r);
        struct remote_task *t = find_task(f, id);

        if (t)
                t->forgotten = f->gathering = true;
}

static void drover_lease(struct runner *r, int64_t until_boot_ms)
{
        remote_lease_set(drover_self(r), until_boot_ms);
}

static void drover_capacity(struct runner *r, struct run_capacity *ret)
{
        *ret = remote_capacity(drover_self(r));
}

static int drover_where(struct runner *r, struct run_id id, struct run_where *ret)
{
        struct remote_task *t = find_task(drover_self(r), id);
        static const char *const words[] = {"sending", "sending", "sending", "delegated", "fetching", "over"};

        if (!t)
                return -ENOENT;
        *ret = (struct run_where){.word = words[t->state], .hops = str_of(t->hops)};
        ret->said = t->said ? t->said : t->in && (!t->begun || t->idle) ? t->in->said : NULL;
        if (remote_number(t))
                snprintf(ret->native, sizeof(ret->native), "%llu.%u", (unsigned long long)remote_number(t),
                         t->member);
        return 0;
}

static int drover_output(struct runner *r, struct run_id id, const struct run_output_question *q,
                         uint64_t number, run_output_fn *fn, void *arg)
{
        struct remote *f = drover_self(r);
        const struct remote_task *t = find_task(f, id);

        return t ? remote_output(f, t, q, number, fn, arg) : -ENOENT;
}

/* The agent's journal has been written: submitted tasks may be sent, and forgotten ones freed. */
static void drover_flush(struct runner *r)
{
        struct remote *f = drover_self(r);

        if (f->gathering) {
                f->gathering = false;
                timer_start(f->later, 0);
                for (struct remote_task *t = f->table.all, *next; t; t = next) {
                        next = t->next;
                        t->given = false;
                        if (t->forgotten)
                                forget(t);
                }
        }
        remote_flush(f);
}

static void drover_close(struct runner *r, bool kill_all)
{
        (void)kill_all; /* they end with the lease */
        remote_close(drover_self(r));
}

static int drover_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        struct remote *f;

        if (c->user_commands)
                return remote_users_open(c, ret, err);
        int r = remote_open(c, NULL, &f, err);
        if (r < 0)
                return r;
        f->base.kind = &runner_drover;
        *ret = &f->base;
        return 0;
}

const struct runner_kind runner_drover = {
        .name = "drover",
        .for_users = true,
        .open = drover_open,
        .close = drover_close,
        .flush = drover_flush,
        .submit = drover_submit,
        .kill = drover_kill,
        .suspend = drover_suspend,
        .resume = drover_resume,
        .hold = drover_hold,
        .release = drover_release,
        .signal = drover_signal,
        .quote = drover_quote,
        .status = drover_status,
        .forget = drover_forget,
        .lease = drover_lease,
        .capacity = drover_capacity,
        .credential = drover_credential,
        .output = drover_output,
        .where = drover_where,
};
