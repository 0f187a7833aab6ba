#include "classad/expr.h"
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

#define HISTORY_ROWS 100

static const struct table_column columns[] = {{"ID", true, false},
                                              {"OWNER", false, true},
                                              {"ENDED", false, false},
                                              {"RAN", true, false},
                                              {"STATE", false, false, .spare = true},
                                              {"RESULT", false, false},
                                              {"STARTS", true, false, .spare = true},
                                              {"AGENT", false, true},
                                              {"COMMAND", false, true},
                                              {"QUEUE", false, true, true},
                                              {"SUBMITTED", false, false, true},
                                              {"STARTED", false, false, true},
                                              {"EXIT", true, false, true},
                                              {"SIGNAL", true, false, true}};

struct listing {
        struct cli *cli;
        struct table table;
};

static int history_add_job(void *arg, struct view job)
{
        struct listing *l = arg;
        struct table *t = &l->table;
        struct buf text BUF_CLEANUP = {0};
        struct job_row j;
        int64_t started, ended;

        job_read(job, &j);
        started = view_integer(j.started_ms, 0);
        ended = view_integer(j.ended_ms, 0);
        table_view(t, j.id);
        table_view(t, j.owner);
        table_time(t, ended, l->cli->now_ms);
        if (started > 0)
                table_duration(t, ended - started);
        else
                table_text(t, STR(""));
        job_add_state(t, &j);
        job_outcome(&j, &text);
        if (text.n == 0 && view_is(j.state, "removed"))
                buf_addz(&text, "removed");
        table_text(t, buf_view(&text));
        if (view_integer(j.exit_code, 0) != 0 || view_integer(j.exit_signal, 0) != 0)
                table_paint(t, TABLE_RED);
        table_view(t, j.starts);
        table_view(t, j.agent);
        buf_reset(&text);
        job_command(&j, &text);
        table_text(t, buf_view(&text));
        table_view(t, j.queue);
        table_time(t, view_integer(j.submitted_ms, 0), l->cli->now_ms);
        table_time(t, started, l->cli->now_ms);
        table_view(t, j.exit_code);
        table_view(t, j.exit_signal);
        return 0;
}

int cmd_history(struct cli *cli, const struct options *o)
{
        struct buf path BUF_CLEANUP = {0}, ids BUF_CLEANUP = {0}, constraint BUF_CLEANUP = {0};
        int64_t limit = options_number(o, "limit", HISTORY_ROWS), since_ms = 0;
        struct listing l = {.cli = cli};
        int code = jobs_ids(o->words, o->word_count, &ids);

        if (code == 0)
                code = cli_table(cli, &l.table, columns, sizeof(columns) / sizeof(columns[0]));
        if (code == 0)
                code = cli_time(o, "since", &since_ms);
        if (code == 0 && limit < 0)
                code = cli_error(CLI_USAGE, "--limit takes a number of rows");
        if (code != 0)
                return code;
        buf_addz(&path, "/v1/history");
        api_query(&path, "id", buf_view(&ids));
        api_query(&path, "owner", str_of(options_text(o, "owner")));
        if (since_ms) /* a job that was removed has no CompletionDate; whole seconds, rounded down */
                buf_printf(&constraint, "EnteredCurrentStatus >= %lld%s", (long long)(since_ms / 1000),
                           options_text(o, "constraint") ? " && (" : "");
        expr_text_from_old(str_of(options_text(o, "constraint")), &constraint);
        if (since_ms && options_text(o, "constraint"))
                buf_char(&constraint, ')');
        api_query(&path, "constraint", buf_view(&constraint));
        code = api_list(cli, &(struct api_list){.path = &path,
                                                .array = "jobs",
                                                .cursor = "before",
                                                .limit = limit,
                                                .each = history_add_job,
                                                .arg = &l});
        if (code == 0 && !cli->json) {
                struct buf out BUF_CLEANUP = {0};

                if (table_rows(&l.table) > 0 || !cli_plain(cli))
                        cli_print_table(cli, &l.table);
                else
                        buf_addz(&out, "no finished jobs\n");
                cli_print(&out);
        }
        table_deinit(&l.table);
        return code;
}
