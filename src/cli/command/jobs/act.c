/* hold, release, rm, suspend, resume, vacate, requeue, signal, prio and edit: all are POST /v1/actions. */
#include <stdio.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/signals.h"
#include "classad/expr.h"
#include "cli/client/api.h"
#include "cli/client/edit.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

#define ASK_ABOVE 1000

struct action {
        const char *name, *done; /* name: in the API; done: for people */
        const char *reason;
        const struct options *options; /* --constraint, --owner, --name, --yes, if the command has them */
        const char *const *ids;
        size_t id_count;
        bool has_value;
        int64_t value;
        struct str more;   /* additional members of the body */
        uint64_t *counted; /* sums the jobs of several actions without printing; NULL: prints */
        bool confirmed;    /* the user was asked before another action on the same jobs */
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

static const char *option_if_known(const struct action *a, const char *option)
{
        return options_row(a->options->command, str_of(option)) ? options_text(a->options, option) : NULL;
}

/* A word that begins with a letter may be a name, so the error says how names are given. */
static int check_words(const struct action *a)
{
        if (!options_row(a->options->command, STR("name")))
                return 0;
        for (size_t i = 0; i < a->id_count; i++) {
                char c = a->ids[i][0];

                if (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && strcasecmp(a->ids[i], "all") != 0)
                        return cli_error(CLI_USAGE, "\"%s\" is not an id: jobs of that name are --name '%s'",
                                         a->ids[i], a->ids[i]);
        }
        return 0;
}

static void add_clause(struct buf *out, const char *before, struct str text, const char *after)
{
        buf_addz(out, out->n ? " && " : "");
        buf_addz(out, before);
        buf_str(out, text);
        buf_addz(out, after);
}

/* Converts a shell pattern to a regular expression in a ClassAd string. */
static void add_pattern(struct buf *out, const char *glob)
{
        for (; *glob; glob++) {
                if (*glob == '*')
                        buf_addz(out, ".*");
                else if (*glob == '?')
                        buf_char(out, '.');
                else if (*glob == '"')
                        buf_addz(out, "\\\"");
                else if (strchr("\\^$.|()[]{}+", *glob))
                        buf_printf(out, *glob == '\\' ? "\\\\\\%c" : "\\\\%c", *glob);
                else
                        buf_char(out, *glob);
        }
}

/* Builds the constraint from the options; empty when none was given. */
static int build_constraint(const struct action *a, struct buf *out)
{
        const char *constraint = option_if_known(a, "constraint"), *owner = option_if_known(a, "owner"),
                   *name = option_if_known(a, "name");
        struct buf text BUF_CLEANUP = {0};

        if (owner && strpbrk(owner, "\"\\"))
                return cli_error(CLI_USAGE, "\"%s\" is not a user's name", owner);
        if (constraint) {
                expr_text_from_old(str_of(constraint), &text);
                add_clause(out, owner || name ? "(" : "", buf_view(&text), owner || name ? ")" : "");
        }
        if (owner)
                add_clause(out, strchr(owner, '@') ? "User == \"" : "Owner == \"", str_of(owner), "\"");
        buf_reset(&text);
        if (name) {
                add_pattern(&text, name);
                add_clause(out, "regexp(\"^", buf_view(&text), "$\", JobBatchName)");
        }
        return 0;
}

/* On a terminal, asks the user to confirm an action on many jobs. Returns whether to continue. */
static bool confirm(struct cli *cli, const struct action *a, struct str ids, struct str constraint)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct view job;
        size_t at = 0, n = 0;
        char line[16];

