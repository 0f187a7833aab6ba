#include "cli/client/agent.h"

#include "base/format/json.h"
#include "base/format/url.h"

int agent_post(struct cli *cli, const char *name, const char *verb, struct str body, struct api_answer *ret,
               struct err *err)
{
        struct buf path BUF_CLEANUP = {0};

        buf_addz(&path, "/v1/agents/");
        url_escape(&path, str_of(name));
        buf_printf(&path, "/%s", verb);
        return api_call(cli, &(struct api_request){.method = "POST", .path = buf_z(&path), .body = body}, ret,
                        err);
}

int agent_drain(struct cli *cli, const char *name, const char *reason, bool drains, struct api_answer *ret,
                struct err *err)
{
        struct buf body BUF_CLEANUP = {0};
        struct json j = {.out = &body};

        json_open(&j, '{');
        if (reason)
                json_kstrz(&j, "reason", reason);
        json_close(&j, '}');
        return agent_post(cli, name, drains ? "drain" : "resume", drains ? buf_view(&body) : STR_NONE, ret,
                          err);
}

void agent_check_queue(struct cli *cli, const char *name)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view agent, queue;
        bool some = false;
        size_t at = 0, inner;

        if (api_call(cli, &(struct api_request){.path = "/v1/agents"}, &answer, NULL) != 0)
                return;
        while (view_next(view_get(answer.root, "agents"), &at, &agent))
                for (inner = 0; view_next(view_get(agent, "queues"), &inner, &queue);) {
                        if (view_is(view_get(queue, "name"), name))
                                return;
                        some = true;
                }
        if (some)
                cli_note("no agent has a queue \"%s\" now: `drover agents` lists those that there are", name);
}
