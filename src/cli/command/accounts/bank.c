/* drover bank: accounts, money in and out, quotes, liens, statements, machines and users. */
#include <stdio.h>
#include <time.h>

#include "base/format/json.h"
#include "base/format/quantity.h"
#include "base/format/url.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/client/ids.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column account_columns[] = {{"ACCOUNT", false, true}, {"AVAILABLE", true, false},
                                                      {"BALANCE", true, false}, {"HELD", true, false},
                                                      {"CHARGED", true, false}, {"UNPAID", true, false},
                                                      {"ROLE", false, false},   {"DESCRIPTION", false, true}};
static const struct table_column statement_columns[] = {
        {"ID", true, false},      {"TIME", true, false}, {"WHAT", false, false}, {"AMOUNT", true, false},
        {"BALANCE", true, false}, {"WITH", false, true}, {"JOB", false, false},  {"ATTEMPT", true, false},
        {"USER", false, true},    {"WHO", false, true},  {"PLACE", false, true}, {"WHY", false, true}};
static const struct table_column lien_columns[] = {
        {"ID", true, false},   {"ACCOUNT", false, true}, {"AMOUNT", true, false}, {"UNTIL", true, false},
        {"JOB", false, false}, {"ATTEMPT", true, false}, {"USER", false, true},   {"WHY", false, true}};
static const struct table_column quote_columns[] = {
        {"ID", true, false},    {"ACCOUNT", false, true},    {"AMOUNT", true, false}, {"FOR", true, false},
        {"UNTIL", true, false}, {"USED", false, false},      {"USER", false, true},   {"PLACE", false, true},
        {"QOS", false, true},   {"DESCRIPTION", false, true}};
static const struct table_column machine_columns[] = {{"MACHINE", false, true},
                                                      {"ACTIVE", false, false},
                                                      {"ARCH", false, true},
                                                      {"OPSYS", false, true},
                                                      {"DESCRIPTION", false, true}};
static const struct table_column user_columns[] = {
        {"USER", false, true}, {"ACTIVE", false, false}, {"DESCRIPTION", false, true}};
#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))

#define SECONDS_MAX 3000000000ll /* the server's times are limited */

/* ---- listings */

static void add_text(struct table *t, struct view v)
{
        if (view_there(v))
                table_view(t, v);
        else
                table_text(t, STR(""));
}

static void bank_add_account(struct cli *cli, struct table *t, struct view a)
{
        static const char *const keys[] = {"name",    "available", "balance", "held",
                                           "charged", "unpaid",    "rights"};

        (void)cli;
        if (view_true(view_get(a, "closed")))
                return;
        for (size_t i = 0; i < COUNT(keys); i++)
                table_view(t, view_get(a, keys[i]));
        add_text(t, view_get(a, "description"));
}

static void add_job(struct table *t, struct view x)
{
        if (view_there(view_get(x, "request")))
                table_format(t, "%lld.%lld", (long long)view_integer(view_get(x, "request"), 0),
                             (long long)view_integer(view_get(x, "job"), 0));
        else
                add_text(t, view_get(x, "job_name"));
        add_text(t, view_get(x, "attempt"));
}

static void add_lien(struct cli *cli, struct table *t, struct view l)
{
        (void)cli;
        table_view(t, view_get(l, "id"));
        table_view(t, view_get(l, "account"));
        table_view(t, view_get(l, "amount"));
        table_time(t, view_integer(view_get(l, "end_ms"), 0), clock_wall_ms());
        add_job(t, l);
        add_text(t, view_get(l, "user"));
        add_text(t, view_get(l, "why"));
}

static void add_quote(struct cli *cli, struct table *t, struct view q)
{
        (void)cli;
        table_view(t, view_get(q, "id"));
        table_view(t, view_get(q, "account"));
        table_view(t, view_get(q, "amount"));
        table_duration(t, view_integer(view_get(q, "duration_ms"), 0));
        table_time(t, view_integer(view_get(q, "end_ms"), 0), clock_wall_ms());
        table_text(t, view_true(view_get(q, "used")) ? STR("yes") : STR("no"));
        add_text(t, view_get(q, "user"));
        add_text(t, view_get(q, "place"));
        add_text(t, view_get(q, "qos"));
        add_text(t, view_get(q, "description"));
}

