/* GET /v1/jobs/7.42/output: what a job has printed to stdout and stderr, from given offsets on.
 *
 * While the job runs, its agent is asked and answers when there is something new. When an attempt has
 * ended the server has the tail of its output; the agent may still have the output before the tail, for a
 * caller who has followed so far. Otherwise the call waits for an event of the job. One call answers for
 * one attempt: the caller names the attempt to which the offsets belong, and if the job is in another
 * attempt by now, both begin anew. */
#include "base/format/base64.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/calls/waits.h"
#include "server/files/streams.h"
#include "server/files/tails.h"
#include "server/loop/ids.h"

#define WAIT_MAX_MS 60000
/* before the next question, when the agent does not have the attempt yet or does not answer */
#define PAUSE_MS  200
#define ANSWER_MS 5000 /* for an agent to answer a question that needs no waiting */

static const char *const names[2] = {"stdout", "stderr"};

struct output {
        uint64_t request, number; /* number: of the question to the agent; 0: none */
        uint32_t member, fence;   /* fence: of the attempt to which `offset` belongs; 0: none yet */
        uint64_t offset[2], last;
        uint64_t exec; /* number of a command beside the attempt's program; 0: the job's program */
        bool wanted[2];
        int64_t until_ms; /* boot clock */
        bool over;        /* the attempt prints nothing more, and the caller has all its output */
        bool ended;       /* the job has ended as well */
        enum job_state state;
        struct row row;       /* of a job that has ended */
        struct buf tail_name; /* name of the tail of the job's last attempt; empty: none */
        struct tail_read tail;
        bool tail_read;
        struct streams_chunk chunk;
};

static void output_state_free(void *arg)
{
        struct output *x = arg;

        streams_chunk_deinit(&x->chunk);
        buf_deinit(&x->tail_name);
        tail_read_deinit(&x->tail);
        free(x);
}

static void output_not_found(struct call *c)
{
        call_fail(c, 404, "not_found", "there is no job " STR_FMT, STR_ARG(c->param[0]));
}

/* ---- the reply */

static void write_stream(struct json *j, const char *name, uint64_t offset, struct str bytes)
{
        BUF_CLEANUP struct buf text = {0};

        json_key(j, name);
        json_open(j, '{');
        base64_encode(&text, bytes);
        json_kint(j, "offset", (int64_t)offset);
        json_kint(j, "next", (int64_t)(offset + bytes.n));
        json_kstr(j, "data", buf_view(&text));
        json_close(j, '}');
}

static void output_write_reply(struct server *s, struct call *c)
{
        struct output *x = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kstr(&j, "id", c->param[0]);
        json_kstrz(&j, "state", job_state_name(x->state));
        json_kint(&j, "attempt", x->fence);
        for (int k = 0; k < 2; k++)
                if (x->wanted[k])
                        write_stream(&j, names[k], x->chunk.offset[k], buf_view(&x->chunk.bytes[k]));
        if (x->chunk.memory_bytes) {
                json_key(&j, "used");
                json_open(&j, '{');
                json_kint(&j, "cpu_ms", x->chunk.cpu_ms);
                json_kint(&j, "memory_bytes", x->chunk.memory_bytes);
                json_close(&j, '}');
        }
        json_kbool(&j, "over", x->over);
        json_kbool(&j, "ended", x->ended);
        if (x->exec && x->over)
                row_write_exit(&j, &(struct row){.ended = x->chunk.error.n == 0,
                                                 .signaled = x->chunk.signaled,
                                                 .exit_code = x->chunk.exit_code});
        if (x->exec && x->over && x->chunk.error.n)
                json_kstr(&j, "error", buf_view(&x->chunk.error));
        if (x->ended)
                row_write_exit(&j, &x->row);
        json_close(&j, '}');
        call_reply(c);
}

static void reply_output(struct call *c)
{
        call_io(c, output_write_reply);
}

/* Replies without new output; the offsets stay. */
static void reply_empty(struct call *c)
{
        struct output *x = c->state;

        for (int k = 0; k < 2; k++)
                x->chunk.offset[k] = x->offset[k];
        reply_output(c);
}

/* ---- asking the agent */

static void read_output(struct server *s, struct call *c);
static void output_ask_reader(struct server *s, struct call *c);
static void give_tail(struct server *s, struct call *c);

/* Parks the call until the job has an event, but at most for most_ms. */
static void output_park(struct server *s, struct call *c, int64_t most_ms)
{
        const struct output *x = c->state;
        int64_t left = x->until_ms - clock_boot_ms();
        struct id id = {.request = x->request};
        const struct ids ids = {.items = &id, .count = 1};

        if (left <= 0)
                reply_empty(c);
        else
                waits_park(s, c, &ids, left < most_ms ? left : most_ms, read_output);
}

