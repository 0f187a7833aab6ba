/* Asks the system for its own prediction, one question at a time, with a script that has the same head. */
#include "run/batch/quote.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "run/batch/calls.h"
#include "run/batch/runner.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/call/answer.h"

#define OPEN_MAX  32
#define FILE_NAME "quote.sh"

struct question {
        struct run_id id;
        struct submit_user *submit_user;
        char *head;
        struct question *next;
};

struct quotes { /* open quotes; the first one is being asked */
        struct question *first, **last;
        unsigned count;
};

static void quote_answer(struct batch *b, struct run_id id, uint64_t begins_ms, int error, const char *text)
{
        event_queue_quoted(b->events, &(struct run_quote){id, begins_ms, error, text});
}

static void question_free(struct question *q)
{
        if (q)
                free(q->head);
        free(q);
}

static struct question *take_first(struct batch *b)
{
        struct question *q = b->quotes->first;

        b->quotes->first = q->next;
        if (!b->quotes->first)
                b->quotes->last = &b->quotes->first;
        b->quotes->count--;
        return q;
}

static void ask_system(struct batch *b);

static void on_answer(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;
        BUF_CLEANUP struct buf text = {0};
        struct question *q = take_first(b);
        uint64_t at = 0, now = (uint64_t)clock_wall_ms();
        int error = 0;

        if (status == 0 && b->system->when_said(out, errors, &at)) {
                quote_answer(b, q->id, at > now ? at : now, 0, NULL);
        } else {
                bool full = b->system->full && b->system->full(errors);

                if (status > 0 && !full && !b->system->when_is_now &&
                    b->system->refused(WIFEXITED(status) ? WEXITSTATUS(status) : -1, errors))
                        error = EINVAL;
                answer_clean(&text, str_trim(errors));
                quote_answer(b, q->id, 0, error, text.n ? buf_z(&text) : NULL);
        }
        question_free(q);
        ask_system(b);
}

static void ask_system(struct batch *b)
{
        while (b->quotes->first && !batch_busy(b, SLOT_WHEN)) {
                struct batch_call call = {.settings = &b->settings};
                BUF_CLEANUP struct buf path = {0}, script = {0};
                struct err err = {""};

                batch_path(b, &path, FILE_NAME, "");
                buf_printf(&script, "#!/bin/sh\n%s:\n", b->quotes->first->head);
                if (fs_write(b->fd, FILE_NAME, buf_view(&script), 0755, false, &err) < 0) {
                        struct question *q = take_first(b);

                        quote_answer(b, q->id, 0, 0, err.text);
                        question_free(q);
                        continue;
                }
                b->system->when(&call, &(struct batch_sending){.name = "quote",
                                                               .script = buf_z(&path),
                                                               .head = b->quotes->first->head,
                                                               .count = 1});
                batch_run_as(b, b->quotes->first->submit_user, SLOT_WHEN, &call, on_answer, b);
        }
}

void batch_when(struct runner *r, const struct run_spec *spec)
{
        struct batch *b = (struct batch *)(void *)r;
        BUF_CLEANUP struct buf head = {0};
        struct err err = {""};

        if (b->system->resources(&b->settings, spec, &head, &err) < 0) {
                quote_answer(b, spec->id, 0, EINVAL, err.text);
                return;
        }
        if (!b->system->when || b->quotes->count >= OPEN_MAX) {
                quote_answer(b, spec->id, 0, 0, NULL);
                return;
        }
        struct question *q = mem_new(struct question);
        q->id = spec->id;
        q->submit_user = batch_submit_user(b, spec->owner, spec->user);
        q->head = mem_dupz(buf_z(&head));
        *b->quotes->last = q;
        b->quotes->last = &q->next;
        b->quotes->count++;
        ask_system(b);
}

struct quotes *batch_quotes_new(void)
{
        struct quotes *q = mem_new(struct quotes);

        q->last = &q->first;
        return q;
}

void batch_quotes_free(struct batch *b)
{
        while (b->quotes && b->quotes->first)
                question_free(take_first(b));
        free(b->quotes);
}
