#include <string.h>
#include <unistd.h>

#include "cli/client/one_line.h"
#include "cli/client/submit.h"
#include "cli/command/commands.h"
#include "cli/terminal/cost.h"
#include "cli/terminal/human.h"

/* the first one only if there are several parts; the credits only if a bank has said what it reserves */
enum { COLUMN_PART, COLUMN_CREDITS = 7, COLUMNS = 9 };
static const struct table_column columns[COLUMNS] = {[COLUMN_PART] = {"PART", true, false},
                                                     {"AGENT", false, true},
                                                     {"QUEUE", false, false},
                                                     {"START", true, false},
                                                     {"END", true, false},
                                                     {"MOVED", true, false},
                                                     {"ALL", true, false},
                                                     [COLUMN_CREDITS] = {"CREDITS", true, false},
                                                     {"REASON", false, true, .wraps = true}};

static void after_cell(struct table *t, int64_t at_ms, int64_t now_ms)
{
        struct buf text BUF_CLEANUP = {0};

        if (at_ms)
                human_duration(&text, at_ms - now_ms);
        table_text(t, at_ms ? buf_view(&text) : STR("-"));
}

static bool has_parts(struct view places)
{
        struct view place;
        size_t at = 0;

        while (view_next(places, &at, &place))
                if (view_integer(view_get(place, "part"), 0) > 0)
                        return true;
        return false;
}

static bool has_credits(struct view places)
{
        struct view place;
        size_t at = 0;

        while (view_next(places, &at, &place))
                if (view_there(view_get(place, "credits")))
                        return true;
        return false;
}

static void add_place(struct cli *cli, struct table *t, struct view place, bool parts, bool credits)
{
        int64_t start_ms = view_integer(view_get(place, "start_ms"), 0);
        struct buf text BUF_CLEANUP = {0};

        if (parts) {
                buf_printf(&text, "%lld", (long long)view_integer(view_get(place, "part"), 0) + 1);
                table_text(t, buf_view(&text));
                buf_reset(&text);
        }
        table_view(t, view_get(place, "name"));
        table_view(t, view_get(place, "queue"));
        after_cell(t, start_ms, cli->now_ms);
        after_cell(t, view_integer(view_get(place, "end_ms"), 0), cli->now_ms);
        if (start_ms)
                human_bytes(&text, view_integer(view_get(place, "bytes_moved"), 0));
        table_text(t, start_ms ? buf_view(&text) : STR("-"));
        buf_reset(&text);
        if (start_ms)
                cost_price(&text, view_get(place, "price"));
        table_text(t, start_ms ? buf_view(&text) : STR("-"));
        if (credits && view_there(view_get(place, "credits")))
                table_view(t, view_get(place, "credits"));
        else if (credits)
                table_text(t, STR("-"));
        table_view(t, view_get(place, "text"));
        table_paint(t, start_ms ? TABLE_GREEN : TABLE_RED);
}

static bool some_would_take_it(struct view places)
{
        struct view place;
        size_t at = 0;

        while (view_next(places, &at, &place))
                if (view_is(view_get(place, "verdict"), "fits") ||
                    view_is(view_get(place, "verdict"), "busy"))
                        return true;
        return false;
}

static void add_price(struct buf *out, struct view price, int64_t jobs)
{
        if (!view_there(price)) {
                buf_printf(out, "a price that depends on how long %s\n",
                           jobs == 1 ? "it takes" : "they take");
                return;
        }
        buf_addz(out, "a price of ");
        cost_price(out, price);
        buf_char(out, '\n');
}

/* Adds what the bank would reserve, and whether the account that pays has as much. */
static void add_credits(struct buf *out, struct view quote)
{
        int64_t credits = view_integer(view_get(quote, "credits"), 0),
                available = view_integer(view_get(quote, "available"), 0);
        struct view account = view_get(quote, "account");

        if (view_there(view_get(quote, "unquoted"))) {
                view_text(view_get(quote, "unquoted"), out);
                buf_char(out, '\n');
        }
        if (!view_there(view_get(quote, "credits")))
                return;
        buf_printf(out, "the bank would reserve %lld credits", (long long)credits);
        if (view_there(account)) {
                buf_addz(out, " of ");
                view_text(account, out);
                buf_printf(out, ", which has %lld to spend", (long long)available);
                if (available < credits)
                        buf_addz(out, ": that is not enough for all jobs at a time");
        }
        buf_char(out, '\n');
}