static int list_accounts(struct cli *cli)
{
        return api_table(cli, &(struct api_table){.path = "/v1/bank",
                                                  .array = "accounts",
                                                  .none = "you are a member of no account of the bank\n",
                                                  .columns = account_columns,
                                                  .column_count = COUNT(account_columns),
                                                  .row = bank_add_account});
}

static int list_reserved(struct cli *cli, bool quotes)
{
        return api_table(
                cli, &(struct api_table){.path = "/v1/bank/reserved",
                                         .array = quotes ? "quotes" : "liens",
                                         .none = quotes ? "no quotes\n" : "nothing is reserved\n",
                                         .columns = quotes ? quote_columns : lien_columns,
                                         .column_count = quotes ? COUNT(quote_columns) : COUNT(lien_columns),
                                         .row = quotes ? add_quote : add_lien});
}

static void bank_add_machine(struct cli *cli, struct table *t, struct view m)
{
        (void)cli;
        table_view(t, view_get(m, "name"));
        table_text(t, view_true(view_get(m, "active")) ? STR("yes") : STR("no"));
        add_text(t, view_get(m, "arch"));
        add_text(t, view_get(m, "opsys"));
        add_text(t, view_get(m, "description"));
}

static int list_machines(struct cli *cli)
{
        return api_table(cli, &(struct api_table){.path = "/v1/bank/machines",
                                                  .array = "machines",
                                                  .none = "no machine is registered\n",
                                                  .columns = machine_columns,
                                                  .column_count = COUNT(machine_columns),
                                                  .row = bank_add_machine});
}

static void bank_add_user(struct cli *cli, struct table *t, struct view u)
{
        (void)cli;
        table_view(t, view_get(u, "name"));
        table_text(t, view_true(view_get(u, "active")) ? STR("yes") : STR("no"));
        add_text(t, view_get(u, "description"));
}

static int list_users(struct cli *cli)
{
        return api_table(cli, &(struct api_table){.path = "/v1/bank/users",
                                                  .array = "users",
                                                  .none = "no user is registered\n",
                                                  .columns = user_columns,
                                                  .column_count = COUNT(user_columns),
                                                  .row = bank_add_user});
}

static void bank_path_of(struct buf *out, const char *name)
{
        buf_addz(out, "/v1/bank/accounts/");
        url_escape(out, str_of(name));
}

static void print_number(struct buf *out, const char *what, struct view v)
{
        buf_printf(out, "%-12s ", what);
        view_text(v, out);
        buf_char(out, '\n');
}

static void print_allocation(struct buf *out, struct view x)
{
        static const char *const texts[] = {"places", "users"};
        int64_t start = view_integer(view_get(x, "start_ms"), 0),
                end = view_integer(view_get(x, "end_ms"), 0);

        buf_printf(out, "%-12s %lld: %lld, held %lld, credit %lld", "allocation",
                   (long long)view_integer(view_get(x, "id"), 0),
                   (long long)view_integer(view_get(x, "amount"), 0),
                   (long long)view_integer(view_get(x, "held"), 0),
                   (long long)view_integer(view_get(x, "credit"), 0));
        if (start) {
                buf_addz(out, ", from ");
                human_time(out, start, clock_wall_ms());
        }
        if (end) {
                buf_addz(out, ", until ");
                human_time(out, end, clock_wall_ms());
        }
        for (size_t i = 0; i < COUNT(texts); i++)
                if (view_there(view_get(x, texts[i]))) {
                        buf_printf(out, ", %s ", texts[i]);
                        view_text(view_get(x, texts[i]), out);
                }
        buf_char(out, '\n');
}