static bool some(const struct streams_chunk *k)
{
        return k->bytes[0].n > 0 || k->bytes[1].n > 0;
}

static void output_answered(struct server *s, struct call *c);

static void park_asked(struct server *s, struct call *c)
{
        const struct output *x = c->state;
        int64_t left = x->until_ms + ANSWER_MS - clock_boot_ms();
        struct id watched[2] = {{.request = STREAMS_WATCH(x->number)}, {.request = x->request}};
        const struct ids ids = {.items = watched, .count = x->tail_read ? 1 : 2};
        uint64_t number = x->number;

        if (!waits_park(s, c, &ids, left, output_answered))
                streams_drop(s, number);
}

/* Returns whether the job's agent still has the attempt that was asked about. */
static bool still_there(struct server *s, const struct output *x)
{
        struct core_job job;

        return x->tail_read || (core_job_get(s->core, x->request, x->member, &job) == 0 && job.agent &&
                                job.fence == x->fence);
}

static void output_answered(struct server *s, struct call *c)
{
        struct output *x = c->state;
        bool late = clock_boot_ms() >= x->until_ms + ANSWER_MS;

        if (!streams_take(s, x->number, &x->chunk)) {
                if (!late && still_there(s, x)) {
                        park_asked(s, c);
                        return;
                }
                streams_drop(s, x->number);
                x->chunk.unknown = true;
        }
        x->number = 0;
        if (x->chunk.unknown && x->exec) {
                call_fail(c, 404, "not_found",
                          "there is no such command any more: its job has ended, or nobody has asked for it");
                return;
        }
        /* the assignment is still on its way, or the agent has forgotten the attempt */
        if (x->chunk.unknown) {
                if (x->tail_read)
                        give_tail(s, c);
                else if (!still_there(s, x))
                        read_output(s, c);
                else
                        output_park(s, c, PAUSE_MS);
                return;
        }
        x->over = x->chunk.over;
        x->last = 0;
        if (some(&x->chunk) || x->exec) {
                reply_output(c);
                return;
        }
        for (int k = 0; k < 2; k++)
                x->offset[k] = x->chunk.offset[k];
        if (x->tail_read)
                give_tail(s, c);
        else if (x->over)
                read_output(s, c); /* the job may have ended in the turn that brought this answer */
        else
                output_park(s, c, PAUSE_MS);
}

static bool output_ask_agent(struct server *s, struct call *c, const char *agent)
{
        struct output *x = c->state;
        int64_t left = x->until_ms - clock_boot_ms();
        struct streams_question q = {
                .agent = agent,
                .request = x->request,
                .member = x->member,
                .fence = x->fence,
                .offset = {x->offset[0], x->offset[1]},
                .wanted = {x->wanted[0], x->wanted[1]},
                .last = x->last,
                .wait_ms = x->tail_read ? 0 : left,
                .exec = x->exec,
        };

        x->number = streams_ask(s, c->who, &q);
        if (x->number)
                park_asked(s, c);
        return x->number != 0;
}

/* ---- finding the job */

static void begin_attempt(struct output *x, uint32_t fence)
{
        if (x->fence == fence)
                return;
        if (x->fence)
                x->offset[0] = x->offset[1] = 0;
        x->fence = fence;
        x->over = false;
}

/* The server may have the tail of the job's last attempt. It must be durable before it is read. */
static void look_in_store(struct call *c)
{
        c->when = TURN_DURABLE;
        call_io(c, output_ask_reader);
}

static void look_ended(struct server *s, struct call *c)
{
        struct output *x = c->state;
        uint32_t fence;

        x->ended = true;
        if (!tails_find(s, x->request, x->member, &x->tail_name, &fence))
                x->over = true;
        look_in_store(c);
}

/* No agent has the job: the caller gets the end of the last attempt's output. */
static void look_waiting(struct server *s, struct call *c)
{
        struct output *x = c->state;
        uint32_t fence;

        buf_reset(&x->tail_name);
        if (tails_find(s, x->request, x->member, &x->tail_name, &fence) && !(x->over && x->fence == fence))
                look_in_store(c);
        else
                output_park(s, c, WAIT_MAX_MS);
}