static void show_quote(struct cli *cli, struct view quote)
{
        struct buf out BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view places = view_get(quote, "places"), place;
        bool parts = has_parts(places), credits = has_credits(places);
        struct table_column shown[COLUMNS];
        unsigned count = 0;
        int64_t jobs;
        size_t at = 0;

        for (unsigned i = 0; i < COLUMNS; i++)
                if ((i != COLUMN_PART || parts) && (i != COLUMN_CREDITS || credits))
                        shown[count++] = columns[i];
        table_init(&t, shown, count);
        jobs = view_integer(view_get(quote, "jobs"), 0);
        human_count(&out, jobs, "job", "jobs");
        if (view_integer(view_get(quote, "start_ms"), 0) == 0) {
                if (some_would_take_it(places))
                        buf_printf(&out, ": it is unknown when %s would start\n", jobs == 1 ? "it" : "they");
                else
                        buf_printf(&out, ": no place would take %s\n", jobs == 1 ? "it" : "all of them");
        } else {
                buf_addz(&out, jobs == 1 ? ": it would start " : ": the first would start ");
                cost_time(&out, view_integer(view_get(quote, "start_ms"), 0), cli->now_ms);
                if (view_integer(view_get(quote, "end_ms"), 0)) {
                        buf_addz(&out, jobs == 1 ? " and end " : ", the last would end ");
                        cost_end(&out, view_integer(view_get(quote, "end_ms"), 0),
                                 view_integer(view_get(quote, "end_most_ms"), 0), cli->now_ms);
                } else {
                        buf_printf(&out, ", and how long %s is not known yet",
                                   jobs == 1 ? "it takes" : "they take");
                }
                buf_addz(&out, cost_unsized(places) ? "; at least " : "; ");
                human_bytes(&out, view_integer(view_get(quote, "bytes_moved"), 0));
                buf_addz(&out, " would be moved, at ");
                add_price(&out, view_get(quote, "price"), jobs);
                add_credits(&out, quote);
        }
        cost_unsized_line(&out, places);
        cost_error_line(&out, view_get(quote, "eta_error"));
        while (view_next(places, &at, &place))
                add_place(cli, &t, place, parts, credits);
        if (table_rows(&t) > 0)
                buf_char(&out, '\n');
        cli_print_sentences(cli, &out);
        if (table_rows(&t) > 0)
                cli_print_table(cli, &t);
        cost_print_table(cli, places, parts);
}

static int ask_quote(struct submit *s)
{
        struct api_answer about API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        struct err err = {""};
        int code = api_get(s->cli, "/v1/server", &about);

        if (code != 0)
                return code;
        if (ship_collect(&s->ship, &s->form, view_true(view_get(about.root, "remote_agents")), &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (ship_tell(&s->ship, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        submit_write_body(s);
        if (s->body.n > SUBMIT_BODY_MAX)
                return cli_error(CLI_FAILED, "the description is over %u MiB: ask for fewer jobs",
                                 SUBMIT_BODY_MAX >> 20);
        if (api_call(s->cli,
                     &(struct api_request){.method = "POST", .path = "/v1/quote", .body = buf_view(&s->body)},
                     &answer, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (!api_print_json(s->cli, &answer))
                show_quote(s->cli, answer.root);
        return CLI_OK;
}

int cmd_quote(struct cli *cli, const struct options *o)
{
        struct buf text BUF_CLEANUP = {0};
        struct err err = {""};
        struct submit s;
        int code;

        if (!o->ended && (o->word_count > 1 || one_line_option(o)))
                return cli_error(CLI_USAGE,
                                 "give one FILE, or a command: drover quote [OPTIONS] -- COMMAND ARG...");
        if (!o->ended && strspn(o->words[0], "0123456789.") == strlen(o->words[0]) &&
            access(o->words[0], F_OK) != 0)
                return cli_error(
                        CLI_USAGE,
                        "%s is a job or a request, not a submit file: drover show %s says when it is "
                        "expected to start and to end",
                        o->words[0], o->words[0]);
        if (o->ended && one_line_write(o, NULL, &text, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        submit_init(&s, cli, o->ended ? "--" : o->words[0]);
        if (o->ended)
                s.text = buf_view(&text);
        code = submit_read(&s);
        if (code == 0)
                code = ask_quote(&s);
        submit_deinit(&s);
        return code;
}
