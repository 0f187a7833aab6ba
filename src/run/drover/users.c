/* Another server as a place for the jobs of several users: one struct remote for each user, with the user's
 * own token, and one for the agent's own user, which has no jobs. The latter tells whether the other server
 * is reachable and has room: the queue is ready when it is connected and all tasks of the others are
 * accounted for. A user whom the other server does not accept blocks no other user's jobs: that user's jobs
 * fail, with the reason. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/uuid.h"
#include "run/drover/feed.h"
#include "run/drover/open.h"
#include "run/drover/state.h"
#include "run/drover/tasks.h"
#include "run/drover/user.h"
#include "run/drover/users.h"

struct hub {
        struct runner base;
        struct runner_config config;
        const char *token; /* path of each user's token */
        struct remote *own, *users[1024];
        struct http_budget answers; /* shared by all users */
        size_t count;
        const struct run_observer *observer;
        void *arg;
        int64_t lease_until_ms;
        bool listed, settling;
};

static const struct runner_kind hub_kind;

static struct hub *users_self(struct runner *r)
{
        return (struct hub *)(void *)r;
}

/* ---- events of the queue */

/* Reports the queue as ready once all users' tasks are known, or cannot be looked at. */
static void settle_users(struct hub *h)
{
        if (h->listed || h->settling || !h->own->link.listed)
                return;
        for (size_t i = 0; i < h->count; i++)
                if (h->users[i]->table.all && !h->users[i]->link.listed && !h->users[i]->link.refused)
                        return;
        h->settling = true;
        for (size_t i = 0; i < h->count; i++) {
                for (const struct remote_task *t = h->users[i]->table.all; t; t = t->next)
                        remote_tell(h->users[i], t, true);
                event_queue_tell(h->users[i]->events);
        }
        h->settling = false;
        h->listed = true;
        h->observer->ready(h->arg, 0, 0);
}

static void own_tasks(void *arg, const struct run_event *events, size_t count)
{
        struct hub *h = arg;

        h->observer->tasks(h->arg, events, count);
}

static void user_tasks(void *arg, const struct run_event *events, size_t count)
{
        struct hub *h = arg;

        for (size_t i = 0; i < count; i++) {
                struct run_event e = events[i];

                e.known = e.known &&
                          !h->listed; /* only this user was disconnected: a new event for the agent */
                h->observer->tasks(h->arg, &e, 1);
        }
        settle_users(h);
}

static void on_signal_waits(void *arg, struct run_id id)
{
        struct hub *h = arg;

        h->observer->signal_waits(h->arg, id);
}

static void on_checkpointed(void *arg, struct run_id id, const char *files)
{
        struct hub *h = arg;

        h->observer->checkpointed(h->arg, id, files);
}

static void on_quoted(void *arg, const struct run_quote *quote)
{
        struct hub *h = arg;

        h->observer->quoted(h->arg, quote);
}

static void on_ready(void *arg, uint32_t containment, int hide_error)
{
        (void)containment;
        (void)hide_error;
        settle_users(arg);
}

static void own_unreachable(void *arg, const char *why)
{
        struct hub *h = arg;

        h->listed = false;
        h->observer->unreachable(h->arg, why);
        settle_users(h);
}

static void user_unreachable(void *arg, const char *why)
{
        (void)why;
        settle_users(arg);
}

static const struct run_observer own_observer = {.tasks = own_tasks,
                                                 .signal_waits = on_signal_waits,
                                                 .checkpointed = on_checkpointed,
                                                 .quoted = on_quoted,
                                                 .ready = on_ready,
                                                 .unreachable = own_unreachable};
static const struct run_observer user_observer = {.tasks = user_tasks,
                                                  .signal_waits = on_signal_waits,
                                                  .checkpointed = on_checkpointed,
                                                  .quoted = on_quoted,
                                                  .ready = on_ready,
                                                  .unreachable = user_unreachable};

/* ---- users */

static struct remote *add_user(struct hub *h, const char *owner, const char *name, struct err *err)
{
        struct runner_config c = h->config;
        struct remote_user *user;
        struct remote *f;

