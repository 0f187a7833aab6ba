/* Gives the system its verbs: one command for all ids of a verb. */
#include "run/batch/acts.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "run/batch/calls.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"

#define TRIES      5       /* failures of a command in a row after which it is not repeated */
#define ACTS_BYTES 1048576 /* most bytes of ids that wait for a verb's command */
#define ALL_MS     60000   /* time for all commands while the agent shuts down */

#define HOLDS      (1u << BATCH_HOLD | 1u << BATCH_RELEASE)
#define STOPS      (1u << BATCH_STOP | 1u << BATCH_CONTINUE)

struct acts {
        char *acting; /* ids that the command in progress is for, separated by spaces; NULL: none is in
                         progress */
        enum batch_verb acting_verb;
        bool unheard;  /* some task has verbs whose command failed */
        bool wanted;   /* some task has verbs that wait for an answer */
        bool ask_soon; /* verbs were requested since the last answer */
};

struct acts *batch_acts_new(void)
{
        return mem_new(struct acts);
}

void batch_acts_free(struct acts *acts)
{
        if (acts)
                free(acts->acting);
        free(acts);
}

bool batch_acts_ask_soon(const struct batch *b)
{
        return b->acts->ask_soon;
}

bool batch_has(const struct batch *b, enum batch_verb verb)
{
        return b->verbs & (1u << verb);
}

/* Returns whether the id still belongs to the task: no other job has been seen with it since. */
static bool has_its_number(const struct batch *b, const struct task *t)
{
        BUF_CLEANUP struct buf key = {0};

        if (t->state != TASK_IN || t->strange)
                return false;
        batch_native_key(b, t, &key);
        return map_get(b->table.natives, buf_view(&key)) == t;
}

void batch_act_unasked(struct batch *b, struct task *t, enum batch_verb verb)
{
        struct buf *out = &t->submit_user->acts[verb];

        if (!batch_has(b, verb) || (verb == BATCH_END && t->acted_ms) || !has_its_number(b, t))
                return;
        if (verb == BATCH_END)
                t->acted_ms = clock_boot_ms();
        if (out->n > ACTS_BYTES) { /* its command hangs: an end is requested again while the task is listed */
                t->unheard |= (1u << verb) & (HOLDS | STOPS);
                b->acts->unheard |= t->unheard != 0;
                return;
        }
        if (out->n)
                buf_char(out, ' ');
        batch_native_key(b, t, out);
}

void batch_act(struct batch *b, struct task *t, enum batch_verb verb)
{
        static const unsigned opposite[BATCH_VERBS_COUNT] = {[BATCH_STOP] = 1u << BATCH_CONTINUE,
                                                             [BATCH_CONTINUE] = 1u << BATCH_STOP,
                                                             [BATCH_HOLD] = 1u << BATCH_RELEASE,
                                                             [BATCH_RELEASE] = 1u << BATCH_HOLD};

        if (verb == BATCH_NUDGE) {
                batch_act_unasked(b, t, verb);
        } else if (batch_has(b, verb) && t->state == TASK_IN && !(verb == BATCH_END && t->acted_ms)) {
                t->wanted = (t->wanted & ~opposite[verb]) | 1u << verb;
                b->acts->wanted = b->acts->ask_soon = true;
        }
}

void batch_native_known(struct batch *b, struct submission *s, struct str native)
{
        if (s->native || !native.n)
                return;
        s->native = str_dupz(native);
        s->unsure = false;
        for (struct task *t = b->table.all; t; t = t->next) {
                BUF_CLEANUP struct buf key = {0};

                if (t->s != s || t->state == TASK_OVER)
                        continue;
                batch_native_key(b, t, &key);
                map_put(b->table.natives, buf_view(&key), t);
                t->state = TASK_IN;
                t->in_ms = clock_boot_ms();
                t->wants_files = b->system->file_path;
                if (t->killing)
                        batch_act(b, t, BATCH_END);
                else if (t->held)
                        batch_act(b, t, BATCH_HOLD);
        }
}

/* Returns whether the last status answer names the task, or its submission was answered after that query was
 * made. */
static bool was_named(const struct batch *b, const struct task *t)
{
        return t->seen == b->query.generation || t->in_ms > b->query.asked_ms;
}

void batch_acts_named(struct batch *b)
{
        bool any = b->acts->wanted;

        b->acts->wanted = b->acts->ask_soon = false;
        for (struct task *t = b->table.all; any && t; t = t->next) {
                if (!t->wanted)
                        continue;
                if (!was_named(b, t)) {
                        b->acts->wanted |= t->state == TASK_IN;
                        continue;
                }
                for (int verb = 0; verb < BATCH_VERBS_COUNT; verb++)
                        if (t->wanted & 1u << verb)
                                batch_act_unasked(b, t, (enum batch_verb)verb);
                t->wanted = 0;
        }
}

