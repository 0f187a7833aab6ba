/* Opens and closes a queue of a batch system, and runs its tick. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/sha256.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "run/batch/acts.h"
#include "run/batch/calls.h"
#include "run/batch/capacity.h"
#include "run/batch/journal.h"
#include "run/batch/poll.h"
#include "run/batch/quote.h"
#include "run/batch/remote.h"
#include "run/batch/reservations.h"
#include "run/batch/runner.h"
#include "run/batch/settings.h"
#include "run/batch/state.h"
#include "run/batch/submit.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/batch/throttle.h"

#define TICK_MS 250

static void on_tick(void *arg)
{
        struct batch *b = arg;

        batch_remote_look(b);
        batch_acts_run(b);
        batch_poll(b);
        batch_reservations_tick(b);
        batch_journal_flush(b, false);
        timer_start(b->tick, TICK_MS);
}

static int open_folder(struct batch *b, const struct runner_config *c, struct err *err)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/batch.%s", c->dir, c->queue);
        if (strchr(c->dir, '\n'))
                return err_set(err, -EINVAL, "the agent's folder has a line's end in its name");
        int r = fs_mkdirs(buf_z(&path), 0755);
        b->dir = buf_take(&path);
        b->fd = r < 0 ? -1 : open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (b->fd < 0)
                return err_set(err, -errno, "cannot use %s: %s", b->dir, strerror(errno));
        fs_sweep(b->fd, fs_is_left);
        return 0;
}

/* Makes the prefix of submission names, unique to this queue of this agent: jobs with the prefix that are
 * not known are ended. */
static int prefix(const struct batch_system *system, const struct runner_config *c, char **ret,
                  struct err *err)
{
        BUF_CLEANUP struct buf whose = {0};
        struct buf text = {0};
        char hex[SHA256_HEX];

        buf_printf(&whose, "%s/%s", c->instance, c->queue);
        int r = sha256_hex(buf_view(&whose), hex, err);
        if (r < 0)
                return r;
        hex[8] = 0;
        if (system->short_names) {
                buf_char(&text, 'd');
                batch_digits(&text, strtoul(hex, NULL, 16), 4);
        } else {
                buf_printf(&text, BATCH_NAMES "%s-", hex);
        }
        *ret = buf_take(&text);
        return 0;
}

int batch_open(const struct runner_kind *kind, const struct batch_system *system,
               const struct runner_config *c, struct runner **ret, struct err *err)
{
        const struct batch_settings settings = {c->settings, c->setting_count};
        int r = batch_settings_check(system, c, err);

        if (r == 0 && system->service && c->user_commands && !batch_setting(&settings, "token_file"))
                r = err_set(
                        err, -EINVAL,
                        "jobs of several users need %s over http, with the token of one who may name others, "
                        "in token_file",
                        system->service->name);
        if (r == 0 && c->user_commands && batch_setting(&settings, "reservations") &&
            !strcmp(batch_setting(&settings, "reservations"), "yes"))
                r = err_set(
                        err, -EINVAL,
                        "with `users` the setting reservations must name the local users who may use them");
        if (r < 0)
                return r;
        struct batch *b = mem_new(struct batch);
        const struct passwd *pw = getpwuid(geteuid());
        b->base.kind = kind;
        b->system = system;
        b->settings = settings;
        b->loop = c->loop;
        b->events = event_queue_new(c->loop, c->observer, c->arg);
        b->fd = b->journal.fd = -1;
        b->array_max = batch_setting_number(b, "array_max", system->array_max);
        b->verbs = system->verbs_of ? system->verbs_of(&b->settings) : system->verbs;
        b->poll_ms = batch_setting_number(b, "poll", 2) * 1000;
        b->watch_s = batch_setting_number(b, "watch", 5);
        b->table.last = &b->table.all;
        b->table.tasks = map_new();
        b->table.natives = map_new();
        b->table.submissions = map_new();
        b->user = mem_dupz(pw ? pw->pw_name : "root");
        b->named = pw != NULL;
        b->user_commands = c->user_commands;
        b->queue = mem_dupz(c->queue);
        b->calls = batch_calls_new(b);
        b->acts = batch_acts_new();
        b->quotes = batch_quotes_new();
        b->nodes = batch_nodes_new();
        b->poll = batch_poll_new();
        b->reservations = batch_reservations_new();
        batch_submitter_open(b);
        b->tick = timer_new(b->loop, on_tick, b);
        r = prefix(system, c, &b->prefix, err);
        if (r == 0)
                r = open_folder(b, c, err);
        if (r == 0)
                r = batch_remote_open(b, c, &b->remote, err);
        if (r == 0)
                b->archive = archive_open(b->fd);
        if (r == 0)
                r = batch_journal_open(b, err);
        if (r < 0) {
                batch_close(&b->base, false);
                return r;
        }
        timer_start(b->tick, 0);
        *ret = &b->base;
        return 0;
}

/* Ends all tasks. Commands for other users cannot run any more: their tasks end by the lease, which ends
 * now. */
static void end_all(struct batch *b)
{
        unlinkat(b->fd, BATCH_LEASE_END, 0);
        fs_write(b->fd, "lease", STR("ended 0\n"), 0644, false, NULL);
        for (struct task *t = b->table.all; t; t = t->next)
                batch_act_unasked(b, t, BATCH_END);
        batch_act_now(b, BATCH_END);
}

void batch_close(struct runner *r, bool kill_all)
{
        struct batch *b = (struct batch *)(void *)r;

        batch_calls_cancel(b->calls);
        if (kill_all)
                end_all(b);
        batch_remote_free(b->remote);
        b->remote = NULL;
        batch_journal_close(b);
        batch_quotes_free(b);
        batch_throttles_free(b);
        batch_tasks_free(b);
        batch_submit_users_free(b);
        archive_close(b->archive);
        timer_free(b->tick);
        event_queue_free(b->events);
        batch_submitter_free(b->submitter);
        batch_acts_free(b->acts);
        batch_nodes_free(b->nodes);
        batch_poll_free(b->poll);
        batch_reservations_free(b->reservations);
        batch_calls_free(b->calls);
        if (b->fd >= 0)
                close(b->fd);
        free(b->dir);
        free(b->queue);
        free(b->prefix);
        free(b->user);
        free(b);
}