static int balance(struct cli *cli, const char *name)
{
        static const char *const keys[] = {"available", "balance", "held", "charged", "refunded", "unpaid"};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct view list, one;
        int code;

        bank_path_of(&path, name);
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        print_number(&out, "account", view_get(answer.root, "name"));
        if (view_there(view_get(answer.root, "description")))
                print_number(&out, "description", view_get(answer.root, "description"));
        for (size_t i = 0; i < COUNT(keys); i++)
                print_number(&out, keys[i], view_get(answer.root, keys[i]));
        print_number(&out, "role", view_get(answer.root, "rights"));
        if (view_true(view_get(answer.root, "closed")))
                buf_addz(&out, "closed       yes\n");
        list = view_get(answer.root, "allocations");
        for (size_t at = 0; view_next(list, &at, &one);)
                print_allocation(&out, one);
        list = view_get(answer.root, "members");
        for (size_t at = 0; view_next(list, &at, &one);) {
                buf_printf(&out, "%-12s ", "member");
                view_text(view_get(one, "user"), &out);
                buf_addz(&out, ", ");
                view_text(view_get(one, "role"), &out);
                buf_char(&out, '\n');
        }
        cli_print(&out);
        return CLI_OK;
}

/* ---- arguments */

static int read_amount(const char *text, int64_t *ret)
{
        if (str_to_i64(str_of(text), ret) == 0 && *ret >= 0)
                return 0;
        return cli_error(CLI_USAGE, "'%s' is not an amount: write a whole number of units", text);
}

/* ---- orders */

struct order {
        struct buf body;
        struct json j;
        int code;
};

static void order_text(struct order *o, const char *key, const char *text)
{
        if (text)
                json_kstrz(&o->j, key, text);
}

static void order_amount(struct order *o, const char *text)
{
        int64_t amount;

        if (o->code == 0)
                o->code = read_amount(text, &amount);
        if (o->code == 0)
                json_kint(&o->j, "amount", amount);
}

static void order_id(struct order *o, const char *key, const char *text)
{
        int64_t id;

        if (o->code == 0 && (str_to_i64(str_of(text), &id) != 0 || id <= 0))
                o->code = cli_error(CLI_USAGE, "'%s' is not the number of a lien, an allocation or a quote",
                                    text);
        if (o->code == 0)
                json_kint(&o->j, key, id);
}

static void order_number(struct order *o, const char *key, const struct options *given, const char *option,
                         int64_t scale)
{
        int64_t n = options_number(given, option, -1);

        if (o->code == 0 && options_text(given, option) && (n < 0 || n > SECONDS_MAX))
                o->code = cli_error(CLI_USAGE, "--%s must be from 0 to %lld", option, (long long)SECONDS_MAX);
        if (o->code == 0 && n >= 0)
                json_kint(&o->j, key, n * scale);
}

/* Adds the options that several orders share: times, places, expected usage. */
static void order_options(struct order *o, const struct options *given)
{
        static const char *const texts[] = {"place", "places", "users", "user", "qos"};
        static const char *const times[][2] = {{"start", "start_ms"}, {"end", "end_ms"}};
        const char *memory = options_text(given, "memory"), *why = options_text(given, "reason");
        uint64_t bytes;

        for (size_t i = 0; i < COUNT(texts); i++)
                order_text(o, texts[i], options_text(given, texts[i]));
        order_text(o, "why", why);
        for (size_t i = 0; i < COUNT(times) && o->code == 0; i++) {
                int64_t at_ms = 0;

                o->code = cli_time(given, times[i][0], &at_ms);
                if (at_ms)
                        json_kint(&o->j, times[i][1], at_ms);
        }
        order_number(o, "duration_ms", given, "for", 1000);
        order_number(o, "cpus", given, "cpus", 1);
        order_number(o, "gpus", given, "gpus", 1);
        if (options_text(given, "credit") && o->code == 0) {
                int64_t credit;

                o->code = read_amount(options_text(given, "credit"), &credit);
                json_kint(&o->j, "credit", credit);
        }
        if (memory && o->code == 0) {
                if (quantity_size(str_of(memory), &bytes) != 0)
                        o->code = cli_error(CLI_USAGE, "--memory: '%s' is not a size: write 2G or 500M",
                                            memory);
                else
                        json_kint(&o->j, "memory_mib", (int64_t)(bytes >> 20));
        }
        if (options_text(given, "allocation"))
                order_id(o, "id", options_text(given, "allocation"));
        if (options_text(given, "quote"))
                order_id(o, "quote", options_text(given, "quote"));
}

