#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/cost.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"AGENT", false, true},
                                              {"QUEUE", false, false},
                                              {"VERDICT", false, false},
                                              {"REASON", false, true, false, true}};

static enum table_colour verdict_colour(struct view verdict)
{
        if (view_is(verdict, "fits"))
                return TABLE_GREEN;
        return view_is(verdict, "busy") ? TABLE_YELLOW : TABLE_RED;
}

static void add_agent(struct table *t, struct view agent)
{
        struct view verdict = view_get(agent, "verdict"), text = view_get(agent, "text");
        struct buf reason BUF_CLEANUP = {0};

        table_view(t, view_get(agent, "name"));
        table_view(t, view_get(agent, "queue"));
        table_view(t, verdict);
        table_paint(t, verdict_colour(verdict));
        view_text(text, &reason);
        if (reason.n == 0 && view_there(view_get(agent, "clause"))) {
                view_text(view_get(agent, "clause"), &reason);
                buf_addz(&reason, " is ");
                view_text(view_get(agent, "value"), &reason);
        }
        table_text(t, buf_view(&reason));
}

static void add_eta(struct cli *cli, struct view root, struct buf *out)
{
        int64_t start_ms = view_integer(view_get(root, "eta_start_ms"), 0);
        int64_t end_ms = view_integer(view_get(root, "eta_end_ms"), 0);
        int64_t most_ms = view_integer(view_get(root, "eta_end_most_ms"), 0);
        bool begun = job_has_begun(view_get(root, "state"));

        if (start_ms == 0)
                return;
        buf_addz(out, begun ? "It started " : "It is expected to start ");
        if (begun)
                human_time(out, start_ms, cli->now_ms);
        else
                cost_time(out, start_ms, cli->now_ms);
        if (end_ms) {
                buf_addz(out, begun ? " and is expected to end " : " and to end ");
                cost_end(out, end_ms, most_ms, cli->now_ms);
        } else {
                buf_addz(out, ", and how long it takes is not known yet");
        }
        buf_addz(out, ".\n");
        cost_error_line(out, view_get(root, "eta_error"));
}

/* Chooses the job to explain: in a request with several jobs the first that waits, with a sentence that
 * says so. */
static int choose_job(struct cli *cli, const char *word, struct buf *id, struct buf *out)
{
        static const char *const states[] = {"idle", "held"};
        struct api_answer request API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        int64_t jobs;
        int code;

        if (word[strspn(word, "0123456789")])
                return jobs_one(cli, word, id);
        buf_printf(&path, "/v1/requests/%s", word);
        code = api_get(cli, buf_z(&path), &request);
        jobs = code == 0 ? view_integer(view_get(request.root, "jobs"), 0) : 0;
        for (unsigned s = 0; s < sizeof(states) / sizeof(states[0]) && jobs > 1; s++) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct view job;
                size_t at = 0;

                buf_reset(&path);
                buf_printf(&path, "/v1/jobs?id=%s&state=%s&limit=1", word, states[s]);
                code = api_get(cli, buf_z(&path), &answer);
                if (code != 0)
                        return code;
                if (!view_next(view_get(answer.root, "jobs"), &at, &job))
                        continue;
                view_text(view_get(job, "id"), id);
                buf_printf(out, "Of the %lld jobs of the request %s is the first that is %s.\n",
                           (long long)jobs, buf_z(id), states[s]);
                return 0;
        }
        return code != 0 ? code : jobs_one(cli, word, id);
}

int cmd_why(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0}, id BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view list, item;
        size_t at = 0;
        int code;

        table_init(&t, columns, 4);
        code = choose_job(cli, o->words[0], &id, &out);
        if (code == 0)
                code = jobs_get(cli, buf_z(&id), "why", &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        list = view_get(answer.root, "text");
        while (view_next(list, &at, &item)) {
                view_safe(item, &out);
                buf_char(&out, '\n');
        }
        add_eta(cli, answer.root, &out);
        at = 0;
        list = view_get(answer.root, "agents");
        cost_unsized_line(&out, list);
        while (view_next(list, &at, &item))
                add_agent(&t, item);
        if (table_rows(&t) > 0 && out.n)
                buf_char(&out, '\n');
        cli_print_sentences(cli, &out);
        if (table_rows(&t) > 0)
                cli_print_table(cli, &t);
        cost_print_table(cli, view_get(answer.root, "agents"), false);
        return CLI_OK;
}
