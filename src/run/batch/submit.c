/* Makes submissions from fresh tasks: tasks with the same resources become one array, whose name and members
 * are on disk before it is submitted. New tasks collect while submissions are in progress, so arrays grow
 * with the load. */
#include "run/batch/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/batch/acts.h"
#include "run/batch/calls.h"
#include "run/batch/journal.h"
#include "run/batch/remote.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/batch/throttle.h"
#include "run/call/answer.h"

#define GATHER_MS    5
#define NAMING       "# this submission:\n" /* line behind the head */
#define ERRORS_SHOWN 400
#define SCRIPT_MAX   (4u << 20)

struct group {
        struct throttle *throttle;
        struct task **v;
        size_t n, cap;
};

struct sending { /* a submit command in progress */
        struct batch *b;
        struct submission *s;
};

struct submitter {
        struct submission *to_send, **to_send_last;
        struct sending sends[2];
        struct timer *gather;
        bool gathering;
        uint64_t name_serial;
};

void batch_submit_later(struct batch *b)
{
        if (!b->submitter->gathering) {
                b->submitter->gathering = true;
                timer_start(b->submitter->gather, GATHER_MS);
        }
}

/* ---- making submissions */

/* Writes the lists that map members to scripts, each for some of the members, so that no node reads all. */
static int write_lists(struct batch *b, const struct submission *s, const struct group *g, struct err *err)
{
        BUF_CLEANUP struct buf list = {0}, name = {0}, script = {0};
        int r = 0;

        for (size_t i = 0; i < g->n && r == 0; i++) {
                buf_reset(&script);
                buf_printf(&script, "%s/" BATCH_STEP ".%u.sh", g->v[i]->box, g->v[i]->id.step);
                batch_script_member((unsigned)i, buf_z(&script), &list);
                if (i + 1 < g->n && (i + 1) % BATCH_LIST_PART != 0)
                        continue;
                buf_addz(&list, "esac\n");
                buf_reset(&name);
                buf_printf(&name, "%s.list.%u", s->name, (unsigned)(i / BATCH_LIST_PART));
                r = fs_write(b->fd, buf_z(&name), buf_view(&list), 0644, false, err);
                buf_reset(&list);
        }
        return r;
}

/* Appends the path of the collected output, without ".INDEX.log". */
static void submission_log(const struct submission *s, struct buf *out)
{
        buf_printf(out, "%s/%s", s->submit_user->dir, s->name);
}

static int write_files(struct batch *b, const struct submission *s, const struct group *g, struct err *err)
{
        BUF_CLEANUP struct buf head = {0}, script = {0}, name = {0}, path = {0}, log = {0};

        batch_path(b, &path, s->name, ".list");
        submission_log(s, &log);
        buf_addz(&head, s->head);
        buf_addz(&head, NAMING);
        b->system->naming(s->name, buf_z(&log), (unsigned)g->n, &head);
        const char *index = batch_setting(&b->settings, "index_variable");
        batch_script_array(index ? index : b->system->index_variable, b->system->index_first, buf_z(&head),
                           buf_z(&path), &script);
        int r = write_lists(b, s, g, err);
        buf_printf(&name, "%s.sh", s->name);
        return r < 0 ? r : fs_write(b->fd, buf_z(&name), buf_view(&script), 0755, false, err);
}

static void to_send(struct batch *b, struct submission *s)
{
        s->next = NULL;
        s->queued = true;
        *b->submitter->to_send_last = s;
        b->submitter->to_send_last = &s->next;
}

void batch_digits(struct buf *out, uint64_t n, unsigned count)
{
        static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

        for (; count; n /= 36, count--)
                buf_char(out, digits[n % 36]);
}

/* Makes a submission's name. A short name uses fewer characters of a larger alphabet. */
static void new_name(struct batch *b, struct buf *out)
{
        uint64_t n = ++b->submitter->name_serial;

        buf_addz(out, b->prefix);
        if (b->system->short_names)
                batch_digits(out, n, 10);
        else
                buf_printf(out, "%llx", (unsigned long long)n);
}

static void make_submission(struct batch *b, struct group *g)
{
        BUF_CLEANUP struct buf name = {0};
        struct err err = {""};

        new_name(b, &name);
        struct submission *s = batch_submission_new(b, g->v[0]->submit_user, buf_z(&name));
        s->head = mem_dupz(g->v[0]->head);
        s->count = s->left = (unsigned)g->n;
        batch_throttle_open(s, g->throttle);
        batch_journal_submission(b, s);
        for (size_t i = 0; i < g->n; i++) {
                struct task *t = g->v[i];

                t->s = s;
                t->index = (unsigned)i;
                t->state = TASK_NAMED;
                b->table.fresh--;
                free(t->head);
                t->head = NULL;
                batch_journal_task(b, t);
        }
        int r = write_files(b, s, g, &err);
        if (r < 0) {
                batch_throttle_close(s);
                for (size_t i = 0; i < g->n; i++)
                        batch_unwritten(b, g->v[i], -r, err.text);
        } else {
                to_send(b, s);
        }
        g->n = 0;
}

