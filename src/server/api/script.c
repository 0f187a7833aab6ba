/* GET /v1/jobs/7.42/script: what was submitted for the job to the batch system that has it now; its agent is
 * asked. */
#include "base/clock.h"
#include "server/api/route.h"
#include "server/ids.h"
#include "server/scripts.h"
#include "server/waits.h"

#define ANSWER_MS 10000

struct script {
        uint64_t request, number;
        uint32_t member;
        int64_t until_ms; /* boot clock */
};

static void reply(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void park(struct server *s, struct call *c);

static void woken(struct server *s, struct call *c)
{
        struct script *x = c->state;
        BUF_CLEANUP struct buf text = {0}, error = {0};
        struct json j = {.out = &c->out};

        if (!scripts_take(s, x->number, &text, &error)) {
                park(s, c);
                return;
        }
        if (error.n) {
                call_fail(c, 409, "no_script", "%s", buf_z(&error));
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "request", (int64_t)x->request);
        json_kint(&j, "member", x->member);
        json_kstr(&j, "script", buf_view(&text));
        json_close(&j, '}');
        call_front(c, reply);
}

/* Until it changes, which may be for another reason, or the time is up. */
static void park(struct server *s, struct call *c)
{
        struct script *x = c->state;
        int64_t left = x->until_ms - clock_boot_ms();
        struct id id = {.request = x->request};
        const struct ids ids = {.items = &id, .count = 1};

        if (left > 0) {
                waits_park(s, c, &ids, left, woken);
                return;
        }
        scripts_forget(s, x->number);
        call_fail(c, 504, "no_answer", "its agent does not answer");
}

static void ask(struct server *s, struct call *c)
{
        struct script *x = c->state;
        struct core_request r;
        struct core_job job;

        if (core_request_get(s->core, x->request, &r) != 0 || !call_may(c, r.owner) ||
            core_job_get(s->core, x->request, x->member, &job) != 0) {
                call_fail(c, 404, "not_found", "there is no job " STR_FMT " in the queue",
                          STR_ARG(c->param[0]));
                return;
        }
        x->number = job.agent ? scripts_ask(s, job.agent, x->request, x->member, job.fence) : 0;
        if (!x->number) {
                call_fail(c, 409, "no_script",
                          job.agent ? "its agent %s is not connected" : "the job is at no place now",
                          job.agent);
                return;
        }
        x->until_ms = clock_boot_ms() + ANSWER_MS;
        park(s, c);
}

void api_job_script(struct server *s, struct call *c)
{
        struct script *x = call_state(c, sizeof(*x), NULL);

        (void)s;
        if (ids_parse_job(c->param[0], &x->request, &x->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else
                call_core(c, ask);
}
