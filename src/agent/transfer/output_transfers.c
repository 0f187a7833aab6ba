/* Sends outputs to URLs one after the other, each with the retries of movers. With `users` the contents are
 * in a file that a process of the job's user made (stage_work.h), and a mover of the same user sends them
 * from there.
 *
 * If the server is to know the file (register_outputs), a mover of the agent's own first computes its
 * checksum, because an answer of the job's user is not trusted.
 *
 * A store that does not answer does not fail a job: the outputs wait until it answers a probe (stores.c).
 * The job's room is free meanwhile.
 */
#include "agent/transfer/output_transfers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/credential/credentials.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/movers.h"
#include "agent/transfer/stores.h"
#include "base/system/fs.h"
#include "base/system/log.h"

struct output_transfers {
        const struct outputs *outputs;
        size_t index;
        struct move *move;
        bool summed; /* the next output was summed, with this checksum */
        unsigned char sha256[32];
        uint64_t shown;              /* version of the credential that the move has; 0: none */
        bool waits;                  /* waits for a credential */
        size_t store;                /* store of the present output; or FILE_STORE_NONE */
        bool silent;                 /* the store does not answer, and is waited for */
        struct move_answer *doubted; /* failed answer, kept while the store is probed */
};

void outputs_deinit(struct outputs *o)
{
        for (size_t i = 0; i < o->count; i++) {
                free(o->files[i].from);
                free(o->files[i].url);
        }
        free(o->files);
        for (size_t i = 0; o->paths && o->paths[i]; i++)
                free(o->paths[i]);
        free(o->paths);
        if (o->data >= 0)
                close(o->data);
        *o = (struct outputs){.data = -1};
}

void output_transfers_drop_sent(struct attempt *at)
{
        for (size_t i = 0; i < at->result.sent_count; i++)
                free(at->result.sent[i].name);
        at->result.sent_count = 0;
}

void output_transfers_forget(struct attempt *at)
{
        struct output_transfers *s = at->output_transfers;

        if (!s)
                return;
        at->output_transfers = NULL;
        if (s->move && at->a->movers)
                movers_cancel(s->move);
        free(s->doubted);
        free(s);
}

void output_transfers_doing(const struct attempt *at, struct buf *out)
{
        const struct output_transfers *s = at->output_transfers;

        if (!s || s->index >= s->outputs->count) {
                buf_addz(out, "delivering its outputs");
                return;
        }
        MEM_CLEANUP char *url = move_url_shown(s->outputs->files[s->index].url);
        buf_printf(out, "sending output %zu of %zu to %s", s->index + 1, s->outputs->count, url);
        if (s->waits)
                buf_addz(out, ", once its credential is here");
        if (s->silent)
                buf_printf(out, ", once store %s answers", stores_name(at->a, s->store));
        const char *why = s->silent ? stores_down_why(at->a, s->store) : NULL;
        if (why)
                buf_printf(out, "; now: %s", why);
}

static void all_sent(struct attempt *at)
{
        output_transfers_forget(at);
        at->a->news->delivered(at, 0, NULL);
}

static void outputs_failed(struct attempt *at, int hold_code, int error, const char *why)
{
        char text[768]; /* copied, since `why` may be in freed memory */

        snprintf(text, sizeof(text), "%s", why);
        log_warn("msg=\"an output cannot be sent\" error=\"%s\"", LOG_TEXT(str_of(text)));
        output_transfers_forget(at);
        at->result.hold_subcode = error;
        at->a->news->delivered(at, hold_code, text);
}

static void next_transfer(struct attempt *at);

static void on_failed(struct attempt *at, const struct move_answer *answer)
{
        struct output_transfers *s = at->output_transfers;
        BUF_CLEANUP struct buf words = {0};
        bool denied = answer->error == EACCES;

        buf_addz(&words, answer->text);
        if (denied && credentials_denied(at, s->outputs->files[s->index].url, s->shown, &words))
                next_transfer(at); /* the owner has replaced the credential meanwhile */
        else
                outputs_failed(at, denied && s->shown ? HOLD_CREDENTIAL : HOLD_OUTPUT, answer->error,
                               buf_z(&words));
}