static void group_free(void *group)
{
        free(((struct group *)group)->v);
        free(group);
}

static void name_fresh(struct batch *b)
{
        struct map *groups = map_new();
        struct str key;
        void *value;

        for (struct task *t = b->table.all; t && b->table.fresh; t = t->next) {
                if (t->state != TASK_FRESH || !t->head || t->held)
                        continue;
                BUF_CLEANUP struct buf alike = {0};
                buf_printf(&alike, "%s\n%s", t->submit_user->user ? t->submit_user->user : "", t->head);
                struct group *g = map_get(groups, buf_view(&alike));
                if (!g) {
                        map_put(groups, buf_view(&alike), g = mem_new(struct group));
                        g->throttle = batch_throttle_find(b, t->submit_user, t->head);
                }
                unsigned room = batch_throttle_room(g->throttle, b->array_max);
                if (!room)
                        continue;
                MEM_GROW(g->v, g->cap, g->n + 1);
                g->v[g->n++] = t;
                if (g->n >= room)
                        make_submission(b, g);
        }
        for (size_t at = 0; map_next(groups, &at, &key, &value);) {
                struct group *g = value;

                if (g->n && batch_throttle_room(g->throttle, b->array_max))
                        make_submission(b, g);
                group_free(g);
        }
        map_free(groups);
}

/* ---- sending */

static void each_named(struct batch *b, const struct submission *s,
                       void (*fn)(struct batch *b, struct task *t, const char *text), const char *text)
{
        for (struct task *t = b->table.all, *next; t; t = next) {
                next = t->next;
                if (t->s == s && t->state == TASK_NAMED)
                        fn(b, t, text);
        }
}

static void end_unsent(struct batch *b, struct task *t, const char *text)
{
        (void)text;
        batch_over(
                b, t,
                &(struct run_event){.state = RUN_ENDED, .why = RUN_KILLED, .signaled = true, .exit_code = 15},
                NULL);
}

static void end_if_killed(struct batch *b, struct task *t, const char *text)
{
        if (t->killing)
                end_unsent(b, t, text);
}

static void refuse_task(struct batch *b, struct task *t, const char *text)
{
        batch_over(b, t, &(struct run_event){.state = RUN_FAILED, .what = "batch", .error = EINVAL}, text);
}

/* Splits the rest of a submission into submissions of at most `size`. They are on disk before its files are
 * removed. */
static void split(struct batch *b, struct submission *s, unsigned size)
{
        struct group g = {.throttle = s->throttle};

        each_named(b, s, end_if_killed, NULL);
        for (struct task *t = b->table.all; t; t = t->next) {
                if (t->s != s || t->state != TASK_NAMED)
                        continue;
                s->left--; /* not the last reference: the caller has one */
                t->s = NULL;
                t->head = mem_dupz(s->head);
                b->table.fresh++;
                MEM_GROW(g.v, g.cap, g.n + 1);
                g.v[g.n++] = t;
                if (g.n == size)
                        make_submission(b, &g);
        }
        if (g.n)
                make_submission(b, &g);
        free(g.v);
        batch_throttle_close(s);
        (void)batch_journal_flush(b, true);
}

/* The system was full: the submission is sent again later, an array in parts. */
static void full(struct batch *b, struct submission *s, struct str errors)
{
        batch_throttle_full(b, s, errors);
        if (s->count > 1)
                split(b, s, batch_throttle_size(s->throttle));
        else
                to_send(b, s);
}

static void refused(struct batch *b, struct submission *s, struct str errors)
{
        BUF_CLEANUP struct buf text = {0};

        if (b->system->refused_array && s->count > 1 && s->head && b->system->refused_array(errors)) {
                b->array_max = 1;
                split(b, s, 1);
                return;
        }
        buf_printf(&text, "%s refuses it: ", b->system->name);
        answer_clean(&text, errors);
        each_named(b, s, refuse_task, buf_z(&text));
}

static void sent(void *arg, int status, struct str out, struct str errors)
{
        struct sending *sending = arg;
        struct batch *b = sending->b;
        struct submission *s = sending->s;
        BUF_CLEANUP struct buf native = {0};

        s->sending = false;
        if (!str_trim(errors).n)
                errors = out; /* some systems write errors there */
        bool number = b->system->submitted(out, &native) && batch_is_native(buf_view(&native));
        /* a failed command that prints only an id may have been accepted */
        bool unclear = number && errors.p == out.p;
        if (status == 0 && number) {
                batch_throttle_taken(b, s);
                batch_native_known(b, s, buf_view(&native));
                batch_journal_native(b, s);
        } else if (status > 0 && b->system->full && b->system->full(errors)) {
                full(b, s, str_trim(errors));
        } else if (status > 0 && !unclear &&
                   b->system->refused(WIFEXITED(status) ? WEXITSTATUS(status) : -1, errors)) {
                batch_throttle_close(s);
                refused(b, s, str_trim(errors));
        } else {
                batch_throttle_close(s);
                log_warn("msg=\"it is not known whether a submission was taken\" name=%s status=%d "
                         "error=\"%s\"",
                         s->name, status,
                         LOG_TEXT(str_head(errors, errors.n > ERRORS_SHOWN ? ERRORS_SHOWN : errors.n)));
                s->unsure = true; /* settled by the next status query */
                s->unsure_ms = clock_boot_ms();
        }
        batch_submission_unref(b, s);
        batch_submit_later(b);
}