        c.observer = &user_observer;
        c.arg = h;
        if (h->count == sizeof(h->users) / sizeof(*h->users)) {
                err_set(err, -E2BIG, "jobs of %zu users are handed on already", h->count);
                return NULL;
        }
        if (remote_user_new(owner, name, h->token, h->config.user_commands, &user, err) < 0)
                return NULL;
        user->answers = &h->answers;
        if (remote_open(&c, user, &f, err) < 0)
                return NULL;
        f->base.kind = &runner_drover;
        if (h->lease_until_ms)
                runner_drover.lease(&f->base, h->lease_until_ms);
        h->users[h->count++] = f;
        return f;
}

static struct remote *find_user(const struct hub *h, const char *name)
{
        for (size_t i = 0; i < h->count; i++)
                if (!strcmp(h->users[i]->user->name, name))
                        return h->users[i];
        return NULL;
}

static struct remote *whose(const struct hub *h, struct run_id id)
{
        for (size_t i = 0; i < h->count; i++)
                if (map_get(h->users[i]->table.tasks, run_key(&id)))
                        return h->users[i];
        return NULL;
}

static bool has_requests(int dir)
{
        DIR *d = fdopendir(dir);
        const struct dirent *e;
        bool any = false;

        while (d && !any && (e = readdir(d)))
                any = uuid_valid(str_of(e->d_name));
        if (d)
                closedir(d);
        return any;
}

