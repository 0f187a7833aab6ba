/* POST /v1/jobs/7.42/exec: a command beside the job's program, where it runs. What the command prints, and
 * how it ends, is told by GET /v1/jobs/7.42/output?exec=. */
#include "base/clock.h"
#include "core/query.h"
#include "server/api/routes.h"
#include "server/calls/waits.h"
#include "server/files/streams.h"
#include "server/loop/ids.h"

#define ANSWER_MS   10000
#define WORDS_MAX   10000
#define WORDS_BYTES (1u << 20)

struct exec {
        uint64_t request, number, exec; /* number: of the question to the agent */
        uint32_t member, fence;
        int64_t until_ms; /* boot clock */
        struct str *words;
        size_t count;
        struct streams_chunk said;
};

static void state_free(void *arg)
{
        struct exec *x = arg;

        streams_chunk_deinit(&x->said);
        free(x->words);
        free(x);
}

static void reply(struct server *s, struct call *c)
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

static void answered(struct server *s, struct call *c);

static void park(struct server *s, struct call *c)
{
        const struct exec *x = c->state;
        struct id id = {.request = STREAMS_WATCH(x->number)};
        const struct ids ids = {.items = &id, .count = 1};
        uint64_t number = x->number;

        if (!waits_park(s, c, &ids, x->until_ms - clock_boot_ms(), answered))
                streams_drop(s, number);
}

static void answered(struct server *s, struct call *c)
{
        struct exec *x = c->state;

        if (!streams_take(s, x->number, &x->said)) {
                if (clock_boot_ms() < x->until_ms) {
                        park(s, c);
                        return;
                }
                streams_drop(s, x->number);
                call_fail(c, 504, "no_answer", "its agent does not answer, or cannot run commands");
        } else if (x->said.unknown) {
                call_fail(c, 409, "no_command", "its agent has gone away");
        } else if (x->said.error.n) {
                call_fail(c, 409, "no_command", "%s", buf_z(&x->said.error));
        } else {
                call_io(c, reply);
        }
}

static void ask(struct server *s, struct call *c)
{
        struct exec *x = c->state;
        struct streams_question q = {.request = x->request, .member = x->member};
        struct core_request r;
        struct core_job job;

        if (core_request_get(s->core, x->request, &r) != 0 || !call_may(c, r.owner) ||
            core_job_get(s->core, x->request, x->member, &job) != 0) {
                call_fail(c, 404, "not_found", "there is no job " STR_FMT " that has not ended",
                          STR_ARG(c->param[0]));
                return;
        }
        if (!call_may_run_as(c, r.owner)) {
                call_fail(c, 403, "forbidden", "only its owner and admins run commands beside a job");
                return;
        }
        if (!job.agent) {
                call_fail(c, 409, "no_command", "the job does not run: it is %s", job_state_name(job.state));
                return;
        }
        q.agent = job.agent;
        q.fence = x->fence = job.fence;
        x->number = streams_exec(s, c->who, &q, x->words, x->count, &x->exec);
        if (!x->number) {
                call_fail(c, 409, "no_command", "its agent is not connected, or too much is asked of agents");
                return;
        }
        x->until_ms = clock_boot_ms() + ANSWER_MS;
        park(s, c);
}

/* False: the call has ended. */
static bool read_words(struct call *c, struct exec *x)
{
        json_t *doc = call_json(c), *word;
        const json_t *argv = json_object_get(doc, "argv");
        size_t i, bytes = 0;

        if (!doc)
                return false;
        x->words = mem_array(NULL, json_array_size(argv) + 1, sizeof(*x->words));
        json_array_foreach (argv, i, word) {
                struct str text = str_make(json_string_value(word), json_string_length(word));

                if (x->count == WORDS_MAX || !json_is_string(word) || memchr(text.p, 0, text.n))
                        break;
                bytes += text.n;
                x->words[x->count++] = arena_str(&c->arena, text);
        }
        if (x->count == 0 || x->count < json_array_size(argv) || bytes > WORDS_BYTES) {
                json_decref(doc);
                call_fail(c, 400, "bad_request",
                          "argv must be a list of 1 to %d texts without NUL, of 1 MiB together", WORDS_MAX);
                return false;
        }
        json_decref(doc);
        return true;
}

void api_job_exec(struct server *s, struct call *c)
{
        struct exec *x = call_state(c, sizeof(*x), state_free);

        (void)s;
        if (ids_parse_job(c->param[0], &x->request, &x->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else if (read_words(c, x))
                call_core(c, ask);
}
