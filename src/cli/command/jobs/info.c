/* drover info: lists jobs, places, nodes and other things, by conditions and attributes in ClassAds.
 *
 * Each thing is an ad: for jobs and places the ad used in matching, for others the API's answer. The
 * server evaluates conditions on jobs, because there are many; all other conditions are evaluated here. */
#include <stdio.h>

#include "base/mem.h"
#include "classad/eval.h"
#include "classad/print.h"
#include "classad/read.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kind {
        const char *name, *path, *array, *cursor; /* cursor: NULL, or the name of the member for paging */
        bool jobs;                                /* the server evaluates conditions */
} kinds[] = {
        {"jobs", "/v1/jobs", "jobs", "after", true},
        {"history", "/v1/history", "jobs", "before", true},
        {"requests", "/v1/requests", "requests", "after", false},
        {"nodes", "/v1/nodes", "nodes", NULL, false},
        {"places", "/v1/agents", "agents", NULL, false},
        {"stores", "/v1/stores", "stores", NULL, false},
        {"accounts", "/v1/accounts", "accounts", NULL, false},
        {"bank", "/v1/bank", "accounts", NULL, false},
        {"reservations", "/v1/reservations", "reservations", NULL, false},
};

struct info {
        struct cli *cli;
        const struct kind *kind;
        struct symbols *symbols;
        struct eval ev;
        struct expr *condition; /* NULL: no condition */
        struct expr **shown;    /* NULL: whole ads */
        size_t shown_count;
        struct table_column *columns;
        char *titles; /* titles of the columns */
        struct table table;
        bool as_json;
        struct buf json; /* output with --json */
        size_t found;
};

static bool holds(struct info *i, const struct ad *ad)
{
        struct value v;

        if (!i->condition)
                return true;
        eval_expr(&i->ev, i->condition, ad, NULL, &v);
        return v.type == VALUE_BOOLEAN && v.boolean;
}

static void show_row(struct info *i, const struct ad *ad)
{
        for (size_t k = 0; k < i->shown_count; k++) {
                struct buf text BUF_CLEANUP = {0};
                struct value v;

                eval_expr(&i->ev, i->shown[k], ad, NULL, &v);
                if (v.type == VALUE_STRING)
                        buf_str(&text, v.string);
                else
                        value_print(&text, &v);
                table_text(&i->table, buf_view(&text));
        }
}

/* Returns an ad of what --output names, each under its text; the caller frees it. */
static struct ad *project(struct info *i, const struct ad *ad)
{
        struct ad *some = ad_new(i->symbols);

        for (size_t k = 0; k < i->shown_count; k++) {
                struct str title = str_of(i->columns[k].title);
                symbol name = symbols_intern(i->symbols, title);
                struct buf text BUF_CLEANUP = {0};
                struct value v;

                eval_expr(&i->ev, i->shown[k], ad, NULL, &v);
                value_print(&text, &v);
                if (v.type == VALUE_STRING)
                        ad_set_string(some, name, v.string);
                else if (ad_set_text(some, name, buf_view(&text), NULL) != 0)
                        ad_set_undefined(some, name); /* it is too long for an expression */
                ad_set_spelling(some, name, symbols_spelling(i->symbols, name, title));
        }
        return some;
}

static void show_json(struct info *i, const struct ad *ad)
{
        struct ad *some = i->shown ? project(i, ad) : NULL;

        if (i->found > 1)
                buf_addz(&i->json, ",\n");
        ad_print_json(&i->json, some ? some : ad, false);
        ad_free(some);
}

static void show_ad(struct info *i, const struct ad *ad)
{
        struct buf out BUF_CLEANUP = {0};

        if (i->as_json) {
                show_json(i, ad);
        } else if (i->shown) {
                show_row(i, ad);
        } else {
                struct buf text BUF_CLEANUP = {0};

                ad_print(&text, ad, CLASSAD_NEW, false);
                human_safe(&out, buf_view(&text));
                buf_char(&out, '\n');
                cli_print(&out);
        }
}

/* Prints an object if it meets the condition. more: attributes that the API's object has beside its ad;
 * NULL ends them. */
static int look_at(struct info *i, struct view object, const struct view *more, const char *const *names)
{
        struct json_reader reader = {.symbols = i->symbols, .text = object.text};
        struct ad *ad = NULL;
        struct err err = {""};
        int r = json_reader_next(&reader, &ad, &err);

        if (r != 0 || !ad)
                return cli_error(CLI_FAILED, "the server's answer cannot be read: %s", err.text);
        for (size_t k = 0; names && names[k]; k++) {
                struct buf text BUF_CLEANUP = {0};

                view_text(more[k], &text);
                ad_set_string(ad, symbols_intern(i->symbols, str_of(names[k])), buf_view(&text));
        }
        if (holds(i, ad)) {
                i->found++;
                show_ad(i, ad);
        }
        eval_reset(&i->ev);
        ad_free(ad);
        return 0;
}

static int on_item(void *arg, struct view item)
{
        static const char *const of_job[] = {"Id", "DroverState", NULL}, *const of_place[] = {"AgentName",
                                                                                              "QueueName",
                                                                                              NULL};
        struct info *i = arg;
        struct view queues = view_get(item, "queues"), q;
        int code = 0;

        if (i->kind->jobs) {
                const struct view more[] = {view_get(item, "id"), view_get(item, "state")};

                return look_at(i, view_get(item, "ad"), more, of_job);
        }
        if (strcmp(i->kind->name, "places") != 0)
                return look_at(i, item, NULL, NULL);
        for (size_t at = 0; code == 0 && view_next(queues, &at, &q);) {
                const struct view more[] = {view_get(item, "name"), view_get(q, "name")};

                if (view_there(view_get(q, "ad")))
                        code = look_at(i, view_get(q, "ad"), more, of_place);
        }
        return code;
}

