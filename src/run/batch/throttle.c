/* Handles a system that refuses submissions for now, because of a limit on the jobs of a user, an account or
 * a QoS. A refused array is sent again at once, at half its size; a single task after two seconds, four, and
 * so on up to a minute. After that one submission at a time is sent, each twice as large when the last was
 * accepted. The limits themselves are not known, only what they apply to: the user, and the options of the
 * head that system->limited_by lists. */
#include "run/batch/throttle.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"
#include "run/call/answer.h"

#define FIRST_MS      2000
#define LAST_MS       60000
#define THROTTLES_MAX 64 /* further limits share the last one */
#define WORDS_KEPT    200

struct throttle {
        struct throttle *next;
        char *key, *words; /* words: the system's message; NULL: the limit no longer applies */
        int64_t until_ms;  /* boot clock; nothing is sent before */
        int64_t wait_ms;
        unsigned size; /* most members of an array */
        unsigned open; /* submissions that wait or are being sent */
};

static void key_of(const struct batch *b, const struct submit_user *p, struct str head, struct buf *out)
{
        struct str line;

        buf_addz(out, p->user ? p->user : "");
        while (b->system->limited_by && head.n && str_cut(&head, '\n', &line))
                if (batch_contains(line, b->system->limited_by)) {
                        buf_char(out, '\n');
                        buf_str(out, line);
                }
}

struct throttle *batch_throttle_find(const struct batch *b, const struct submit_user *p, const char *head)
{
        BUF_CLEANUP struct buf key = {0};

        if (!b->throttles || !head)
                return NULL;
        key_of(b, p, str_of(head), &key);
        for (struct throttle *j = b->throttles; j; j = j->next)
                if (str_eqz(buf_view(&key), j->key))
                        return j;
        return NULL;
}

static struct throttle *made(struct batch *b, const struct submit_user *p, const char *head)
{
        BUF_CLEANUP struct buf key = {0};
        struct throttle *j = batch_throttle_find(b, p, head);
        unsigned count = 0;

        for (const struct throttle *x = b->throttles; x; x = x->next)
                count++;
        if (j || count >= THROTTLES_MAX)
                return j ? j : b->throttles;
        key_of(b, p, str_of(head), &key);
        j = mem_new(struct throttle);
        j->key = str_dupz(buf_view(&key));
        j->size = b->array_max;
        j->next = b->throttles;
        b->throttles = j;
        return j;
}

bool batch_throttle_waits(const struct throttle *j)
{
        return j && j->words && clock_boot_ms() < j->until_ms;
}

const char *batch_throttle_words(const struct throttle *j)
{
        return j ? j->words : NULL;
}

unsigned batch_throttle_room(const struct throttle *j, unsigned array_max)
{
        if (!j || !j->words)
                return array_max;
        if (j->open || batch_throttle_waits(j))
                return 0;
        return j->size < array_max ? j->size : array_max;
}

unsigned batch_throttle_size(const struct throttle *j)
{
        return j && j->words ? j->size : UINT32_MAX;
}

void batch_throttle_open(struct submission *s, struct throttle *j)
{
        if (!s->throttle && j && j->words) {
                s->throttle = j;
                j->open++;
        }
}

void batch_throttle_close(struct submission *s)
{
        if (s->throttle)
                s->throttle->open--;
        s->throttle = NULL;
}

void batch_throttle_full(struct batch *b, struct submission *s, struct str errors)
{
        BUF_CLEANUP struct buf words = {.max = WORDS_KEPT};
        struct throttle *j = made(b, s->submit_user, s->head);
        int64_t now = clock_boot_ms();
        unsigned half = s->count > 1 ? s->count / 2 : 1;

        answer_clean(&words, str_head(errors, errors.n < WORDS_KEPT ? errors.n : WORDS_KEPT - 1));
        if (!j->words)
                log_warn("msg=\"the batch system takes no more for now\" queue=%s error=\"%s\"", b->queue,
                         LOG_TEXT(buf_view(&words)));
        if (s->count == 1 && now >= j->until_ms) { /* otherwise the delay was set a moment ago */
                j->wait_ms = !j->wait_ms ? FIRST_MS : j->wait_ms < LAST_MS / 2 ? 2 * j->wait_ms : LAST_MS;
                j->until_ms = now + j->wait_ms;
        }
        j->size = half < j->size ? half : j->size;
        free(j->words);
        j->words = mem_dupz(buf_z(&words));
        batch_throttle_open(s, j);
}

void batch_throttle_taken(struct batch *b, struct submission *s)
{
        struct throttle *j = s->throttle;

        batch_throttle_close(s);
        if (!j || !j->words)
                return;
        j->wait_ms = j->until_ms = 0;
        j->size = j->size < b->array_max / 2 ? 2 * j->size : b->array_max;
        if (j->size == b->array_max && j->open == 0) {
                free(j->words);
                j->words = NULL;
        }
}

bool batch_throttled(const struct batch *b)
{
        for (const struct throttle *j = b->throttles; j; j = j->next)
                if (batch_throttle_waits(j))
                        return true;
        return false;
}

void batch_throttles_free(struct batch *b)
{
        for (struct throttle *j = b->throttles, *next; j; j = next) {
                next = j->next;
                free(j->key);
                free(j->words);
                free(j);
        }
}
