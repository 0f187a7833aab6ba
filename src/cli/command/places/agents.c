#include "base/format/json.h"
#include "cli/client/agent.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"NAME", false, true},
                                              {"STATE", false, false},
                                              {"QUEUE", false, false},
                                              {"CPUS", true, false},
                                              {"MEMORY", true, false},
                                              {"DISK", true, false, .spare = true},
                                              {"RUN", true, false},
                                              {"DONE", true, false, .spare = true},
                                              {"SEEN", true, false},
                                              {"NOTE", false, true, false, true},
                                              {"LIMITS", false, true, true, true}};

static void free_of_total(struct table *t, struct view queue, const char *key, int64_t unit)
{
        struct view is_free = view_get(view_get(queue, "free"), key),
                    total = view_get(view_get(queue, "total"), key);
        struct buf text BUF_CLEANUP = {0};

        if (view_integer(total, 0) == 0) {
                table_text(t, STR("-"));
                return;
        }
        if (unit == 0) {
                view_text(is_free, &text);
                buf_char(&text, '/');
                view_text(total, &text);
        } else {
                human_bytes(&text, view_integer(is_free, 0) * unit);
                buf_char(&text, '/');
                human_bytes(&text, view_integer(total, 0) * unit);
        }
        table_text(t, buf_view(&text));
}

/* Returns whether the queue is for placement jobs, which take no processor. */
static bool is_for_transfers(struct view queue)
{
        return view_is(view_get(view_get(queue, "ad"), "Runner"), "mover");
}

static void add_note(struct table *t, struct view queue, struct view why, bool away)
{
        struct buf text BUF_CLEANUP = {0};
        uint64_t running = (uint64_t)view_integer(view_get(queue, "running"), 0);

        if (view_type(why) == VIEW_STRING)
                view_text(why, &text);
        else if (away && running)
                buf_printf(&text, "not connected; its jobs run again when its lease%s ended",
                           running == 1 ? " has" : "s have");
        else if (is_for_transfers(queue))
                buf_addz(&text, "transfers only, without a processor");
        table_text(t, buf_view(&text));
}

static void add_limits(struct table *t, struct view limits)
{
        struct buf text BUF_CLEANUP = {0};
        struct view value;
        struct str key;
        size_t at = 0;

        while (view_member(limits, &at, &key, &value)) {
                if (text.n)
                        buf_addz(&text, ", ");
                buf_str(&text, key);
                buf_char(&text, ':');
                view_text(value, &text);
        }
        table_text(t, buf_view(&text));
}

static void add_queue(struct cli *cli, struct table *t, struct view agent, struct view queue)
{
        bool connected = view_is(view_get(agent, "state"), "connected");
        struct view unreachable = view_get(queue, "unreachable"), closed = view_get(queue, "closed");
        int64_t seen_ms = view_integer(view_get(agent, "seen_ms"), 0);

        table_view(t, view_get(agent, "name"));
        if (view_true(view_get(agent, "revoked")))
                table_text(t, STR("revoked"));
        else if (view_there(view_get(agent, "drained")))
                table_text(t, view_integer(view_get(agent, "running"), 0) ? STR("draining") : STR("drained"));
        else if (connected && view_there(unreachable))
                table_text(t, STR("unreachable"));
        else if (connected && view_there(closed))
                table_text(t, STR("closed"));
        else
                table_view(t, view_get(agent, "state"));
        table_paint(t,
                    connected && !view_there(unreachable) && !view_there(closed) ? TABLE_GREEN : TABLE_RED);
        table_view(t, view_get(queue, "name"));
        if (is_for_transfers(queue))
                table_text(t, STR("-"));
        else
                free_of_total(t, queue, "cpus", 0);
        free_of_total(t, queue, "memory_mib", 1 << 20);
        free_of_total(t, queue, "disk_kib", 1 << 10);
        table_view(t, view_get(queue, "running"));
        table_view(t, view_get(agent, "completed"));
        if (seen_ms > 0)
                table_duration(t, cli->now_ms - seen_ms);
        else
                table_text(t, STR(""));
        add_note(t, queue,
                 view_there(view_get(agent, "drained")) ? view_get(agent, "drained")
                 : connected && view_there(unreachable) ? unreachable
                 : connected                            ? closed
                                                        : (struct view){STR_NONE},
                 view_is(view_get(agent, "state"), "away"));
        add_limits(t, view_get(queue, "limits"));
}