static int info_ask(struct info *i, const char *condition)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct view list, item;
        int code;

        buf_addz(&path, i->kind->path);
        if (i->kind->jobs) {
                api_query(&path, "attributes", STR("*"));
                api_query(&path, "constraint", str_of(condition));
                if (strcmp(i->kind->name, "jobs") == 0)
                        api_query(&path, "all", STR("1"));
        }
        i->cli->json = false; /* the answer is read here, whatever is printed */
        if (i->kind->cursor) {
                struct api_list l = {.path = &path,
                                     .array = i->kind->array,
                                     .cursor = i->kind->cursor,
                                     .each = on_item,
                                     .arg = i};

                return api_list(i->cli, &l);
        }
        code = api_get(i->cli, buf_z(&path), &answer);
        list = view_get(answer.root, i->kind->array);
        for (size_t at = 0; code == 0 && view_next(list, &at, &item);)
                code = on_item(i, item);
        return code;
}

/* Moves the text before the next comma that is outside of brackets, strings and quoted names (or all of it)
 * from *rest to *ret. As in expr_text_from_old, a backslash counts before a quote that does not end the text.
 */
static void cut_expr(struct str *rest, struct str *ret)
{
        char within = '\0';
        size_t i = 0, depth = 0;

        for (; i < rest->n; i++) {
                char c = rest->p[i];

                if (within == '"' && c == '\\' && i + 2 < rest->n && rest->p[i + 1] == '"')
                        i++;
                else if (within)
                        within = c == within ? '\0' : within;
                else if (c == '"' || c == '\'')
                        within = c;
                else if (c == '(' || c == '[' || c == '{')
                        depth++;
                else if (c == ')' || c == ']' || c == '}')
                        depth -= depth > 0;
                else if (c == ',' && depth == 0)
                        break;
        }
        *ret = str_head(*rest, i);
        *rest = str_skip(*rest, i < rest->n ? i + 1 : i);
}

static int read_shown(struct info *i, const char *names)
{
        struct str rest = str_of(names), one;
        size_t n = 0, used = 0;

        if (!names)
                return 0;
        i->shown = mem_array(NULL, TABLE_COLUMNS_MAX, sizeof(struct expr *));
        i->columns = mem_array(NULL, TABLE_COLUMNS_MAX, sizeof(*i->columns));
        i->titles = mem_array(NULL, rest.n + TABLE_COLUMNS_MAX + 1, 1);
        for (; rest.n; n++) {
                struct buf text BUF_CLEANUP = {0};
                struct err err = {""};

                cut_expr(&rest, &one);
                one = str_trim(one);
                expr_text_from_old(one, &text);
                if (n == TABLE_COLUMNS_MAX)
                        return cli_error(CLI_USAGE, "--output: at most %d expressions", TABLE_COLUMNS_MAX);
                if (expr_parse(i->symbols, buf_view(&text), &i->shown[n], &err) != 0)
                        return cli_error(CLI_USAGE, "--output: '" STR_FMT "': %s", STR_ARG(one), err.text);
                i->shown_count++;
                memcpy(i->titles + used, one.p, one.n);
                i->titles[used + one.n] = '\0';
                i->columns[n] = (struct table_column){i->titles + used, false, true};
                used += one.n + 1;
        }
        return cli_table(i->cli, &i->table, i->columns, (unsigned)n);
}

static void info_deinit(struct info *i)
{
        for (size_t k = 0; k < i->shown_count; k++)
                expr_free(i->shown[k]);
        if (i->shown_count)
                table_deinit(&i->table);
        free(i->shown);
        free(i->columns);
        free(i->titles);
        buf_deinit(&i->json);
        expr_free(i->condition);
        eval_deinit(&i->ev);
        symbols_free(i->symbols);
}

int cmd_info(struct cli *cli, const struct options *o)
{
        const char *condition = options_text(o, "constraint");
        struct buf text BUF_CLEANUP = {0};
        struct info i = {.cli = cli, .as_json = cli->json};
        struct err err = {""};
        int code = 0;

        for (size_t k = 0; k < COUNT(kinds); k++)
                if (strcmp(kinds[k].name, o->words[0]) == 0)
                        i.kind = &kinds[k];
        if (!i.kind && o->words[0][0] >= '0' && o->words[0][0] <= '9')
                return cli_error(CLI_USAGE, "'%s' is a job or a request: see drover show %s", o->words[0],
                                 o->words[0]);
        if (!i.kind)
                return cli_error(
                        CLI_USAGE,
                        "'%s' is none of jobs, history, requests, nodes, places, stores, accounts, bank "
                        "and reservations",
                        o->words[0]);
        if (condition) {
                expr_text_from_old(str_of(condition), &text);
                condition = buf_z(&text);
        }
        i.symbols = symbols_new();
        eval_init(&i.ev, cli->now_ms / 1000, 0);
        if (condition && expr_parse(i.symbols, str_of(condition), &i.condition, &err) != 0)
                code = cli_error(CLI_USAGE, "--constraint: %s", err.text);
        if (i.kind->jobs) { /* the server has evaluated it */
                expr_free(i.condition);
                i.condition = NULL;
        }
        if (code == 0)
                code = read_shown(&i, options_text(o, "output"));
        if (code == 0 && i.as_json)
                buf_addz(&i.json, "[");
        if (code == 0)
                code = info_ask(&i, condition);
        if (code == 0 && i.as_json) {
                buf_addz(&i.json, "]\n");
                cli_print(&i.json);
        } else if (code == 0 && i.shown_count) {
                cli_print_table(cli, &i.table);
        }
        info_deinit(&i);
        return code;
}