/* The caller must set the document's buffer: o.j.out = &o.body. */
static struct order order_begin(const char *op)
{
        struct order o = {.j.comma = true};

        buf_printf(&o.body, "{\"op\":\"%s\"", op);
        return o;
}

/* Sends the order and prints the server's answer. `quiet`: one order of several. */
static int order_send(struct cli *cli, struct order *o, const char *done, bool quiet)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct view account;
        int code = o->code;

        if (code == 0) {
                buf_char(&o->body, '}');
                code = api_post(cli, "/v1/bank/orders", buf_view(&o->body), &answer);
        }
        buf_deinit(&o->body);
        if (code != 0 || quiet || api_print_json(cli, &answer))
                return code;
        buf_printf(&out, "%s %lld", done, (long long)view_integer(view_get(answer.root, "amount"), 0));
        if (view_there(view_get(answer.root, "id")))
                buf_printf(&out, "; number %lld", (long long)view_integer(view_get(answer.root, "id"), 0));
        if (view_there(view_get(answer.root, "end_ms"))) {
                buf_addz(&out, ", until ");
                human_time(&out, view_integer(view_get(answer.root, "end_ms"), 0), clock_wall_ms());
        }
        account = view_get(answer.root, "account");
        if (view_there(account)) {
                buf_addz(&out, "; ");
                view_text(view_get(account, "name"), &out);
                buf_printf(&out, " has %lld to spend",
                           (long long)view_integer(view_get(account, "available"), 0));
        }
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

/* The JSON functions keep a pointer to the order's buffer, so it must be set where the order is stored. */
#define ORDER(o, op, name)                                                                                   \
        struct order o = order_begin(op);                                                                    \
        o.j.out = &o.body;                                                                                   \
        order_text(&o, "account", name)

static int set_member(struct cli *cli, const char *account, const char *text, bool gone)
{
        struct str role = STR("none"), user = str_of(text);
        ptrdiff_t equals = str_rfind(user, '=');

        ORDER(o, "member", account);

        if (!gone && equals < 0) {
                buf_deinit(&o.body);
                return cli_error(CLI_USAGE,
                                 "--member '%s': write USER=ROLE, where ROLE is user, manager or owner",
                                 text);
        }
        if (!gone) {
                role = str_skip(user, (size_t)equals + 1);
                user = str_head(user, (size_t)equals);
        }
        json_kstr(&o.j, "user", user);
        json_kstr(&o.j, "role", role);
        return order_send(cli, &o, "", true);
}

/* Gives the order for an account with these members, and then shows the account. */
static int account(struct cli *cli, const struct options *given)
{
        const char *name = given->words[1], *text;
        int code = 0;

        if (options_flag(given, "close")) {
                if (options_flag(given, "new") || options_text(given, "description") ||
                    options_text(given, "member") || options_text(given, "remove"))
                        return cli_error(CLI_USAGE, "drover bank account: --close stands alone");

                ORDER(o, "close", name);

                code = order_send(cli, &o, "", true);
                return code ? code : balance(cli, name);
        }
        if (!options_text(given, "member") && !options_text(given, "remove") && !options_flag(given, "new") &&
            !options_text(given, "description"))
                return balance(cli, name);
        if (options_flag(given, "new") || options_text(given, "description")) {
                ORDER(o, "open", name);

                order_text(&o, "why", options_text(given, "description"));
                code = order_send(cli, &o, "", true);
        }
        for (size_t at = 0; code == 0 && (text = options_list(given, "member", &at)) != NULL;)
                code = set_member(cli, name, text, false);
        for (size_t at = 0; code == 0 && (text = options_list(given, "remove", &at)) != NULL;)
                code = set_member(cli, name, text, true);
        return code ? code : balance(cli, name);
}

