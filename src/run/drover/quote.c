/* When would a step begin there? Asked about a job that wants as much, and is nobody's. */
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "run/drover/private.h"

#define QUOTES_MAX 32
#define QUOTE_UUID "00000000-0000-4000-8000-000000000000" /* nothing is kept */

struct far_quote {
        struct far *far;
        struct far_quote *next;
        struct run_id id;
};

static void quoted_at(struct far *f, struct run_id id, uint64_t begins_ms, int error, const char *why)
{
        event_queue_quoted(f->events, &(struct run_quote){id, begins_ms, error, why});
}

static void quote_free(struct far_quote *q)
{
        struct far_quote **at = &q->far->quotes.first;
        while (*at != q)
                at = &(*at)->next;
        *at = q->next;
        q->far->quotes.count--;
        free(q);
}

void far_quotes_drop(struct far *f)
{
        while (f->quotes.first)
                quote_free(f->quotes.first);
}

static void on_quote(void *arg, int status, struct str body, const struct err *err)
{
        struct far_quote *q = arg;
        BUF_CLEANUP struct buf why = {0};
        json_t *doc = status == 200 ? far_json(body) : NULL;
        json_int_t at = json_integer_value(json_object_get(doc, "start_ms"));
        (void)err;
        if (status / 100 == 4)
                far_error(&why, status, body);
        quoted_at(q->far, q->id, at > 0 ? (uint64_t)at : 0, why.n ? EINVAL : 0, why.n ? buf_z(&why) : NULL);
        json_decref(doc);
        quote_free(q);
}

void far_quote(struct far *f, const struct run_spec *spec)
{
        struct far_task t = {.far = f};
        BUF_CLEANUP struct buf body = {0};
        struct json j = {.out = &body};
        if (!f->link.up || f->quotes.count >= QUOTES_MAX) {
                quoted_at(f, spec->id, 0, 0, NULL);
                return;
        }
        struct far_quote *q = mem_new(struct far_quote);
        *q = (struct far_quote){f, f->quotes.first, spec->id};
        f->quotes.first = q;
        f->quotes.count++;
        far_words_like(&t, spec);
        json_open(&j, '{');
        json_kstrz(&j, "uuid", QUOTE_UUID);
        far_parts(&j, (struct far_task *[]){&t}, 1);
        json_close(&j, '}');
        const struct http_call_spec call = {.method = "POST", .path = "/v1/quote", .body = buf_view(&body)};
        http_client_call(f->client, &call, on_quote, q);
        far_words_deinit(&t);
}