static int agents_revoke(struct cli *cli, const char *name)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct err err = {""};
        int rc = agent_post(cli, name, "revoke", STR_NONE, &answer, &err);

        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        if (api_print_json(cli, &answer))
                return CLI_OK;
        cli_note("%s is refused from now on%s; what it runs is given to others when its leases have ended",
                 name, view_true(view_get(answer.root, "was_connected")) ? ", and was disconnected" : "");
        return CLI_OK;
}

static int drain(struct cli *cli, const char *name, const char *reason, bool drains)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};
        int64_t jobs;
        int rc = agent_drain(cli, name, reason, drains, &answer, &err);

        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        if (api_print_json(cli, &answer))
                return CLI_OK;
        jobs = view_integer(view_get(answer.root, "jobs"), 0);
        buf_printf(&out, "%s is given %s", name, drains ? "no more jobs" : "jobs again");
        if (drains && jobs)
                buf_printf(&out, "; %lld %s on", (long long)jobs, jobs == 1 ? "goes" : "go");
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

/* Sets the wishes of NAME or QUEUE@NAME; "none" removes all. */
static int wish(struct cli *cli, const char *name, const char *const *words, size_t count)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        const char *at = strrchr(name, '@');
        bool none = count == 1 && strcmp(words[0], "none") == 0;
        struct err err = {""};
        int rc;

        json_open(&j, '{');
        if (at) {
                json_key(&j, "queue");
                json_str(&j, str_make(name, (size_t)(at - name)));
                name = at + 1;
        }
        json_key(&j, "wishes");
        json_open(&j, '[');
        for (size_t i = 0; i < count && !none; i++)
                json_strz(&j, words[i]);
        json_close(&j, ']');
        json_close(&j, '}');
        rc = agent_post(cli, name, "wish", buf_view(&body), &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        if (api_print_json(cli, &answer))
                return CLI_OK;
        buf_printf(&out, "%s wishes for %s", name, none ? "nothing" : words[0]);
        for (size_t i = 1; i < count; i++)
                buf_printf(&out, ", then %s", words[i]);
        buf_addz(&out, ", until it ends\n");
        cli_print(&out);
        return CLI_OK;
}

static bool is_gone(struct view agent)
{
        return view_true(view_get(agent, "revoked")) && !view_is(view_get(agent, "state"), "connected") &&
               view_integer(view_get(agent, "running"), 0) == 0;
}

static void add_agent(struct cli *cli, struct table *t, struct view agent)
{
        struct view queues = view_get(agent, "queues"), queue;
        size_t at = 0, n = 0;

        for (; view_next(queues, &at, &queue); n++)
                add_queue(cli, t, agent, queue);
        if (n == 0)
                add_queue(cli, t, agent, (struct view){STR_NONE});
}

int cmd_agents(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP = {0};
        struct view agents, agent;
        size_t at = 0, hidden = 0;
        int code;

        if (o->word_count >= 3 && strcmp(o->words[0], "wish") == 0)
                return wish(cli, o->words[1], o->words + 2, o->word_count - 2);
        if (o->word_count == 2 && strcmp(o->words[0], "revoke") == 0)
                return agents_revoke(cli, o->words[1]);
        if (o->word_count == 2 && strcmp(o->words[0], "drain") == 0)
                return drain(cli, o->words[1], options_text(o, "reason"), true);
        if (o->word_count == 2 && strcmp(o->words[0], "resume") == 0)
                return drain(cli, o->words[1], NULL, false);
        if (o->word_count && strcmp(o->words[0], "show") == 0)
                return cli_error(CLI_USAGE, "drover agents has no \"show\": drover node show NAME shows one");
        if (o->word_count)
                return cli_error(CLI_USAGE, "drover agents, or drover agents drain|resume|revoke NAME, or "
                                            "drover agents wish NAME WISH...");
        code = cli_table(cli, &t, columns, sizeof(columns) / sizeof(columns[0]));
        if (code == 0)
                code = api_get(cli, "/v1/agents", &answer);
        if (code != 0)
                return code;
        if (api_print_json(cli, &answer))
                return CLI_OK;
        agents = view_get(answer.root, "agents");
        while (view_next(agents, &at, &agent)) {
                if (options_flag(o, "all") || !is_gone(agent))
                        add_agent(cli, &t, agent);
                else
                        hidden++;
        }
        if (table_rows(&t) > 0 || !cli_plain(cli))
                cli_print_table(cli, &t);
        if (hidden)
                cli_note("%llu revoked: see --all", (unsigned long long)hidden);
        else if (table_rows(&t) == 0 && cli_plain(cli))
                buf_addz(&out, "no agents: start one with `drover up`, or see drover-token(1)\n");
        cli_print(&out);
        return CLI_OK;
}
