/* hold, release, rm, suspend, resume, vacate, signal and prio: one call of the API, POST /v1/actions. */
#include "base/json.h"
#include "base/signals.h"
#include "classad/expr.h"
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

struct action {
        const char *name, *done; /* as the API calls it; as people read it */
        const char *reason, *constraint;
        const char *const *ids;
        size_t id_count;
        bool has_value;
        int64_t value;
};

static void print_errors(struct view errors)
{
        struct view item;
        size_t at = 0;

        while (view_next(errors, &at, &item)) {
                struct buf text BUF_CLEANUP = {0};

                view_text(view_get(item, "id"), &text);
                buf_addz(&text, ": ");
                view_text(view_get(item, "message"), &text);
                cli_error(0, "%s", buf_z(&text));
        }
}

static void build_body(const struct action *a, struct buf *body)
{
        struct json j = {.out = body};

        json_open(&j, '{');
        json_kstrz(&j, "action", a->name);
        json_key(&j, "ids");
        json_open(&j, '[');
        for (size_t i = 0; i < a->id_count; i++)
                json_strz(&j, a->ids[i]);
        json_close(&j, ']');
        if (a->constraint) {
                struct buf text BUF_CLEANUP = {0};

                expr_text_from_old(str_of(a->constraint), &text);
                json_kstr(&j, "constraint", buf_view(&text));
        }
        if (a->reason)
                json_kstrz(&j, "reason", a->reason);
        if (a->has_value)
                json_kint(&j, "value", a->value);
        json_close(&j, '}');
}

static int act(struct cli *cli, const struct action *a)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, checked BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct view errors;
        int64_t affected;
        int code;

        if (a->id_count == 0 && !a->constraint)
                return cli_error(CLI_USAGE, "which jobs? Give ids, or --constraint EXPR");
        code = jobs_ids(a->ids, a->id_count, &checked);
        if (code != 0)
                return code;
        build_body(a, &body);
        code = api_post(cli, "/v1/actions", buf_view(&body), &answer);
        if (code != 0)
                return code;
        errors = view_get(answer.root, "errors");
        affected = view_integer(view_get(answer.root, "affected"), 0);
        if (cli->json) {
                buf_str(&out, answer.root.text);
        } else {
                human_count(&out, affected, "job ", "jobs ");
                buf_addz(&out, a->done);
        }
        buf_char(&out, '\n');
        cli_print(&out);
        if (!cli->json)
                print_errors(errors);
        return view_next(errors, &(size_t){0}, &(struct view){STR_NONE}) ? CLI_FAILED : CLI_OK;
}

static int simple(struct cli *cli, const struct options *o, const char *name, const char *done)
{
        return act(cli, &(struct action){.name = name,
                                         .done = done,
                                         .reason = options_text(o, "reason"),
                                         .constraint = options_text(o, "constraint"),
                                         .ids = o->words,
                                         .id_count = o->word_count});
}

int cmd_hold(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "hold", "held");
}

int cmd_release(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "release", "released");
}

int cmd_checkpoint(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "checkpoint", "asked for a checkpoint");
}

int cmd_rm(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "remove", "removed");
}

int cmd_suspend(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "suspend", "suspended");
}

int cmd_resume(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "resume", "resumed");
}

int cmd_vacate(struct cli *cli, const struct options *o)
{
        return simple(cli, o, "vacate", "vacated");
}

int cmd_signal(struct cli *cli, const struct options *o)
{
        const char *text = o->words[o->word_count - 1];
        struct action a = {.name = "signal",
                           .done = "signalled",
                           .constraint = options_text(o, "constraint"),
                           .ids = o->words,
                           .id_count = o->word_count - 1,
                           .has_value = true,
                           .value = signal_number(str_of(text))};

        if (a.value == 0)
                return cli_error(CLI_USAGE, "\"%s\" is no signal: drover signal ID... USR1", text);
        return act(cli, &a);
}

int cmd_prio(struct cli *cli, const struct options *o)
{
        const char *text = o->words[o->word_count - 1];
        struct action a = {.name = "priority",
                           .done = "changed",
                           .constraint = options_text(o, "constraint"),
                           .ids = o->words,
                           .id_count = o->word_count - 1,
                           .has_value = true};

        if (str_to_i64(str_of(text), &a.value) != 0 || a.value > INT32_MAX || a.value < INT32_MIN)
                return cli_error(CLI_USAGE, "the priority \"%s\" is no whole number: drover prio ID... VALUE",
                                 text);
        return act(cli, &a);
}
