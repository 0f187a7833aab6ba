/* Asks when a step would begin there, about a job that asks for the same resources and is never submitted.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/format/json_read.h"
#include "base/mem.h"
#include "run/drover/answers.h"
#include "run/drover/describe.h"
#include "run/drover/group.h"
#include "run/drover/quote.h"
#include "run/drover/state.h"
#include "run/drover/tasks.h"

#define QUOTES_MAX 32
#define QUOTE_UUID "00000000-0000-4000-8000-000000000000" /* nothing is stored under it */

struct remote_quote {
        struct remote *remote;
        struct remote_quote *next;
        struct run_id id;
};

static void quoted_at(struct remote *f, struct run_id id, uint64_t begins_ms, int error, const char *why)
{
        event_queue_quoted(f->events, &(struct run_quote){id, begins_ms, error, why});
}

static void quote_free(struct remote_quote *q)
{
        struct remote_quote **at = &q->remote->quotes.first;

        while (*at != q)
                at = &(*at)->next;
        *at = q->next;
        q->remote->quotes.count--;
        free(q);
}

void remote_quotes_drop(struct remote *f)
{
        while (f->quotes.first)
                quote_free(f->quotes.first);
}

static void on_quote(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_quote *q = arg;
        BUF_CLEANUP struct buf why = {0};
        json_t *doc = status == 200 ? remote_json(body) : NULL;
        json_int_t at = json_integer_value(json_object_get(doc, "start_ms"));

        (void)err;
        if (status / 100 == 4)
                remote_error(&why, status, body);
        quoted_at(q->remote, q->id, at > 0 ? (uint64_t)at : 0, why.n ? EINVAL : 0,
                  why.n ? buf_z(&why) : NULL);
        json_decref(doc);
        quote_free(q);
}

void remote_quote(struct remote *f, const struct run_spec *spec)
{
        struct remote_task t = {.remote = f};
        BUF_CLEANUP struct buf body = {0};
        struct json j = {.out = &body};

        if (!f->link.up || f->quotes.count >= QUOTES_MAX) {
                quoted_at(f, spec->id, 0, 0, NULL);
                return;
        }
        struct remote_quote *q = mem_new(struct remote_quote);
        *q = (struct remote_quote){f, f->quotes.first, spec->id};
        f->quotes.first = q;
        f->quotes.count++;
        remote_words_like(&t, spec);
        json_open(&j, '{');
        json_kstrz(&j, "uuid", QUOTE_UUID);
        remote_parts(&j, (struct remote_task *[]){&t}, 1);
        json_close(&j, '}');
        const struct http_call_spec call = {.method = "POST", .path = "/v1/quote", .body = buf_view(&body)};
        http_client_call(f->client, &call, on_quote, q);
        remote_words_deinit(&t);
}