        if (options_flag(a->options, "yes") || isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
                return true;
        buf_printf(&path, "/v1/jobs?limit=%d", ASK_ABOVE + 1);
        api_query(&path, "id", ids);
        api_query(&path, "constraint", constraint);
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return true; /* the action itself reports the error */
        while (view_next(view_get(answer.root, "jobs"), &at, &job))
                n++;
        if (n <= ASK_ABOVE)
                return true;
        fprintf(stderr, "More than %d jobs would be %s. Continue? [y/N] ", ASK_ABOVE, a->done);
        return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static void build_body(const struct action *a, struct str ids, struct str constraint, struct buf *body)
{
        struct json j = {.out = body};
        struct str id;

        json_open(&j, '{');
        json_kstrz(&j, "action", a->name);
        json_key(&j, "ids");
        json_open(&j, '[');
        while (str_cut(&ids, ',', &id))
                json_str(&j, id);
        json_close(&j, ']');
        if (constraint.n)
                json_kstr(&j, "constraint", constraint);
        if (a->reason)
                json_kstrz(&j, "reason", a->reason);
        if (a->has_value)
                json_kint(&j, "value", a->value);
        if (a->more.n) {
                buf_char(body, ',');
                buf_str(body, a->more);
        }
        json_close(&j, '}');
}

static void print_done(struct buf *out, uint64_t count, const char *done)
{
        human_count(out, (int64_t)count, "job ", "jobs ");
        buf_addz(out, done);
        buf_char(out, '\n');
}

/* Prints the jobs that an edit did not change. Returns whether there are any. */
static bool note_not_waiting(const struct cli *cli, struct view list)
{
        struct view id;
        size_t at = 0;

        while (view_next(list, &at, &id)) {
                struct buf text BUF_CLEANUP = {0};

                view_text(id, &text);
                if (!cli->json)
                        cli_error(0,
                                  "%s: neither idle nor held, and not changed; `drover vacate` or `drover "
                                  "hold` it "
                                  "first",
                                  buf_z(&text));
        }
        return at > 0;
}

static int act_on_jobs(struct cli *cli, const struct action *a)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, ids BUF_CLEANUP = {0}, out BUF_CLEANUP = {0},
                        constraint BUF_CLEANUP = {0};
        struct view errors;
        int64_t affected;
        int code;

        code = build_constraint(a, &constraint);
        if (code == 0)
                code = check_words(a);
        if (code == 0)
                code = jobs_ids(a->ids, a->id_count, &ids);
        if (code != 0)
                return code;
        if (ids.n == 0 && constraint.n == 0)
                return cli_error(CLI_USAGE,
                                 "which jobs? Give ids, --owner USER, --name NAME or --constraint EXPR");
        if (options_row(a->options->command, STR("yes")) && !a->confirmed &&
            !confirm(cli, a, buf_view(&ids), buf_view(&constraint)))
                return cli_error(CLI_FAILED, "nothing was done");
        build_body(a, buf_view(&ids), buf_view(&constraint), &body);
        code = api_post(cli, "/v1/actions", buf_view(&body), &answer);
        if (code != 0)
                return code;
        errors = view_get(answer.root, "errors");
        affected = view_integer(view_get(answer.root, "affected"), 0);
        if (a->counted) {
                *a->counted += (uint64_t)affected;
        } else if (cli->json) {
                buf_str(&out, answer.root.text);
                buf_char(&out, '\n');
        } else {
                print_done(&out, (uint64_t)affected, a->done);
        }
        cli_print(&out);
        if (!cli->json)
                print_errors(errors);
        if (view_next(errors, &(size_t){0}, &(struct view){STR_NONE}))
                return CLI_FAILED;
        if (note_not_waiting(cli, view_get(answer.root, "not_waiting")))
                return CLI_FAILED;
        if (affected == 0 && !a->counted && !cli->json && ids.n && constraint.n == 0)
                cli_note("none of them is in a state in which it can be %s: drover queue %s shows them",
                         a->done, buf_z(&ids));
        return CLI_OK;
}

static int act_with_reason(struct cli *cli, const struct options *o, const char *name, const char *done)
{
        return act_on_jobs(cli, &(struct action){.name = name,
                                                 .done = done,
                                                 .reason = options_text(o, "reason"),
                                                 .options = o,
                                                 .ids = o->words,
                                                 .id_count = o->word_count});
}

int cmd_hold(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "hold", "held");
}