static void read_output(struct server *s, struct call *c)
{
        struct output *x = c->state;
        struct core_request r;
        struct core_job job;

        x->tail_read = false;
        if (core_request_get(s->core, x->request, &r) != 0) {
                if (x->request <= core_request_last(s->core))
                        look_ended(s, c);
                else
                        output_not_found(c);
                return;
        }
        if (!call_may(c, r.owner) || core_job_get(s->core, x->request, x->member, &job) != 0) {
                output_not_found(c);
                return;
        }
        x->state = job.state;
        if (!x->exec && (job.state == JOB_COMPLETED || job.state == JOB_REMOVED)) {
                look_ended(s, c);
                return;
        }
        if (x->exec && (!job.agent || job.fence != x->fence || !output_ask_agent(s, c, job.agent))) {
                call_fail(c, 404, "not_found",
                          "there is no such command any more: its job's attempt is over, or its agent away");
                return;
        }
        if (x->exec)
                return;
        if (!job.agent) {
                look_waiting(s, c);
                return;
        }
        begin_attempt(x, job.fence);
        if (x->over)
                output_park(s, c, WAIT_MAX_MS);
        else if (!output_ask_agent(s, c, job.agent))
                output_park(s, c, PAUSE_MS);
}

/* ---- output of an ended attempt */

static uint64_t tail_begin(const struct tail_read *t, int k)
{
        return t->size[k] - t->bytes[k].n;
}

/* Replies with the bytes from the caller's offset on, or with none. */
static void give_tail(struct server *s, struct call *c)
{
        struct output *x = c->state;
        const struct tail_read *t = &x->tail;

        for (int k = 0; k < 2; k++) {
                uint64_t begin = tail_begin(t, k), from = x->offset[k];

                if (x->last)
                        from = t->size[k] > x->last ? t->size[k] - x->last : 0;
                from = from < begin ? begin : from;
                x->offset[k] = x->chunk.offset[k] = from;
                if (x->wanted[k] && from < t->size[k])
                        buf_str(&x->chunk.bytes[k], str_skip(buf_view(&t->bytes[k]), from - begin));
        }
        x->last = 0;
        x->over = true;
        if (some(&x->chunk) || x->ended)
                reply_output(c);
        else
                output_park(s, c, WAIT_MAX_MS);
}

/* Core thread: a caller who has followed the attempt may lack output before the tail. */
static void look_back(struct server *s, struct call *c)
{
        struct output *x = c->state;
        struct tail_read *t = &x->tail;
        bool follows = x->fence == t->fence, lacks = false;

        if (t->fence == 0) { /* no tail is kept */
                x->over = true;
                if (x->ended)
                        reply_empty(c);
                else
                        output_park(s, c, WAIT_MAX_MS);
                return;
        }
        begin_attempt(x, t->fence);
        x->tail_read = true;
        for (int k = 0; k < 2; k++)
                lacks |= x->wanted[k] && !x->last && x->offset[k] < tail_begin(t, k);
        if (!follows || !lacks || !output_ask_agent(s, c, buf_z(&t->agent)))
                give_tail(s, c);
}

static void output_to_core(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, look_back);
}

static void read_store(struct server *s, struct call *c)
{
        struct output *x = c->state;

        x->row.request = x->request;
        x->row.member = x->member;
        if (x->ended &&
            (!jobs_fill_past(s, &c->arena, &x->row, false, STR_NONE) || !call_may(c, x->row.owner))) {
                output_not_found(c);
                return;
        }
        if (x->ended)
                x->state = x->row.state;
        tail_read_deinit(&x->tail);
        x->tail = (struct tail_read){0};
        if (x->tail_name.n && tails_read(s, buf_view(&x->tail_name), &x->tail) != 0)
                x->tail.fence = 0;
        call_io(c, output_to_core);
}

static void output_ask_reader(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_store);
}

/* ---- the request */

static bool read_query(struct call *c, struct output *x)
{
        struct str stream = call_query(c, "stream");
        uint64_t timeout_ms = 0, attempt = 0;

        for (int k = 0; k < 2; k++)
                x->wanted[k] = stream.n == 0 || str_eqz(stream, names[k]);
        if (!x->wanted[0] && !x->wanted[1]) {
                call_fail(c, 400, "bad_parameter", "'stream' must be stdout or stderr; both without it");
                return false;
        }
        if (!call_number(c, "timeout_ms", WAIT_MAX_MS, &timeout_ms) ||
            !call_number(c, "attempt", UINT32_MAX, &attempt) ||
            !call_number(c, "exec", INT64_MAX, &x->exec) || !call_number(c, "last", INT64_MAX, &x->last) ||
            !call_number(c, "stdout", INT64_MAX, &x->offset[0]) ||
            !call_number(c, "stderr", INT64_MAX, &x->offset[1]))
                return false;
        x->fence = (uint32_t)attempt;
        x->until_ms = clock_boot_ms() + (int64_t)timeout_ms;
        return true;
}

void api_job_output(struct server *s, struct call *c)
{
        struct output *x = call_state(c, sizeof(*x), output_state_free);

        (void)s;
        if (ids_parse_job(c->param[0], &x->request, &x->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else if (read_query(c, x))
                call_core(c, read_output);
}