static void wait_for_store(struct attempt *at)
{
        struct output_transfers *s = at->output_transfers;

        s->silent = true;
        log_info("msg=\"an output waits for its store\" store=%s %s", stores_name(at->a, s->store),
                 expand_log(at, (char[LOG_NAME]){0}));
}

/* Handles a transfer that failed without an answer. Returns false if the store is not the cause. */
static bool is_silence(struct attempt *at, const struct move_answer *answer)
{
        struct output_transfers *s = at->output_transfers;
        enum store_word word =
                stores_is_silence(answer->error) ? stores_doubt(at->a, s->store) : STORE_ANSWERS;

        if (word == STORE_SILENT) {
                wait_for_store(at);
        } else if (word == STORE_ASKED) {
                s->doubted = mem_new(struct move_answer);
                *s->doubted = *answer;
        }
        return word != STORE_ANSWERS;
}

static void on_sent(void *arg, const struct move_answer *answer)
{
        struct attempt *at = arg;
        struct output_transfers *s = at->output_transfers;

        s->move = NULL;
        if (answer->status == MOVE_FAILED) {
                if (!is_silence(at, answer))
                        on_failed(at, answer);
                return;
        }
        const struct output_transfer *f = &s->outputs->files[s->index];
        if (!at->a->users_path) { /* with `users` the answer is only a claim of the job's user */
                if (answer->tries == 1)
                        stores_measured(at->a, s->store, PROBE_OUT, answer->moved, answer->took_us);
                stores_answered(at->a, s->store);
        }
        MEM_CLEANUP char *shown = move_url_shown(f->url);
        log_info("msg=sent url=\"%s\" bytes=%llu ms=%llu", LOG_TEXT(str_of(shown)),
                 (unsigned long long)f->size, (unsigned long long)answer->took_us / 1000);
        at->result.bytes_out += f->size;
        if (s->summed) {
                MEM_GROW(at->result.sent, at->result.sent_cap, at->result.sent_count + 1);
                struct output_ref *o = &at->result.sent[at->result.sent_count++];
                *o = (struct output_ref){.name = mem_dupz(shown), .size = f->size};
                memcpy(o->sha256, s->sha256, 32);
                s->summed = false;
        }
        s->index++;
        next_transfer(at);
}

static void on_summed(void *arg, const struct move_answer *answer)
{
        struct attempt *at = arg;
        struct output_transfers *s = at->output_transfers;
        const struct output_transfer *f = &s->outputs->files[s->index];

        s->move = NULL;
        if (answer->status != MOVE_DONE || answer->size != f->size) {
                BUF_CLEANUP struct buf why = {0};

                buf_printf(&why, "the output %s could not be read before it was sent: %s", f->from,
                           answer->status == MOVE_DONE ? "it has another size now" : answer->text);
                outputs_failed(at, HOLD_OUTPUT, answer->error, buf_z(&why));
                return;
        }
        s->summed = true;
        memcpy(s->sha256, answer->sha256, 32);
        next_transfer(at);
}

static void sum(struct attempt *at, int fd)
{
        struct output_transfers *s = at->output_transfers;
        const struct output_transfer *f = &s->outputs->files[s->index];
        struct move_task t;

        move_task_init(&t, MOVE_CHECK);
        t.at = f->at;
        t.size = f->size;
        t.tries = 1;
        s->move = movers_start(at->a, &t, fd, NULL, NULL, on_summed, at);
        move_task_deinit(&t);
}

