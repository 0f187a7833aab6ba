/* Answers requests for the script of a batch job as it was submitted. */
#include "agent/session/script.h"

#include <errno.h>
#include <string.h>

#include "agent/outbox/outbox.h"

/* Finds the script of an attempt that is over, in the runner that has kept it. */
static int kept_script(const struct agent *a, struct run_id id, struct buf *out)
{
        int r = -ENOENT;

        for (size_t i = 0; i < a->backend_count && r < 0; i++) {
                struct runner *runner = a->backends[i]->runner;

                if (runner && runner->kind->script)
                        r = runner->kind->script(runner, id, out);
        }
        return r;
}

void session_script(struct agent *a, const Drover__ScriptGet *m)
{
        const struct attempt *at = agent_find(a, m->request, m->member, m->fence);
        struct run_id id = at ? attempt_task(at) : (struct run_id){m->request, m->member, m->fence, 0, 0};
        struct runner *r = at ? at->q->backend->runner : NULL;
        Drover__Script script = DROVER__SCRIPT__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        BUF_CLEANUP struct buf text = {0}, error = {0};
        int n = r && !r->kind->script ? 0 : r ? r->kind->script(r, id, &text) : kept_script(a, id, &text);

        if (r && !r->kind->script)
                buf_printf(&error, "the queue %s submits no script: its runner is %s", at->q->config->name,
                           at->q->config->runner);
        else if (n == -ENOENT)
                buf_addz(&error, at ? "nothing is submitted for the job at this moment"
                                    : "its agent has no script of the job, or keeps it no more");
        else if (n < 0)
                buf_printf(&error, "its script cannot be read: %s", strerror(-n));
        script.serial = m->serial;
        script.text = (char *)buf_z(&text);
        script.error = (char *)buf_z(&error);
        to.kind_case = DROVER__TO_SERVER__KIND_SCRIPT;
        to.script = &script;
        outbox_send(a, &to);
}