/* Registers, changes or removes a machine or a user, and then lists the register. */
static int registered(struct cli *cli, const struct options *given, bool user)
{
        static const char *const texts[] = {"description", "arch", "opsys"};
        bool removes = options_flag(given, "delete"), makes = options_flag(given, "new"),
             changes = options_flag(given, "active") || options_flag(given, "inactive");
        int code;

        for (size_t i = 0; i < COUNT(texts); i++)
                changes |= options_text(given, texts[i]) != NULL;
        if ((removes && (changes || makes)) || (!removes && !changes && !makes) ||
            (options_flag(given, "active") && options_flag(given, "inactive")))
                return cli_error(CLI_USAGE,
                                 "drover bank %s: give --delete, or --new, --description, %s"
                                 "and --active or --inactive",
                                 given->words[0], user ? "" : "--arch, --opsys, ");

        ORDER(o, removes ? "unregister" : makes ? "register" : user ? "user" : "machine", NULL);

        order_text(&o, user ? "user" : "place", given->words[1]);
        order_text(&o, "why", options_text(given, "description"));
        order_text(&o, "arch", options_text(given, "arch"));
        order_text(&o, "opsys", options_text(given, "opsys"));
        order_text(&o, "state",
                   options_flag(given, "active")     ? "active"
                   : options_flag(given, "inactive") ? "inactive"
                                                     : NULL);
        code = order_send(cli, &o, "", true);
        if (code != 0)
                return code;
        return user ? list_users(cli) : list_machines(cli);
}

/* Changes the end or the description of a quote, or withdraws it. */
static int change_quote(struct cli *cli, const struct options *given)
{
        const char *cancel = options_text(given, "cancel"), *change = options_text(given, "change");
        bool new_end = options_text(given, "end") || options_text(given, "description");

        if ((cancel && (change || new_end)) || (change && !new_end))
                return cli_error(CLI_USAGE,
                                 "write drover bank quote --cancel NUMBER, or --change NUMBER with --end or "
                                 "--description");

        ORDER(o, cancel ? "cancel" : "requote", NULL);

        order_id(&o, "quote", cancel ? cancel : change);
        order_text(&o, "why", options_text(given, "description"));
        order_options(&o, given);
        return order_send(cli, &o, cancel ? "canceled; charged" : "changed; charged", false);
}

/* Ends an allocation. */
static int close_allocation(struct cli *cli, const struct options *given)
{
        if (options_text(given, "start") || options_text(given, "end") || options_text(given, "credit"))
                return cli_error(CLI_USAGE, "drover bank allocation: --close stands alone");

        ORDER(o, "set", given->words[1]);

        order_text(&o, "state", "inactive");
        order_options(&o, given);
        return order_send(cli, &o, "ended; moved", false);
}

/* A refund of what a job was charged: [ACCOUNT] [AMOUNT], all of it if no amount is given. */
static int refund_job(struct cli *cli, const char *job, const struct options *given)
{
        const char *amount = given->word_count > 2 ? given->words[2] : NULL,
                   *account = given->word_count > 1 ? given->words[1] : NULL;
        struct id id;
        struct err err;

        if (account && !amount && strspn(account, "0123456789") == strlen(account)) {
                amount = account;
                account = NULL;
        }

        ORDER(o, "refund", account);

        if (id_parse(str_of(job), &id, &err) != 0 || id.whole) { /* 7 could be a job of another system */
                order_text(&o, "job", job);
        } else if (id.first == id.last) {
                json_kint(&o.j, "request", (int64_t)id.request);
                json_kint(&o.j, "member", id.first);
        } else {
                o.code = cli_error(CLI_USAGE, "--job: '%s' is not one job", job);
        }
        if (amount)
                order_amount(&o, amount);
        order_options(&o, given);
        return order_send(cli, &o, "refunded", false);
}

static int order(struct cli *cli, const char *op, const char *done, const struct options *given)
{
        bool lien = strcmp(op, "extend") == 0 || strcmp(op, "release") == 0 || options_text(given, "lien");
        const char *account = lien && strcmp(op, "charge") == 0 ? NULL : given->words[1];
        size_t amount = account ? 2 : 1;

        ORDER(o, op, lien ? NULL : account);

        order_text(&o, "job", options_text(given, "job"));
        if (strcmp(op, "quote") == 0 && !options_text(given, "reason"))
                order_text(&o, "why", options_text(given, "description"));
        if (lien)
                order_id(&o, "id", options_text(given, "lien") ? options_text(given, "lien") : account);
        if (strcmp(op, "transfer") == 0)
                order_text(&o, "to", given->words[amount++]);
        if (given->word_count > amount)
                order_amount(&o, given->words[amount]);
        order_options(&o, given);
        return order_send(cli, &o, done, false);
}