static int open_output(struct attempt *at, const struct output_transfer *f)
{
        struct output_transfers *s = at->output_transfers;
        char name[64];

        if (s->outputs->data >= 0)
                return fcntl(s->outputs->data, F_DUPFD_CLOEXEC, 3);
        sandbox_name(at, name);
        int sandbox = openat(at->a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = sandbox < 0 ? -errno
                             : fs_open_beneath(sandbox, f->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        if (sandbox >= 0)
                close(sandbox);
        return fd;
}

static void next_transfer(struct attempt *at)
{
        struct output_transfers *s = at->output_transfers;
        struct agent *a = at->a;
        struct move_task t;
        struct err err = {""};

        if (s->index == s->outputs->count) {
                all_sent(at);
                return;
        }
        const struct output_transfer *f = &s->outputs->files[s->index];
        s->store = stores_of(a, str_of(f->url));
        if (stores_is_down(a, s->store)) {
                wait_for_store(at);
                return;
        }
        int fd = open_output(at, f);
        if (fd < 0) {
                BUF_CLEANUP struct buf why = {0};

                buf_printf(&why, "the output %s went away before it was sent: %s", f->from, strerror(-fd));
                outputs_failed(at, HOLD_OUTPUT, -fd, buf_z(&why));
                return;
        }
        /* files of unnamed streams are not registered as outputs */
        if (at->t->m->register_outputs && !s->summed && !str_starts(str_of(f->from), STR(".drover_out."))) {
                sum(at, fd);
                close(fd);
                return;
        }
        move_task_init(&t, MOVE_PUT);
        t.url = mem_dupz(f->url);
        int r = credentials_show(at, &t, &s->shown, &err);
        s->waits = r > 0;
        if (r != 0) {
                close(fd);
                move_task_deinit(&t);
                if (r < 0)
                        outputs_failed(at, HOLD_CREDENTIAL, EACCES, err.text);
                return;
        }
        t.at = f->at;
        t.size = f->size;
        t.tries = (uint32_t)a->config.transfer_tries;
        t.limit_ms = a->config.transfer_limit_ms;
        snprintf(t.tag, sizeof(t.tag), "%llu.%u.%u", (unsigned long long)at->request, at->member, at->fence);
        s->move = movers_start(a, &t, fd, at->t->m->owner, a->users_path ? at->t->user.name : NULL, on_sent,
                               at);
        move_task_deinit(&t);
        close(fd);
}

void output_transfers_go_on(struct attempt *at)
{
        if (at->output_transfers && at->output_transfers->waits)
                next_transfer(at);
}

bool output_transfers_wait_for_store(const struct attempt *at)
{
        return at->output_transfers && at->output_transfers->silent;
}

/* Continues a transfer that waited for the store; the wait is cleared first, so that it is reported once
 * only. */
static void store_known(struct attempt *at, bool answers)
{
        struct output_transfers *s = at->output_transfers;
        struct move_answer *doubted = s->doubted;

        s->doubted = NULL;
        if (!answers) {
                if (doubted)
                        wait_for_store(at);
        } else if (doubted) {
                on_failed(at, doubted);
        } else if (s->silent) {
                s->silent = false;
                next_transfer(at);
        }
        free(doubted);
}

static void each_waiting(struct agent *a, void (*fn)(struct attempt *at, void *arg), void *arg)
{
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_DELIVERING], *after; at; at = after) {
                        after = at->next;
                        if (at->output_transfers &&
                            (at->output_transfers->silent || at->output_transfers->doubted))
                                fn(at, arg);
                }
}

struct known {
        size_t store;
        bool answers;
};

static void tell_known(struct attempt *at, void *arg)
{
        const struct known *k = arg;

        if (at->output_transfers->store == k->store)
                store_known(at, k->answers);
}

void output_transfers_store_known(struct agent *a, size_t store, bool answers)
{
        each_waiting(a, tell_known, &(struct known){store, answers});
}

/* The store has another number now, or is none any more; then it is tried as any other. */
static void look_again(struct attempt *at, void *arg)
{
        struct output_transfers *s = at->output_transfers;

        (void)arg;
        s->store = stores_of(at->a, str_of(s->outputs->files[s->index].url));
        if (s->silent && !stores_is_down(at->a, s->store))
                store_known(at, true);
        else if (s->doubted && stores_doubt(at->a, s->store) != STORE_ASKED)
                store_known(at, !stores_is_down(at->a, s->store));
}

void output_transfers_stores_changed(struct agent *a)
{
        each_waiting(a, look_again, NULL);
}

void output_transfers_start(struct attempt *at, const struct outputs *outputs)
{
        at->output_transfers = mem_new(struct output_transfers);
        at->output_transfers->outputs = outputs;
        output_transfers_drop_sent(at);
        next_transfer(at);
}
