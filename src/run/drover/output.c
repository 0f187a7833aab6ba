/* Reads a job's output with GET /v1/jobs/ID/output while it is followed here. Calls are few and short, since
 * connections are shared with the calls that move jobs on; a refused caller asks again. */
#include <errno.h>
#include <stdlib.h>

#include "base/format/base64.h"
#include "base/format/json_read.h"
#include "base/mem.h"
#include "base/set.h"
#include "run/drover/answers.h"
#include "run/drover/output.h"
#include "run/drover/remote_number.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define CALLS_MAX  4
#define WAIT_MS    150 /* wait for new output within one call */
#define CALL_MS    20000
#define BYTES_MAX  (64u << 10)
#define OFFSET_MAX (INT64_C(1) << 50)

struct remote_output {
        struct remote *remote;
        struct remote_output *next;
        struct http_call *call;
        run_output_fn *fn;
        void *arg;
        uint64_t number;
};

static void output_free(struct remote_output *o)
{
        struct remote_output **at = &o->remote->outputs.first;

        while (*at != o)
                at = &(*at)->next;
        *at = o->next;
        o->remote->outputs.count--;
        free(o);
}

void remote_outputs_drop(struct remote *f)
{
        while (f->outputs.first) {
                http_call_cancel(f->outputs.first->call);
                output_free(f->outputs.first);
        }
}

/* Reads a stream of the answer. A text that is too long is cut; one that is not base64 is empty. */
static void read_stream(const json_t *part, uint64_t *ret_offset, struct buf *bytes, struct str *ret)
{
        const json_t *data = json_object_get(part, "data");

        *ret_offset = (uint64_t)remote_number_within(part, "offset", 0, OFFSET_MAX);
        if (json_is_string(data))
                base64_decode(bytes, str_make(json_string_value(data), json_string_length(data)));
        *ret = str_head(buf_view(bytes), BYTES_MAX);
}

static void on_output(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_output *o = arg;
        json_t *doc = status == 200 ? remote_json(body) : NULL;
        BUF_CLEANUP struct buf out = {0}, errors = {0};
        struct run_output said = {.failed = !json_is_object(doc)};

        (void)err;
        if (!said.failed) {
                read_stream(json_object_get(doc, "stdout"), &said.offset[0], &out, &said.bytes[0]);
                read_stream(json_object_get(doc, "stderr"), &said.offset[1], &errors, &said.bytes[1]);
                said.attempt = (uint64_t)remote_number_within(doc, "attempt", 0, UINT32_MAX);
                said.over = json_is_true(json_object_get(doc, "over")) &&
                            json_is_true(json_object_get(doc, "ended"));
        }
        run_output_fn *fn = o->fn;
        void *whom = o->arg;
        uint64_t number = o->number;
        output_free(o); /* the callback may ask again */
        fn(whom, number, &said);
        json_decref(doc);
}

int remote_output(struct remote *f, const struct remote_task *t, const struct run_output_question *q,
                  uint64_t number, run_output_fn *fn, void *arg)
{
        BUF_CLEANUP struct buf path = {0};

        if (!remote_number(t) || !f->link.up || f->outputs.count >= CALLS_MAX)
                return -EAGAIN;
        buf_printf(&path, "/v1/jobs/%llu.%u/output?timeout_ms=%d&attempt=%llu&stdout=%llu&stderr=%llu",
                   (unsigned long long)remote_number(t), t->member, q->wait ? WAIT_MS : 0,
                   (unsigned long long)q->attempt, (unsigned long long)q->offset[0],
                   (unsigned long long)q->offset[1]);
        if (q->last)
                buf_printf(&path, "&last=%llu", (unsigned long long)q->last);
        const struct http_call_spec spec = {.method = "GET", .path = buf_z(&path), .timeout_ms = CALL_MS};
        struct remote_output *o = mem_new(struct remote_output);
        *o = (struct remote_output){f, f->outputs.first, NULL, fn, arg, number};
        f->outputs.first = o;
        f->outputs.count++;
        o->call = http_client_call(f->client, &spec, on_output, o);
        return 0;
}
