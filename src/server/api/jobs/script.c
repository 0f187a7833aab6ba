/* GET /v1/jobs/7.42/script: the script that was submitted for the job to the batch system that has it, or
 * had it last. The job's agent is asked for it. */
#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/calls/waits.h"
#include "server/files/scripts.h"
#include "server/loop/ids.h"

#define ANSWER_MS 10000

struct script {
        uint64_t request, number;
        uint32_t member;
        int64_t until_ms; /* boot clock */
        struct row row;   /* from history */
};

static void reply_script(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void script_park(struct server *s, struct call *c);

static void script_woken(struct server *s, struct call *c)
{
        struct script *x = c->state;
        BUF_CLEANUP struct buf text = {0}, error = {0};
        struct json j = {.out = &c->out};

        if (!scripts_take(s, x->number, &text, &error)) {
                script_park(s, c);
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
        call_io(c, reply_script);
}

/* Parks the call until the job changes or the time is up. */
static void script_park(struct server *s, struct call *c)
{
        struct script *x = c->state;
        int64_t left = x->until_ms - clock_boot_ms();
        struct id id = {.request = x->request};
        const struct ids ids = {.items = &id, .count = 1};
        uint64_t number = x->number;

        if (left > 0) {
                if (!waits_park(s, c, &ids, left, script_woken))
                        scripts_forget(s, number);
                return;
        }
        scripts_forget(s, number);
        call_fail(c, 504, "no_answer", "its agent does not answer");
}

static void script_ask_agent(struct server *s, struct call *c, const char *agent, uint32_t fence)
{
        struct script *x = c->state;

        x->number = scripts_ask(s, c->who, agent, x->request, x->member, fence);
        if (!x->number) {
                call_fail(c, 409, "no_script",
                          "its agent %s is not connected, or too many calls of yours ask for scripts", agent);
                return;
        }
        x->until_ms = clock_boot_ms() + ANSWER_MS;
        script_park(s, c);
}

/* ---- a job that is only in history: its last agent is asked */

static void script_not_found(struct call *c)
{
        call_fail(c, 404, "not_found", "there is no job " STR_FMT, STR_ARG(c->param[0]));
}

static void script_ask_past(struct server *s, struct call *c)
{
        struct script *x = c->state;
        BUF_CLEANUP struct buf agent = {0};

        buf_str(&agent, x->row.agent);
        if (agent.n == 0)
                call_fail(c, 409, "no_script", "the job has never been at a place");
        else
                script_ask_agent(s, c, buf_z(&agent), 0);
}

static void script_to_core(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, script_ask_past);
}

static void script_read_past(struct server *s, struct call *c)
{
        struct script *x = c->state;

        x->row.request = x->request;
        x->row.member = x->member;
        if (!jobs_fill_past(s, &c->arena, &x->row, false, STR_NONE) || !call_may(c, x->row.owner))
                script_not_found(c);
        else
                call_io(c, script_to_core);
}

static void to_reader(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, script_read_past);
}

/* ---- the request */

static void ask_for_script(struct server *s, struct call *c)
{
        struct script *x = c->state;
        struct core_request r;
        struct core_job job;
        bool known = core_request_get(s->core, x->request, &r) == 0;

        if (known && (!call_may(c, r.owner) || core_job_get(s->core, x->request, x->member, &job) != 0))
                script_not_found(c);
        else if (!known || job.state == JOB_COMPLETED || job.state == JOB_REMOVED)
                call_io(c, to_reader);
        else if (job.agent)
                script_ask_agent(s, c, job.agent, job.fence);
        else if (job.last_agent) /* an agent keeps the scripts of ended and held jobs too */
                script_ask_agent(s, c, job.last_agent, 0);
        else
                call_fail(c, 409, "no_script", "the job has not been at a place yet");
}

void api_job_script(struct server *s, struct call *c)
{
        struct script *x = call_state(c, sizeof(*x), NULL);

        (void)s;
        if (ids_parse_job(c->param[0], &x->request, &x->member) != 0)
                call_fail(c, 404, "not_found", "'" STR_FMT "' is not a job: write 7.42",
                          STR_ARG(c->param[0]));
        else
                call_core(c, ask_for_script);
}
