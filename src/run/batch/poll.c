/* Follows the tasks: looks at their files on every tick, at a part of them when there are many, and makes
 * one status query for all of them every few seconds. outcome.c decides how a task ended. */
#include "run/batch/poll.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/u64.h"
#include "run/batch/acts.h"
#include "run/batch/calls.h"
#include "run/batch/capacity.h"
#include "run/batch/journal.h"
#include "run/batch/orders.h"
#include "run/batch/outcome.h"
#include "run/batch/remote.h"
#include "run/batch/state.h"
#include "run/batch/submit.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/call/answer.h"

#define LOOK_MAX   500   /* tasks whose files are looked at in a tick */
#define IDLE_MS    10000 /* interval of queries when there is no task */
#define SOON_MS    250   /* interval when verbs wait for an answer */
#define WATCHED_MS 30000 /* interval while the system is asked to answer at a change */
#define FAILURES   3     /* failed queries in a row after which the system counts as unreachable */
#define SILENCE_MS 15000 /* time without an answer after which it counts as unreachable */
#define TOOK_TIMES 5     /* the interval is at least this multiple of a query's duration */
#define AGAIN_MS   10000 /* a task that is still listed so long after its end was requested is ended again */
#define SAID_MAX   300
#define SHORT_NAME 15
#define ACTS_BYTES 65536 /* most bytes of ids waiting to be ended */
#define REWATCH_MS 60000 /* time without a watch after one that failed */
#define NEW_MS     60000 /* the reason why a task waits may be found so long after its submit */
#define STALE_MS   30000 /* how old a system's answer may be that has never shown a task as running */

struct poll {
        unsigned failures;          /* failed status queries in a row */
        int64_t status_ms, took_ms; /* boot clock of the last answer; its duration */
        bool unreachable;           /* the system was reported as unreachable */
        char *explaining;           /* id that a query for a reason is about */
        int64_t watch_from_ms;      /* boot clock; no watch before */
};

static void look_at_files(struct batch *b)
{
        if (!b->table.cursor)
                b->table.cursor = b->table.all;
        for (unsigned n = 0; b->table.cursor && n < LOOK_MAX; n++) {
                struct task *t = b->table.cursor;

                b->table.cursor = t->next;
                if (t->state != TASK_IN && !(t->state == TASK_NAMED && t->s->unsure))
                        continue;
                batch_see_begin(b, t);
                if (t->begun)
                        batch_see_end(b, t, STR(""));
        }
}

static bool is_end(enum batch_phase p)
{
        return p != BATCH_WAITING && p != BATCH_RUNNING;
}

static void on_explained(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;
        struct task *t = map_get(b->table.natives, str_of(b->poll->explaining));

        (void)errors;
        if (status < 0)
                return; /* the next answer asks again */
        if (t && t->state == TASK_IN) {
                enum batch_phase phase = BATCH_UNFIT;
                struct str reason = b->system->explained(out, &phase);

                batch_act_unasked(b, t, BATCH_END);
                batch_settle(b, t, phase, reason);
        }
}

/* Asks why a job cannot run, of a system that tells only on request. Returns true if the answer comes later.
 */
static bool ask_why(struct batch *b, const struct batch_line *line)
{
        if (!b->system->explain || line->reason.n)
                return false;
        if (!batch_busy(b, SLOT_PAST)) {
                struct batch_call call = {.settings = &b->settings};

                free(b->poll->explaining);
                b->poll->explaining = str_dupz(line->native);
                b->system->explain(&call, line->native);
                batch_run(b, SLOT_PAST, &call, on_explained, b);
        }
        return true;
}

/* Returns whether a task that had begun waits again, because its node failed or it was requeued. */
static bool was_put_back(struct batch *b, const struct task *t)
{
        return t->begun && !t->killing && t->begun_ms < b->query.asked_ms &&
               (t->phase == BATCH_RUNNING || t->told_to_end || b->query.asked_ms - t->begun_ms >= STALE_MS);
}

/* Keeps the reason for waiting in the system's words, if there is one. */
static void waits_for(struct task *t, const struct batch_line *line)
{
        bool says = line->phase == BATCH_WAITING && line->reason.n && !str_ieqz(line->reason, "None");
        struct buf text = {0};

        free(t->said);
        if (says)
                answer_clean(&text, str_head(line->reason, SAID_MAX));
        t->said = says ? buf_take(&text) : NULL;
}

/* Returns whether the listed job belongs to another user, with a map of users and where the system uses this
 * machine's user names. Another user's job may carry the name of one of ours, since names are public. */
