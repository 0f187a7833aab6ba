/* POST /v1/jobs/7.42/exec: runs a command beside the job's program, on the same machine. GET
 * /v1/jobs/7.42/output?exec= returns its output and how it ended; POST /v1/jobs/7.42/exec/input sends its
 * standard input. */
#include <ctype.h>

#include "base/format/base64.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/routes.h"
#include "server/calls/waits.h"
#include "server/files/streams.h"
#include "server/loop/ids.h"

#define ANSWER_MS   10000
#define WORDS_MAX   10000
#define WORDS_BYTES (1u << 20)
#define INPUT_MS    15000 /* longer than an agent waits until the command takes input */
#define TERM_MAX    64

struct exec {
        uint64_t request, number, exec; /* number: of the question to the agent */
        uint32_t member, fence;
        int64_t until_ms; /* boot clock */
        struct str *words;
        struct streams_command command;
        struct streams_input input;
        struct buf bytes; /* input */
        struct streams_chunk said;
};

static void exec_state_free(void *arg)
{
        struct exec *x = arg;

        streams_chunk_deinit(&x->said);
        buf_deinit(&x->bytes);
        free(x->words);
        free(x);
}

static void reply_exec(struct server *s, struct call *c)
{
        const struct exec *x = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kint(&j, "exec", (int64_t)x->exec);
        json_kint(&j, "attempt", x->fence);
        json_close(&j, '}');
        call_reply(c);
}

/* An agent cannot have accepted more bytes than were sent. */
static void reply_input(struct server *s, struct call *c)
{
        const struct exec *x = c->state;
        uint64_t last = x->input.offset + x->bytes.n;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kint(&j, "next", (int64_t)(x->said.input_next < last ? x->said.input_next : last));
        json_kbool(&j, "closed", x->said.over);
        json_close(&j, '}');
        call_reply(c);
}

static void exec_park(struct server *s, struct call *c, call_fn *then)
{
        const struct exec *x = c->state;
        struct id id = {.request = STREAMS_WATCH(x->number)};
        const struct ids ids = {.items = &id, .count = 1};
        uint64_t number = x->number;

        if (!waits_park(s, c, &ids, x->until_ms - clock_boot_ms(), then))
                streams_drop(s, number);
}

/* Waits for the agent's answer, and calls `answered` again when it has come. Returns false if the call
 * waits or has ended. */
static bool take_answer(struct server *s, struct call *c, call_fn *answered)
{
        struct exec *x = c->state;

        if (streams_take(s, x->number, &x->said))
                return true;
        if (clock_boot_ms() < x->until_ms) {
                exec_park(s, c, answered);
                return false;
        }
        streams_drop(s, x->number);
        call_fail(c, 504, "no_answer", "its agent does not answer, or cannot run commands");
        return false;
}

static void exec_answered(struct server *s, struct call *c)
{
        struct exec *x = c->state;

        if (!take_answer(s, c, exec_answered))
                return;
        if (x->said.unknown)
                call_fail(c, 409, "no_command", "its agent has gone away");
        else if (x->said.error.n)
                call_fail(c, 409, "no_command", "%s", buf_z(&x->said.error));
        else
                call_io(c, reply_exec);
}

static void input_answered(struct server *s, struct call *c)
{
        const struct exec *x = c->state;

        if (!take_answer(s, c, input_answered))
                return;
        if (x->said.unknown)
                call_fail(c, 404, "not_found",
                          "there is no such command any more, or it was started without input");
        else
                call_io(c, reply_input);
}

/* Finds the job, if the caller may use it and it runs. Returns false if the call has ended. */
static bool exec_find_job(struct server *s, struct call *c, struct core_job *ret)
{
        const struct exec *x = c->state;
        struct core_request r;

        if (core_request_get(s->core, x->request, &r) != 0 || !call_may(c, r.owner) ||
            core_job_get(s->core, x->request, x->member, ret) != 0) {
                call_fail(c, 404, "not_found", "there is no job " STR_FMT " that has not ended",
                          STR_ARG(c->param[0]));
                return false;
        }
        if (!call_may_run_as(c, r.owner)) {
                call_fail(c, 403, "forbidden", "only its owner and admins run commands beside a job");
                return false;
        }
        if (!ret->agent) {
                call_fail(c, 409, "no_command", "the job does not run: it is %s", job_state_name(ret->state));
                return false;
        }
        return true;
}

/* Parks the call until the agent has answered; x->number says which question. */
static void wait_for(struct server *s, struct call *c, int64_t timeout_ms, call_fn *then)
{
        struct exec *x = c->state;

        if (!x->number) {
                call_fail(c, 409, "no_command",
                          "its agent is not connected, or too many questions to agents are open");
                return;
        }
        x->until_ms = clock_boot_ms() + timeout_ms;
        exec_park(s, c, then);
}