/* Reads the head back from a script of an earlier run: the lines behind the first. */
static char *head_of(const struct batch *b, const struct submission *s)
{
        BUF_CLEANUP struct buf name = {0}, text = {0};

        buf_printf(&name, "%s.sh", s->name);
        if (fs_read(b->fd, buf_z(&name), 1 << 20, &text, NULL) < 0)
                return mem_dupz("");
        struct str rest = buf_view(&text), first;
        str_cut(&rest, '\n', &first);
        ptrdiff_t end = str_search(rest, STR(NAMING));
        rest = str_head(rest, end < 0 ? 0 : (size_t)end);
        return str_dupz(rest);
}

static void send_submission(struct batch *b, struct submission *s, enum batch_slot slot)
{
        struct batch_call call = {.settings = &b->settings, .version = batch_version(b)};
        BUF_CLEANUP struct buf path = {0}, log = {0}, text = {0};
        struct sending *sending = &b->submitter->sends[slot];

        *sending = (struct sending){b, s};
        batch_path(b, &path, s->name, ".sh");
        if (!s->head)
                s->head = head_of(b, s);
        submission_log(s, &log);
        if (b->system->service)
                fs_read(AT_FDCWD, buf_z(&path), SCRIPT_MAX, &text, NULL);
        b->system->submit(&call, &(struct batch_sending){.name = s->name,
                                                         .script = buf_z(&path),
                                                         .head = s->head,
                                                         .count = s->count,
                                                         .log = buf_z(&log),
                                                         .text = buf_view(&text),
                                                         .env = s->submit_user->user
                                                                        ? &s->submit_user->env
                                                                        : batch_calls_environment(b->calls)});
        s->sending = true;
        s->left++; /* while it is being sent */
        batch_run_as(b, s->submit_user, slot, &call, sent, sending);
}

static bool wanted(const struct batch *b, const struct submission *s)
{
        for (const struct task *t = b->table.all; t; t = t->next)
                if (t->s == s && t->state == TASK_NAMED && !t->killing)
                        return true;
        return false;
}

/* Returns the first submission with tasks left that need not wait for a throttle; NULL: none. */
static struct submission *next_to_send(struct batch *b)
{
        for (struct submission **at = &b->submitter->to_send, *s; (s = *at); at = &s->next) {
                if (wanted(b, s) && (batch_throttle_waits(s->throttle) || !batch_remote_has(b, s)))
                        continue;
                *at = s->next;
                s->queued = false;
                if (b->submitter->to_send_last == &s->next)
                        b->submitter->to_send_last = at;
                return s;
        }
        return NULL;
}

static void on_gathered(void *arg)
{
        struct batch *b = arg;

        b->submitter->gathering = false;
        if (batch_busy(b, SLOT_SEND) && batch_busy(b, SLOT_SEND_2))
                return; /* called again when a slot is free */
        if (b->table.fresh)
                name_fresh(b);
        /* nothing is submitted before the journal is on disk */
        if (b->submitter->to_send && batch_journal_flush(b, true) < 0)
                return;
        if (!batch_speaks(b))
                return; /* called again after the first status answer */
        for (enum batch_slot slot = SLOT_SEND; slot <= SLOT_SEND_2; slot++)
                for (struct submission *s; !batch_busy(b, slot) && (s = next_to_send(b));)
                        if (!wanted(b, s) || s->count > batch_throttle_size(s->throttle)) {
                                s->left++;
                                split(b, s, batch_throttle_size(s->throttle));
                                batch_submission_unref(b, s);
                        } else {
                                send_submission(b, s, slot);
                        }
}

void batch_send_again(struct batch *b, struct submission *s)
{
        s->unsure = false;
        to_send(b, s);
        batch_submit_later(b);
}

bool batch_submit_waits(const struct batch *b)
{
        return b->table.fresh || b->submitter->to_send;
}

void batch_submitter_open(struct batch *b)
{
        struct submitter *s = b->submitter = mem_new(struct submitter);

        s->to_send_last = &s->to_send;
        s->gather = timer_new(b->loop, on_gathered, b);
        s->name_serial = (uint64_t)clock_wall_ms() << 8;
}

void batch_submitter_free(struct submitter *s)
{
        if (s)
                timer_free(s->gather);
        free(s);
}