/* Restores the users who had jobs there. */
static int restore(struct hub *h, struct err *err)
{
        DIR *d = opendir(h->own->dir);
        const struct dirent *e;

        if (!d)
                return err_set(err, -errno, "cannot read %s: %s", h->own->dir, strerror(errno));
        while ((e = readdir(d))) {
                BUF_CLEANUP struct buf owner = {0};
                struct err why = {""};
                int dir = *e->d_name == '.'
                                  ? -1
                                  : openat(h->own->fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                if (dir < 0)
                        continue;
                int r = fs_read(dir, REMOTE_OWNER, 1024, &owner, &why);
                if (has_requests(dir) && (r < 0 || !add_user(h, buf_z(&owner), e->d_name, &why)))
                        log_warn("msg=\"a user's jobs at another server cannot be looked at\" queue=%s "
                                 "user=%s error=\"%s\"",
                                 h->own->queue, e->d_name, LOG_TEXT(str_of(why.text)));
        }
        closedir(d);
        return 0;
}

/* ---- calls of the runner */

static void fail_task(struct hub *h, const struct run_spec *spec, const struct err *err)
{
        remote_gather(h->own, &(struct run_event){.id = spec->id,
                                                  .state = RUN_FAILED,
                                                  .slot = UINT32_MAX,
                                                  .what = "credential",
                                                  .error = EACCES,
                                                  .text = err->text});
}

static struct remote *for_user(struct hub *h, const struct run_spec *spec, struct err *err)
{
        struct remote *f = find_user(h, spec->user);

        return f ? f : add_user(h, spec->owner, spec->user, err);
}

static void hub_submit(struct runner *r, const struct run_spec *spec)
{
        struct hub *h = users_self(r);
        struct err err = {""};
        struct remote *f = for_user(h, spec, &err);

        if (f)
                runner_drover.submit(&f->base, spec);
        else
                fail_task(h, spec, &err);
}

static void hub_quote(struct runner *r, const struct run_spec *spec)
{
        struct hub *h = users_self(r);
        struct remote *f = spec->user ? for_user(h, spec, NULL) : NULL; /* none: not for a user's job */

        runner_drover.quote(f ? &f->base : &h->own->base, spec);
}

#define HUB_VERB(verb)                                                                                       \
        static void hub_##verb(struct runner *r, struct run_id id)                                           \
        {                                                                                                    \
                struct remote *f = whose(users_self(r), id);                                                 \
                if (f)                                                                                       \
                        runner_drover.verb(&f->base, id);                                                    \
        }
HUB_VERB(suspend)
HUB_VERB(resume)
HUB_VERB(hold)
HUB_VERB(release)
HUB_VERB(forget)

static void hub_kill(struct runner *r, struct run_id id, uint64_t grace_ms)
{
        struct remote *f = whose(users_self(r), id);

        if (f)
                runner_drover.kill(&f->base, id, grace_ms);
}

static void hub_signal(struct runner *r, struct run_id id, int signal)
{
        struct remote *f = whose(users_self(r), id);

        if (f)
                runner_drover.signal(&f->base, id, signal);
}

static void hub_credential(struct runner *r, struct run_id id, const struct run_credential *c)
{
        struct remote *f = whose(users_self(r), id);

        if (f)
                runner_drover.credential(&f->base, id, c);
}

static void hub_status(struct runner *r, const struct run_id *ids, size_t count)
{
        for (size_t i = 0; i < users_self(r)->count; i++)
                runner_drover.status(&users_self(r)->users[i]->base, ids, count);
}

static void hub_lease(struct runner *r, int64_t until_boot_ms)
{
        struct hub *h = users_self(r);

        h->lease_until_ms = until_boot_ms;
        for (size_t i = 0; i < h->count; i++)
                runner_drover.lease(&h->users[i]->base, until_boot_ms);
}

static void hub_flush(struct runner *r)
{
        for (size_t i = 0; i < users_self(r)->count; i++)
                runner_drover.flush(&users_self(r)->users[i]->base);
}

/* Returns the largest capacity that any user sees. */
static void hub_capacity(struct runner *r, struct run_capacity *ret)
{
        struct hub *h = users_self(r);

        *ret = remote_capacity(h->own);
        for (size_t i = 0; i < h->count; i++) {
                const struct run_capacity c = remote_capacity(h->users[i]);

                if (h->own->link.up && c.known && c.cpus_milli > ret->cpus_milli)
                        *ret = c;
        }
}

static int hub_where(struct runner *r, struct run_id id, struct run_where *ret)
{
        struct remote *f = whose(users_self(r), id);

        return f ? runner_drover.where(&f->base, id, ret) : -ENOENT;
}

static int hub_output(struct runner *r, struct run_id id, const struct run_output_question *q,
                      uint64_t number, run_output_fn *fn, void *arg)
{
        struct remote *f = whose(users_self(r), id);

        return f ? runner_drover.output(&f->base, id, q, number, fn, arg) : -ENOENT;
}

static void hub_close(struct runner *r, bool kill_all)
{
        struct hub *h = users_self(r);

        (void)kill_all;
        while (h->count)
                remote_close(h->users[--h->count]);
        if (h->own)
                remote_close(h->own);
        free(h);
}

int remote_users_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        struct runner_config own = *c;
        const char *token = remote_setting(c, "users_token_file");

        if (!token || !*token)
                return err_set(err, -EINVAL,
                               "with `users` each user is at the other server in his own name: give "
                               "users_token_file, "
                               "where he has its token, as ~ sees it (.config/drover/east.token)");
        struct hub *h = mem_new(struct hub);
        h->base.kind = &hub_kind;
        h->config = *c;
        h->token = str_starts(str_of(token), STR("~/")) ? token + 2 : token;
        h->observer = c->observer;
        h->arg = c->arg;
        own.observer = &own_observer;
        own.arg = h;
        int r = remote_open(&own, NULL, &h->own, err);
        if (r == 0) {
                h->own->base.kind = &runner_drover;
                r = restore(h, err);
        }
        if (r < 0) {
                hub_close(&h->base, false);
                return r;
        }
        *ret = &h->base;
        return 0;
}

static const struct runner_kind hub_kind = {
        .name = "drover",
        .for_users = true,
        .close = hub_close,
        .flush = hub_flush,
        .submit = hub_submit,
        .kill = hub_kill,
        .suspend = hub_suspend,
        .resume = hub_resume,
        .hold = hub_hold,
        .release = hub_release,
        .signal = hub_signal,
        .quote = hub_quote,
        .status = hub_status,
        .forget = hub_forget,
        .lease = hub_lease,
        .capacity = hub_capacity,
        .credential = hub_credential,
        .output = hub_output,
        .where = hub_where,
};