static void exec_ask_agent(struct server *s, struct call *c)
{
        struct exec *x = c->state;
        struct streams_question q = {.request = x->request, .member = x->member};
        struct core_job job;

        if (!exec_find_job(s, c, &job))
                return;
        q.agent = job.agent;
        q.fence = x->fence = job.fence;
        x->number = streams_exec(s, c->who, &q, &x->command, &x->exec);
        wait_for(s, c, ANSWER_MS, exec_answered);
}

static void bring(struct server *s, struct call *c)
{
        struct exec *x = c->state;
        struct streams_question q = {
                .request = x->request, .member = x->member, .fence = x->fence, .exec = x->exec};
        struct core_job job;

        if (!exec_find_job(s, c, &job))
                return;
        if (job.fence != x->fence) {
                call_fail(c, 404, "not_found",
                          "there is no such command any more: its job's attempt is over");
                return;
        }
        q.agent = job.agent;
        x->number = streams_input(s, c->who, &q, &x->input);
        wait_for(s, c, INPUT_MS, input_answered);
}

/* Checks the name of a terminal type, because terminfo uses it as a file name. */
static bool is_term(struct str text)
{
        for (size_t i = 0; i < text.n; i++)
                if ((!text.p[i] || !strchr("-+._", text.p[i])) && !isalnum((unsigned char)text.p[i]))
                        return false;
        return text.n <= TERM_MAX;
}

static uint32_t number_of(const json_t *doc, const char *key)
{
        /* the schema has checked its range */
        return (uint32_t)json_integer_value(json_object_get(doc, key));
}

/* Returns false if the call has ended. */
static bool read_terminal(struct call *c, const json_t *doc, struct streams_command *ret)
{
        const json_t *terminal = json_object_get(doc, "terminal");

        ret->input = json_is_true(json_object_get(doc, "input"));
        ret->terminal = terminal != NULL;
        ret->rows = number_of(terminal, "rows");
        ret->columns = number_of(terminal, "columns");
        ret->term = arena_str(&c->arena, call_json_text(terminal, "type"));
        if (is_term(ret->term))
                return true;
        call_fail(c, 400, "bad_request", "a terminal's type has letters, digits and -+._ only");
        return false;
}

/* Returns false if the call has ended. */
static bool read_words(struct call *c, struct exec *x, const json_t *doc)
{
        const json_t *argv = json_object_get(doc, "argv"), *word;
        size_t i, bytes = 0, count = 0;

        x->words = mem_array(NULL, json_array_size(argv) + 1, sizeof(*x->words));
        json_array_foreach (argv, i, word) {
                struct str text = str_make(json_string_value(word), json_string_length(word));

                if (count == WORDS_MAX || !json_is_string(word) || memchr(text.p, 0, text.n))
                        break;
                bytes += text.n;
                x->words[count++] = arena_str(&c->arena, text);
        }
        x->command.words = x->words;
        x->command.count = count;
        if (count > 0 && count == json_array_size(argv) && bytes <= WORDS_BYTES)
                return true;
        call_fail(c, 400, "bad_request",
                  "argv must be a list of 1 to %d texts without NUL, of 1 MiB together", WORDS_MAX);
        return false;
}

/* Returns false if the call has ended. */
static bool read_input(struct call *c, struct exec *x, const json_t *doc)
{
        x->exec = (uint64_t)json_integer_value(json_object_get(doc, "exec"));
        x->fence = number_of(doc, "attempt");
        x->input.offset = (uint64_t)json_integer_value(json_object_get(doc, "offset"));
        x->input.end = json_is_true(json_object_get(doc, "end"));
        x->input.rows = number_of(doc, "rows");
        x->input.columns = number_of(doc, "columns");
        if (x->exec && x->fence && base64_decode(&x->bytes, call_json_text(doc, "data")) == 0 &&
            x->bytes.n <= STREAMS_CHUNK) {
                x->input.bytes = buf_view(&x->bytes);
                return true;
        }
        call_fail(c, 400, "bad_request",
                  "exec and attempt say which command, and data must be base64 of at most %u bytes",
                  (unsigned)STREAMS_CHUNK);
        return false;
}

static struct exec *begin_exec(struct call *c)
{
        struct exec *x = call_state(c, sizeof(*x), exec_state_free);

        if (ids_parse_job(c->param[0], &x->request, &x->member) == 0)
                return x;
        call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42", STR_ARG(c->param[0]));
        return NULL;
}

void api_job_exec(struct server *s, struct call *c)
{
        struct exec *x = begin_exec(c);
        json_t *doc = x ? call_json(c) : NULL;

        (void)s;
        if (doc && read_words(c, x, doc) && read_terminal(c, doc, &x->command))
                call_core(c, exec_ask_agent);
        json_decref(doc);
}

void api_job_exec_input(struct server *s, struct call *c)
{
        struct exec *x = begin_exec(c);
        json_t *doc = x ? call_json(c) : NULL;

        (void)s;
        if (doc && read_input(c, x, doc))
                call_core(c, bring);
        json_decref(doc);
}