static bool is_strangers(const struct batch *b, const struct submit_user *p, const struct batch_line *line)
{
        const char *user = p->user ? p->user : b->system->owners && b->named ? b->user : NULL;

        return user && line->user.n && !str_eqz(line->user, user);
}

static bool is_of(const struct batch *b, const struct task *t, const struct batch_line *line)
{
        return str_eqz(line->name, t->s->name) && !is_strangers(b, t->submit_user, line);
}

/* Handles a line of a status answer. A known id listed under another name or user is not ours: the system
 * has lost its state and counts anew, so no verb is sent for that id any more. Names of submissions are
 * never reused. */
static void take_line(struct batch *b, const struct batch_line *line)
{
        struct task *t = map_get(b->table.natives, line->native);

        if (!t || t->state != TASK_IN)
                return;
        if (!is_of(b, t, line) && t->seen == b->query.generation)
                return; /* our job is listed as well */
        if (!is_of(b, t, line)) {
                if (!t->strange_told)
                        log_warn("msg=\"a job of another name has the number of one of ours\" queue=%s "
                                 "native=" STR_FMT " name=%s",
                                 b->queue, STR_ARG(line->native), t->s->name);
                t->strange = t->strange_told = true;
                t->owed = false; /* that accounting had it as running was said of the other job */
                return;
        }
        t->strange = false;
        t->seen = t->s->seen = b->query.generation;
        if (t->acted_ms && b->query.asked_ms - t->acted_ms > AGAIN_MS) { /* the end had no effect */
                t->acted_ms = 0;
                batch_act(b, t, BATCH_END);
        }
        if (line->phase == BATCH_UNFIT && ask_why(b, line))
                return;
        if (line->phase == BATCH_UNFIT || line->stays)
                batch_act_unasked(b, t, BATCH_END); /* named by this answer, and over afterwards */
        if (is_end(line->phase)) {
                t->vanished |= line->bare && t->phase == BATCH_WAITING;
                batch_settle(b, t, line->phase, line->reason);
                return;
        }
        t->gone_ms = 0;
        t->wants_files = line->wants_files;
        if (!t->ended_there) /* what was fetched while it was missing is not all */
                t->fetch_wanted = t->fetched = false;
        waits_for(t, line);
        if (line->phase == BATCH_WAITING && was_put_back(b, t)) {
                batch_put_back(b, t, line->reason);
                return;
        }
        t->phase = line->phase;
        t->stopped_there = line->stopped;
}

/* Schedules a job's end by id; ids that exceed the buffer come again with the next answer. */
static void end_number(struct submit_user *p, struct str number)
{
        struct buf *out = &p->acts[BATCH_END];

        if (out->n > ACTS_BYTES)
                return;
        if (out->n)
                buf_char(out, ' ');
        buf_str(out, number);
}

/* Handles our name with an unknown id: of a submission whose answer was lost, or of no submission. With a
 * map of users only the submitting user can have made it twice. */
static void take_name(struct batch *b, const struct batch_line *line)
{
        struct submission *s = map_get(b->table.submissions, line->name);
        struct str number = batch_whole(b->system, line->native);
        struct submit_user *p = s && !line->user.n ? s->submit_user : batch_submit_user_of(b, line->user);

        if (!p || (s && b->user_commands && strcmp(p->user, s->submit_user->user) != 0) ||
            is_strangers(b, p, line))
                return;
        if (s && s->unsure) {
                log_info("msg=\"found a submission again\" name=%s native=" STR_FMT, s->name,
                         STR_ARG(number));
                batch_native_known(b, s, number);
                batch_journal_native(b, s);
        } else if ((!is_end(line->phase) || line->stays) &&
                   (!s || (s->native && !str_eqz(number, s->native)))) {
                end_number(p, number);
        } else if (is_end(line->phase) && (!s || (s->native && !str_eqz(number, s->native)))) {
                batch_remote_stray(b, number);
        }
}

/* Handles a line about the members of an array that have no line of their own, found by the array's id or,
 * without one, by name. */
static void take_others(struct batch *b, const struct batch_line *line)
{
        struct submission *s = map_get(b->table.submissions, line->name);

        if (!s)
                return;
        if (!s->native)
                take_name(b, line);
        if (s->native && str_eqz(line->native, s->native))
                s->others = b->query.generation;
}