/* ---- statements */

struct statement {
        struct table *table;
        struct str account;
};

static int add_movement(void *arg, struct view m)
{
        struct statement *s = arg;
        struct table *t = s->table;
        bool out = view_integer(view_get(m, "amount"), 0) < 0;

        table_view(t, view_get(m, "id"));
        table_time(t, view_integer(view_get(m, "at_ms"), 0), clock_wall_ms());
        table_view(t, view_get(m, "what"));
        table_view(t, view_get(m, "amount"));
        table_view(t, view_get(m, "balance"));
        table_view(t, view_get(view_get(m, out ? "to" : "from"), "account"));
        add_job(t, m);
        add_text(t, view_get(m, "user"));
        add_text(t, view_get(m, "who"));
        add_text(t, view_get(m, "place"));
        add_text(t, view_get(m, "why"));
        return 0;
}

static int statement(struct cli *cli, const struct options *given)
{
        struct buf path BUF_CLEANUP = {0}, none BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP = {0};
        struct statement s = {&t, str_of(given->words[1])};
        int64_t from_ms = 0, to_ms = 0;
        char number[24];
        int code = cli_time(given, "start", &from_ms);

        if (code == 0)
                code = cli_time(given, "end", &to_ms);
        if (code == 0)
                code = cli_table(cli, &t, statement_columns, COUNT(statement_columns));
        if (code != 0)
                return code;
        bank_path_of(&path, given->words[1]);
        buf_addz(&path, "/statement");
        snprintf(number, sizeof(number), "%lld", (long long)from_ms);
        api_query(&path, "from_ms", str_of(from_ms ? number : NULL));
        snprintf(number, sizeof(number), "%lld", (long long)to_ms);
        api_query(&path, "to_ms", str_of(to_ms ? number : NULL));
        code = api_list(cli, &(struct api_list){.path = &path,
                                                .array = "movements",
                                                .cursor = "after",
                                                .each = add_movement,
                                                .arg = &s});
        if (code != 0 || cli->json)
                return code;
        buf_addz(&none, "nothing has moved\n");
        if (table_rows(&t) > 0 || !cli_plain(cli))
                cli_print_table(cli, &t);
        else
                cli_print(&none);
        return CLI_OK;
}

/* ---- verbs */

#define USED "for cpus memory gpus place user qos"

static const struct verb {
        const char *name, *op, *done;
        unsigned least, most; /* words after it */
        const char *words, *options;
        bool tables; /* it prints a table */
} verbs[] = {
        {"account", NULL, NULL, 1, 1, "NAME", "new close description member remove"},
        {"balance", NULL, NULL, 0, 1, "[NAME]", ""},
        {"statement", NULL, NULL, 1, 1, "NAME", "start end", true},
        {"liens", NULL, NULL, 0, 0, "", "", true},
        {"quotes", NULL, NULL, 0, 0, "", "", true},
        {"deposit", "deposit", "deposited", 2, 2, "NAME AMOUNT",
         "start end credit places users allocation reason"},
        {"withdraw", "withdraw", "withdrawn", 2, 2, "NAME AMOUNT", "allocation reason"},
        {"transfer", "transfer", "transferred", 3, 3, "FROM TO AMOUNT", "allocation reason"},
        {"allocation", "set", "set; moved", 1, 1, "NAME --allocation NUMBER",
         "allocation start end credit close reason"},
        {"quote", "quote", "quoted", 1, 1, "NAME --for TIME", USED " end reason description"},
        {"lien", "lien", "reserved", 1, 2, "NAME [AMOUNT]", USED " end quote job reason"},
        {"extend", "extend", "reserved more:", 1, 2, "NUMBER [AMOUNT]", USED " end reason"},
        {"release", "release", "released; charged", 1, 1, "NUMBER", "reason"},
        {"charge", "charge", "charged", 0, 2, "NAME [AMOUNT], or --lien NUMBER [AMOUNT]",
         USED " lien job reason"},
        {"refund", "refund", "refunded", 0, 2, "NAME AMOUNT, or --job JOB [NAME] [AMOUNT]",
         "job allocation user reason"},
        {"machine", NULL, NULL, 1, 1, "NAME", "new description arch opsys active inactive delete", true},
        {"machines", NULL, NULL, 0, 0, "", "", true},
        {"user", NULL, NULL, 1, 1, "NAME@DOMAIN", "new description active inactive delete", true},
        {"users", NULL, NULL, 0, 0, "", "", true},
};
static const struct verb quote_change = {
        "quote", "", "", 0, 0, "--cancel NUMBER, or --change NUMBER", "cancel change end description"};