int cmd_release(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "release", "released");
}

int cmd_checkpoint(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "checkpoint", "asked for a checkpoint");
}

int cmd_rm(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "remove", "removed");
}

int cmd_suspend(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "suspend", "suspended");
}

int cmd_resume(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "resume", "resumed");
}

int cmd_vacate(struct cli *cli, const struct options *o)
{
        return act_with_reason(cli, o, "vacate", "vacated");
}

int cmd_signal(struct cli *cli, const struct options *o)
{
        const char *text = o->words[o->word_count - 1];
        struct action a = {.name = "signal",
                           .done = "signalled",
                           .options = o,
                           .ids = o->words,
                           .id_count = o->word_count - 1,
                           .has_value = true,
                           .value = signal_number(str_of(text))};

        if (a.value == 0)
                return cli_error(CLI_USAGE, "\"%s\" is not a signal: drover signal ID... USR1", text);
        return act_on_jobs(cli, &a);
}

int cmd_prio(struct cli *cli, const struct options *o)
{
        const char *text = o->words[o->word_count - 1];
        struct action a = {.name = "priority",
                           .done = "changed",
                           .options = o,
                           .ids = o->words,
                           .id_count = o->word_count - 1,
                           .has_value = true};

        if (str_to_i64(str_of(text), &a.value) != 0 || a.value > INT32_MAX || a.value < INT32_MIN)
                return cli_error(CLI_USAGE,
                                 "the priority \"%s\" is not a whole number: drover prio ID... VALUE", text);
        return act_on_jobs(cli, &a);
}

int cmd_requeue(struct cli *cli, const struct options *o)
{
        uint64_t count = 0;
        struct action a = {.name = "vacate",
                           .done = "back in the queue",
                           .options = o,
                           .ids = o->words,
                           .id_count = o->word_count,
                           .counted = &count};
        struct buf out BUF_CLEANUP = {0};
        int code = act_on_jobs(cli, &a);

        a.name = "release";
        a.confirmed = true;
        if (code == 0)
                code = act_on_jobs(cli, &a);
        if (code != 0)
                return code;
        if (cli->json)
                buf_printf(&out, "{\"affected\":%llu}\n", (unsigned long long)count);
        else
                print_done(&out, count, a.done);
        cli_print(&out);
        if (count == 0)
                cli_note("none of them runs or is held; drover resubmit submits again what has ended");
        return count ? CLI_OK : CLI_FAILED;
}

int cmd_edit(struct cli *cli, const struct options *o)
{
        const char **words = mem_array(NULL, o->word_count + 1, sizeof(*words));
        struct edit e = {0};
        struct err err = {""};
        struct action a = {.name = "edit", .done = "changed", .options = o, .ids = words};
        size_t changes = 0;
        int code = 0;

        for (size_t i = 0; i < o->word_count; i++)
                if (!edit_is_assignment(o->words[i]))
                        words[a.id_count++] = o->words[i];
        for (size_t i = 0; i < o->word_count; i++)
                if (edit_is_assignment(o->words[i]))
                        words[a.id_count + changes++] = o->words[i];
        if (changes == 0)
                code = cli_error(CLI_USAGE, "what is to be changed? drover edit ID... NAME=VALUE...");
        else if (edit_read(words + a.id_count, changes, EDIT_JOBS, &e, &err) != 0)
                code = cli_error(CLI_USAGE, "%s", err.text);
        a.more = buf_view(&e.members);
        if (code == 0 && e.count)
                code = act_on_jobs(cli, &a);
        if (code == 0 && e.has_priority) {
                a = (struct action){.name = "priority",
                                    .done = "given another priority",
                                    .options = o,
                                    .ids = words,
                                    .id_count = a.id_count,
                                    .has_value = true,
                                    .value = e.priority};
                code = act_on_jobs(cli, &a);
        }
        edit_deinit(&e);
        free(words);
        return code;
}