static void on_line(void *arg, const struct batch_line *said)
{
        struct batch *b = arg;
        struct batch_line named = *said, *line = &named;

        if (!batch_is_native(line->native))
                return;
        const struct task *known =
                b->system->unnamed && !line->name.n ? map_get(b->table.natives, line->native) : NULL;
        if (known)
                named.name = str_of(known->s->name);
        bool ours = map_get(b->table.submissions, line->name) ||
                    (str_starts(line->name, str_of(b->prefix)) &&
                     (!b->system->short_names || line->name.n == SHORT_NAME));
        if (line->others) {
                take_others(b, line);
                return;
        }
        if (!map_get(b->table.natives, line->native) && ours)
                take_name(b, line);
        take_line(b, line);
}

/* ---- queries */

static void is_there(struct batch *b)
{
        b->poll->failures = 0;
        if (b->listed)
                return;
        for (struct task *t = b->table.all; t; t = t->next) {
                if (t->state == TASK_IN || t->state == TASK_NAMED) {
                        batch_see_begin(b, t);
                        batch_see_end(b, t, STR(""));
                }
                if (t->held && !t->begun) /* the agent may have died before the verb was sent */
                        batch_act(b, t, BATCH_HOLD);
                batch_tell(b, t, true);
        }
        event_queue_ready(b->events, 0, 0);
        batch_submit_later(b);
        b->listed = true;
        b->poll->unreachable = false;
}

/* Handles a line from accounting. Only an end counts: jobs that accounting does not know of are listed as
 * running there, maybe under another name. */
static void on_past_line(void *arg, const struct batch_line *line)
{
        struct batch *b = arg;
        struct task *t = map_get(b->table.natives, line->native);

        if (!t || t->state != TASK_IN || is_strangers(b, t->submit_user, line))
                return;
        if (t->strange && line->name.n && !str_eqz(line->name, t->s->name))
                return;
        t->owed = !is_end(line->phase) && !t->strange;
        if (is_end(line->phase) && (!line->name.n || str_eqz(line->name, t->s->name)))
                batch_settle(b, t, line->phase, line->reason);
}

static void on_past(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;

        if (status != 0 && b->system->past_away && b->system->past_away(errors)) {
                if (!b->query.past_away_ms)
                        log_warn("msg=\"what is over cannot be asked about\" queue=%s error=\"%s\"", b->queue,
                                 LOG_TEXT(str_head(str_trim(errors), SAID_MAX)));
                b->query.past_away_ms = clock_boot_ms();
        }
        b->system->past_read(out, on_past_line, b);
}

/* Finds tasks that were in the system before the query and are missing from its answer. */
static void look_for_missing(struct batch *b)
{
        BUF_CLEANUP struct buf natives = {0};
        unsigned count = 0;

        for (struct task *t = b->table.all, *next; t; t = next) {
                next = t->next;
                if (t->state == TASK_IN && t->s->others == b->query.generation && !t->begun)
                        t->seen = b->query.generation;
                if (t->state != TASK_IN || t->seen == b->query.generation || t->in_ms >= b->query.asked_ms)
                        continue;
                BUF_CLEANUP struct buf native = {0};
                batch_missing(b, t);
                if (t->state == TASK_OVER || natives.n > 8000 ||
                    (b->system->past_max && count >= b->system->past_max))
                        continue;
                count++;
                batch_native_key(b, t, &native);
                buf_printf(&natives, "%s%s", natives.n ? "," : "", buf_z(&native));
        }
        if (natives.n && b->system->past && !batch_busy(b, SLOT_PAST)) {
                struct batch_call call = {.settings = &b->settings};
                BUF_CLEANUP struct buf users = {0};

                batch_users(b, &users);
                b->system->past(&call, buf_z(&users), buf_z(&natives));
                batch_run(b, SLOT_PAST, &call, on_past, b);
        }
}

static void send_missing(struct batch *b)
{
        struct str key;
        void *value;
        struct submission *again[64];
        size_t n = 0;

        for (size_t at = 0; n < 64 && map_next(b->table.submissions, &at, &key, &value);) {
                struct submission *s = value;

                if (s->unsure && !s->native && !s->sending && s->unsure_ms < b->query.asked_ms)
                        again[n++] = s;
        }
        for (size_t i = 0; i < n; i++) {
                log_info("msg=\"a submission was not taken; it is made again\" name=%s", again[i]->name);
                batch_send_again(b, again[i]);
        }
}

static void is_unreachable(struct batch *b, struct str errors)
{
        BUF_CLEANUP struct buf text = {.max = SAID_MAX + 100};
        struct str said = str_trim(errors);

        if (b->poll->unreachable)
                return;
        b->poll->unreachable = true;
        b->listed = false;
        buf_printf(&text, "%s does not answer", b->system->name);
        if (said.n)
                buf_addz(&text, ": ");
        answer_clean(&text, str_head(said, said.n < SAID_MAX ? said.n : SAID_MAX));
        log_warn("msg=\"the batch system does not answer\" queue=%s error=\"%s\"", b->queue,
                 LOG_TEXT(buf_view(&text)));
        event_queue_unreachable(b->events, buf_z(&text));
}