/* Options that are not the verb's would be ignored, so they are refused. */
static int check_options(const struct verb *v, const struct options *o)
{
        bool listed = strcmp(v->name, "balance") == 0 && o->word_count == 1;
        struct buf name BUF_CLEANUP = {0};

        buf_printf(&name, "bank %s%s", v->name, strcmp(v->name, "balance") == 0 && !listed ? " NAME" : "");
        return cli_check_options(o, buf_z(&name), v->options, v->tables || listed);
}

static const struct verb *verb_find(const char *word)
{
        for (size_t i = 0; i < COUNT(verbs); i++)
                if (strcmp(verbs[i].name, word) == 0)
                        return &verbs[i];
        return NULL;
}

int cmd_bank(struct cli *cli, const struct options *o)
{
        const struct verb *v = !o->word_count ? NULL
                               : strcmp(o->words[0], "quote") == 0 &&
                                               (options_text(o, "cancel") || options_text(o, "change"))
                                       ? &quote_change
                                       : verb_find(o->words[0]);
        size_t words = o->word_count ? o->word_count - 1 : 0;
        bool by_lien = v && strcmp(v->name, "charge") == 0 && options_text(o, "lien");
        bool is_refund = v && strcmp(v->name, "refund") == 0, by_job = is_refund && options_text(o, "job");

        if (o->word_count == 0) {
                static const struct verb none = {
                        .name = "without a subcommand", .options = "", .tables = true};

                return check_options(&none, o) != 0 ? CLI_USAGE : list_accounts(cli);
        }
        if (!v)
                return cli_error(CLI_USAGE, "drover bank has no '%s': see drover bank --help", o->words[0]);
        if (words < v->least || words > v->most ||
            (v->op && strcmp(v->name, "charge") == 0 && !by_lien && words == 0) || (by_lien && words > 1) ||
            (is_refund && !by_job && words != 2))
                return cli_error(CLI_USAGE, "write drover bank %s %s: see drover bank --help", v->name,
                                 v->words);
        if (check_options(v, o) != 0)
                return CLI_USAGE;
        if (v == &quote_change)
                return change_quote(cli, o);
        if (strcmp(v->name, "allocation") == 0 && options_flag(o, "close"))
                return close_allocation(cli, o);
        if (strcmp(v->name, "quote") == 0 && !options_text(o, "for"))
                return cli_error(CLI_USAGE, "drover bank quote: --for TIME is missing");
        if (by_job)
                return refund_job(cli, options_text(o, "job"), o);
        if (v->op)
                return order(cli, v->op, v->done, o);
        if (strcmp(v->name, "account") == 0)
                return account(cli, o);
        if (strcmp(v->name, "statement") == 0)
                return statement(cli, o);
        if (strcmp(v->name, "machine") == 0 || strcmp(v->name, "user") == 0)
                return registered(cli, o, strcmp(v->name, "user") == 0);
        if (strcmp(v->name, "users") == 0)
                return list_users(cli);
        if (strcmp(v->name, "machines") == 0)
                return list_machines(cli);
        if (strcmp(v->name, "balance") == 0)
                return words ? balance(cli, o->words[1]) : list_accounts(cli);
        return list_reserved(cli, strcmp(v->name, "quotes") == 0);
}