/* Records the result of a command for all of its tasks, since it is not known which of them it has reached;
 * holds and stops may be repeated. An end is repeated in any case, and a nudge has no need of it. */
static void was_heard(struct batch *b, bool heard)
{
        struct str rest = str_of(b->acts->acting), native;
        unsigned verb = (1u << b->acts->acting_verb) & (HOLDS | STOPS);

        while (verb && str_word(&rest, &native)) {
                struct task *t = map_get(b->table.natives, native);

                if (!t)
                        continue;
                t->tries = heard ? 0 : t->tries + 1;
                if (!heard && t->tries < TRIES)
                        t->unheard |= verb;
                b->acts->unheard |= t->unheard != 0;
        }
        free(b->acts->acting);
        b->acts->acting = NULL;
}

/* Requests the verb for the task's present state, which may have changed since the command failed. */
static void tell_again(struct batch *b, struct task *t)
{
        if (!t->killing && !t->begun && t->unheard & HOLDS)
                batch_act(b, t, t->held ? BATCH_HOLD : BATCH_RELEASE);
        if (!t->killing && t->begun && t->unheard & STOPS)
                batch_act(b, t, t->stopped ? BATCH_STOP : BATCH_CONTINUE);
        t->unheard = 0;
}

void batch_acts_again(struct batch *b)
{
        bool any = b->acts->unheard;

        b->acts->unheard = false;
        for (struct task *t = b->table.all; any && t; t = t->next)
                if (t->unheard)
                        tell_again(b, t);
}

static void acted(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;

        (void)out;
        was_heard(b, status == 0);
        if (status != 0 && errors.n)
                log_warn("msg=\"a command of the batch system failed\" queue=%s error=\"%s\"", b->queue,
                         LOG_TEXT(str_head(errors, errors.n > 300 ? 300 : errors.n)));
}

/* Prepares a command for at most 500 ids of a verb. Returns these ids; the caller frees them. */
static char *next_act(struct batch *b, struct submit_user *p, enum batch_verb verb, struct batch_call *call)
{
        struct buf *all = &p->acts[verb];
        struct str rest = buf_view(all), one;

        for (unsigned n = 0; n < 500 && rest.n && str_cut(&rest, ' ', &one);)
                n++;
        size_t size = all->n - rest.n;
        char *natives = str_dupz(str_trim(str_head(buf_view(all), size)));
        b->system->act(call, verb, str_of(natives));
        buf_consume(all, size);
        return natives;
}

/* Starts a command for the user's pending verbs. Returns true if one runs. */
static bool act_for(struct batch *b, struct submit_user *p)
{
        for (int verb = 0; verb < BATCH_VERBS_COUNT; verb++) {
                struct batch_call call = {.settings = &b->settings, .version = batch_version(b)};

                if (p->acts[verb].n == 0)
                        continue;
                b->acts->acting_verb = (enum batch_verb)verb;
                b->acts->acting = next_act(b, p, b->acts->acting_verb, &call);
                if (call.method && !call.paths.n) {
                        batch_call_deinit(&call);
                        free(b->acts->acting);
                        b->acts->acting = NULL;
                        continue;
                }
                batch_run_as(b, p, SLOT_ACT, &call, acted, b);
                return true;
        }
        return false;
}

/* Runs one command for all ids of a verb; the next verb follows with the next tick. A user who has had a
 * turn goes to the end of the list. */
void batch_acts_run(struct batch *b)
{
        struct submit_user **link = &b->submit_users, **last;

        if (!batch_speaks(b))
                return;
        while (*link && !batch_busy(b, SLOT_ACT)) {
                struct submit_user *p = *link;

                if (!act_for(b, p)) {
                        link = &p->next;
                        continue;
                }
                *link = p->next;
                p->next = NULL;
                for (last = &b->submit_users; *last;)
                        last = &(*last)->next;
                *last = p;
        }
}

void batch_act_now(struct batch *b, enum batch_verb verb)
{
        struct submit_user *p = b->user_commands ? NULL : b->submit_users;
        int64_t until_ms = clock_boot_ms() + ALL_MS;

        while (p && p->acts[verb].n && clock_boot_ms() < until_ms) {
                struct batch_call call = {.settings = &b->settings, .version = batch_version(b)};

                free(next_act(b, p, verb, &call));
                batch_run_now(b, &call);
        }
}