/* The system has not answered for SILENCE_MS. The query goes on: some commands retry for a minute, and
 * report at once what is missing. */
static void is_silent(struct batch *b)
{
        BUF_CLEANUP struct buf said = {0};

        if (b->poll->unreachable)
                return;
        batch_complaints(b, SLOT_STATUS, &said);
        is_unreachable(b, buf_view(&said));
}

/* Either something has changed, or the watch is over. The next query, which is due by the usual interval
 * again, says what has changed, and begins the next watch. */
static void on_watched(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;

        (void)out;
        if (status == 0)
                return;
        b->poll->watch_from_ms = clock_boot_ms() + REWATCH_MS;
        log_info("msg=\"the batch system cannot be watched; it is asked more often\" queue=%s error=\"%s\"",
                 b->queue, LOG_TEXT(str_head(str_trim(errors), SAID_MAX)));
}

static void watch(struct batch *b, struct str out)
{
        struct batch_call call = {.settings = &b->settings, .first = true};

        if (!b->system->watch || batch_busy(b, SLOT_WATCH) || clock_boot_ms() < b->poll->watch_from_ms)
                return;
        b->system->watch(&call, out);
        if (call.paths.n)
                batch_run(b, SLOT_WATCH, &call, on_watched, b);
        else
                batch_call_deinit(&call);
}

/* Returns whether only a change in the system can bring anything new: no task is to be found again, is
 * missing, is being ended, or is so new that the reason why it waits may not be known yet. */
static bool is_settled(const struct batch *b, int64_t now)
{
        for (const struct task *t = b->table.all; t; t = t->next)
                if (t->state != TASK_OVER && (t->gone_ms || t->killing || (t->s && t->s->unsure) ||
                                              (!t->begun && now - t->in_ms < NEW_MS)))
                        return false;
        return true;
}

static void on_status(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;

        b->poll->status_ms = clock_boot_ms();
        b->poll->took_ms = b->poll->status_ms - b->query.asked_ms;
        bool none =
                b->system->none_there && WIFEXITED(status) && WEXITSTATUS(status) == b->system->none_there;
        bool answer = !b->system->is_answer || b->system->is_answer(out);
        if ((status != 0 || !answer) && !none) {
                if (++b->poll->failures >= FAILURES)
                        is_unreachable(b, errors);
                return;
        }
        watch(b, out);
        b->system->status_read(out, on_line, b);
        is_there(b);
        look_for_missing(b);
        send_missing(b);
        batch_acts_again(b);
        batch_acts_named(b);
        batch_acts_run(b);
}

static void ask_status(struct batch *b)
{
        struct batch_call call = {.settings = &b->settings};
        BUF_CLEANUP struct buf users = {0};

        batch_users(b, &users);
        b->system->status(&call, buf_z(&users));
        call.next = b->system->unnamed;
        call.next_arg = b->table.natives;
        b->query.generation++;
        b->query.asked_before_ms = b->query.asked_ms;
        b->query.asked_ms = clock_boot_ms();
        batch_run(b, SLOT_STATUS, &call, on_status, b);
}

void batch_poll(void *arg)
{
        struct batch *b = arg;
        int64_t now = clock_boot_ms();
        unsigned every = b->poll_ms;

        look_at_files(b);
        if (batch_submit_waits(b))
                batch_submit_later(b);
        if (!b->table.all && b->listed && every < IDLE_MS)
                every = IDLE_MS;
        if (batch_busy(b, SLOT_WATCH) && every < WATCHED_MS && is_settled(b, now))
                every = WATCHED_MS;
        if (batch_acts_ask_soon(b) && every > SOON_MS)
                every = SOON_MS;
        if (batch_makes_requests(b) &&
            every < b->poll->took_ms * TOOK_TIMES) /* an answer may list all jobs of a cluster */
                every = (unsigned)b->poll->took_ms * TOOK_TIMES;
        if (!batch_busy(b, SLOT_STATUS) &&
            (!b->poll->status_ms || now - b->poll->status_ms >= (int64_t)every))
                ask_status(b);
        if (batch_busy(b, SLOT_STATUS) && now - b->query.asked_ms > SILENCE_MS)
                is_silent(b);
        batch_capacity_look(b, now);
}

struct poll *batch_poll_new(void)
{
        return mem_new(struct poll);
}

void batch_poll_free(struct poll *p)
{
        if (p)
                free(p->explaining);
        free(p);
}
