/* gdeposit, gwithdraw, gtransfer, gbalance, mybalance, glsalloc, gchalloc, grmalloc: what accounts have, and
 * how it comes and goes. */
#include <stdio.h>

#include "cli/gold/gold.h"

static const char *name_of(struct view v, struct buf *room)
{
        buf_reset(room);
        view_text(v, room);
        return buf_z(room);
}

/* The amount that --amount or a word behind the account gives. */
static int amount_of(const struct words *w, int64_t *ret)
{
        const char *text = words_text(w, "amount");
        bool by_option = words_has(w, "account") || words_has(w, "project");

        if (!text && w->word_count > (by_option ? 0 : 1))
                text = w->words[w->word_count - 1];
        if (!text)
                return cli_error(1, "how much? Give an amount with -z");
        return gold_amount(w, text, ret);
}

/* Adds the options that several orders have. */
static int add_options(const struct words *w, struct gold_order *o)
{
        const char *allocation = words_text(w, "allocation");
        int64_t id = 0;

        gold_order_text(o, "why", words_text(w, "description"));
        if (!allocation)
                return 0;
        if (str_to_i64(str_of(allocation), &id) != 0 || id <= 0)
                return cli_error(1, "'%s' is not the number of an allocation: see glsalloc", allocation);
        json_kint(&o->j, "id", id);
        return 0;
}

static int add_dates(const struct words *w, struct gold_order *o)
{
        int64_t start_ms = -1, end_ms = -1, credit;

        if (gold_time(w, "start", &start_ms) != 0 || gold_time(w, "end", &end_ms) != 0)
                return 1;
        if (start_ms >= 0)
                json_kint(&o->j, "start_ms", start_ms);
        if (end_ms >= 0)
                json_kint(&o->j, "end_ms", end_ms == INT64_MAX ? 0 : end_ms);
        if (!words_text(w, "creditLimit"))
                return 0;
        if (gold_amount(w, words_text(w, "creditLimit"), &credit) != 0)
                return 1;
        json_kint(&o->j, "credit", credit);
        return 0;
}

/* Ends an order that may have a mistake in it. */
static int money_send_or_free(struct cli *cli, struct gold_order *o, int code)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};

        if (code == 0)
                return gold_order_send(cli, o, &answer);
        buf_deinit(&o->body);
        return code;
}

static int move(struct cli *cli, const struct words *w, const char *op, const char *done, const char *whence)
{
        const char *account = gold_account(w);
        struct gold_order o;
        int64_t amount;
        int code;

        if (!account)
                return cli_error(1, "which account? Give it with -a or -p");
        if (amount_of(w, &amount) != 0)
                return 1;
        gold_order(&o, op);
        json_kstrz(&o.j, "account", account);
        json_kint(&o.j, "amount", amount);
        code = add_options(w, &o);
        if (code == 0 && strcmp(op, "deposit") == 0)
                code = add_dates(w, &o);
        code = money_send_or_free(cli, &o, code);
        if (code == 0)
                gold_say(w, "Successfully %s %lld credits %s account %s", done, (long long)amount, whence,
                         account);
        return code;
}

static int gdeposit(struct cli *cli, const struct words *w)
{
        return move(cli, w, "deposit", "deposited", "into");
}

static int gwithdraw(struct cli *cli, const struct words *w)
{
        return move(cli, w, "withdraw", "withdrew", "from");
}

static int gtransfer(struct cli *cli, const struct words *w)
{
        const char *from = words_text(w, "fromAccount"), *to = words_text(w, "toAccount"),
                   *text = words_text(w, "amount");
        struct gold_order o;
        int64_t amount;
        int code;

        from = from ? from : words_text(w, "fromProject");
        to = to ? to : words_text(w, "toProject");
        text = text ? text : w->word_count ? w->words[0] : NULL;
        if (!from || !to || !text)
                return cli_error(1, "--fromAccount, --toAccount and an amount are needed");
        if (gold_amount(w, text, &amount) != 0)
                return 1;
        gold_order(&o, "transfer");
        json_kstrz(&o.j, "account", from);
        json_kstrz(&o.j, "to", to);
        json_kint(&o.j, "amount", amount);
        code = money_send_or_free(cli, &o, add_options(w, &o));
        if (code == 0)
                gold_say(w, "Successfully transferred %lld credits from account %s to account %s",
                         (long long)amount, from, to);
        return code;
}

/* ---- balances */

struct sums {
        int64_t amount, reserved, credit;
};

/* Returns whether an element of the list, separated by commas, is the text, or its part before a slash, or
 * `*@…`. An absent list holds everything. */
static bool list_has(struct view list, const char *text)
{
        BUF_CLEANUP struct buf all = {0};
        struct str rest, one, t = str_of(text);

        if (!view_there(list) || !text)
                return true;
        view_text(list, &all);
        rest = buf_view(&all);
        while (rest.n && str_cut(&rest, ',', &one)) {
                one = str_trim(one);
                if (str_eq(one, t) || str_eqz(one, "*") ||
                    (str_starts(one, STR("*@")) && str_ends(t, str_skip(one, 1))) ||
                    (t.n > one.n && str_starts(t, one) && t.p[one.n] == '/'))
                        return true;
        }
        return false;
}

static bool is_open(struct view allocation, int64_t now_ms)
{
        int64_t start = view_integer(view_get(allocation, "start_ms"), 0),
                end = view_integer(view_get(allocation, "end_ms"), 0);

        return start <= now_ms && (end == 0 || end > now_ms);
}

/* Adds up the allocations that this user may spend at this machine now. */
static struct sums sums_of(struct view account, const char *user, const char *machine, int64_t now_ms)
{
        struct view list = view_get(account, "allocations"), one;
        struct sums s = {0};

        for (size_t at = 0; view_next(list, &at, &one);) {
                if (!is_open(one, now_ms) || !list_has(view_get(one, "users"), user) ||
                    !list_has(view_get(one, "places"), machine))
                        continue;
                s.amount += view_integer(view_get(one, "amount"), 0);
                s.reserved += view_integer(view_get(one, "held"), 0);
                s.credit += view_integer(view_get(one, "credit"), 0);
        }
        return s;
}

static bool is_member(struct view account, const char *user)
{
        struct view list = view_get(account, "members"), one;

        for (size_t at = 0; view_next(list, &at, &one);)
                if (list_has(view_get(one, "user"), user))
                        return true;
        return false;
}

static void add_balance(const struct words *w, struct table *t, const char *name, const struct sums *s)
{
        table_text(t, str_of(name));
        table_text(t, str_of(name));
        gold_units(w, t, s->amount);
        gold_units(w, t, s->reserved);
        gold_units(w, t, s->amount - s->reserved);
        gold_units(w, t, s->credit);
        gold_units(w, t, s->amount - s->reserved + s->credit);
}

static int total(const struct words *w, const struct sums *s)
{
        int64_t units = s->amount - s->reserved + (words_has(w, "available") ? s->credit : 0);
        BUF_CLEANUP struct buf out = {0};

        if (!words_has(w, "quiet"))
                buf_printf(&out, "The account %s is ", words_has(w, "available") ? "available" : "balance");
        if (words_has(w, "hours"))
                buf_printf(&out, "%.2f%s\n", (double)units / 3600, words_has(w, "quiet") ? "" : " hours");
        else
                buf_printf(&out, "%lld%s\n", (long long)units, words_has(w, "quiet") ? "" : " credits");
        cli_print(&out);
        return 0;
}

static int gbalance(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Id"},
                                                      {.title = "Name"},
                                                      {.title = "Amount", .right = true},
                                                      {.title = "Reserved", .right = true},
                                                      {.title = "Balance", .right = true},
                                                      {.title = "CreditLimit", .right = true},
                                                      {.title = "Available", .right = true}};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf user = {0}, name = {0};
        struct sums all = {0};
        struct view list, one;
        struct table t;

        if (gold_table(w, &t, columns, 7) != 0 || api_get(cli, "/v1/bank", &answer) != 0 ||
            (words_text(w, "user") && gold_user(cli, words_text(w, "user"), &user) != 0))
                return 1;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);) {
                struct sums s;

                if (!gold_matches(gold_account(w), view_get(one, "name")) ||
                    (user.n && !is_member(one, buf_z(&user))))
                        continue;
                s = sums_of(one, user.n ? buf_z(&user) : NULL, words_text(w, "machine"), cli->now_ms);
                all.amount += s.amount;
                all.reserved += s.reserved;
                all.credit += s.credit;
                add_balance(w, &t, name_of(view_get(one, "name"), &name), &s);
        }
        if (words_has(w, "total") || words_has(w, "available")) {
                table_deinit(&t);
                return total(w, &all);
        }
        gold_table_print(cli, &t);
        return 0;
}

static int mybalance(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Project"},
                                                      {.title = "Balance", .right = true}};
        struct api_answer answer API_ANSWER_CLEANUP = {0}, mine API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf user = {0};
        struct view list, one;
        struct table t;

        table_init(&t, columns, 2);
        t.ruled = true;
        if (api_get(cli, "/v1/server", &mine) != 0 || api_get(cli, "/v1/bank", &answer) != 0)
                return 1;
        view_text(view_get(mine.root, "you"), &user);
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);) {
                struct sums s = sums_of(one, buf_z(&user), NULL, cli->now_ms);

                if (view_is(view_get(one, "role"), "none"))
                        continue;
                table_view(&t, view_get(one, "name"));
                gold_units(w, &t, s.amount - s.reserved);
        }
        gold_table_print(cli, &t);
        return 0;
}

/* ---- allocations */

static const char *allocation_named(const struct words *w)
{
        return words_text(w, "allocation") ? words_text(w, "allocation") : w->word_count ? w->words[0] : NULL;
}

static int glsalloc(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Id", .right = true},
                                                      {.title = "Account"},
                                                      {.title = "StartTime"},
                                                      {.title = "EndTime"},
                                                      {.title = "Amount", .right = true},
                                                      {.title = "CreditLimit", .right = true},
                                                      {.title = "Active"}};
        const char *id = allocation_named(w),
                   *account = words_text(w, "account") ? words_text(w, "account") : words_text(w, "project");
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view list, one, x;
        struct table t;

        if (gold_table(w, &t, columns, 7) != 0 || api_get(cli, "/v1/bank", &answer) != 0)
                return 1;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);) {
                struct view allocations = view_get(one, "allocations");

                for (size_t k = 0;
                     gold_matches(account, view_get(one, "name")) && view_next(allocations, &k, &x);) {
                        bool open = is_open(x, cli->now_ms);

                        if ((words_has(w, "active") && !open) || (words_has(w, "inactive") && open) ||
                            !gold_matches(id, view_get(x, "id")))
                                continue;
                        table_view(&t, view_get(x, "id"));
                        table_view(&t, view_get(one, "name"));
                        gold_date(&t, view_integer(view_get(x, "start_ms"), 0), "-infinity");
                        gold_date(&t, view_integer(view_get(x, "end_ms"), 0), "infinity");
                        gold_units(w, &t, view_integer(view_get(x, "amount"), 0));
                        gold_units(w, &t, view_integer(view_get(x, "credit"), 0));
                        table_text(&t, open ? STR("True") : STR("False"));
                }
        }
        gold_table_print(cli, &t);
        return 0;
}

/* Finds an allocation, and adds its number and account to the order. */
static int add_allocation(struct cli *cli, const char *id, struct gold_order *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view list, one, x;

        if (!id)
                return cli_error(1, "which allocation? Give its number with -i");
        if (api_get(cli, "/v1/bank", &answer) != 0)
                return 1;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);) {
                struct view allocations = view_get(one, "allocations");
                BUF_CLEANUP struct buf account = {0};

                for (size_t k = 0; view_next(allocations, &k, &x);) {
                        if (!str_eqz(view_get(x, "id").text, id))
                                continue;
                        view_text(view_get(one, "name"), &account);
                        json_kstr(&o->j, "account", buf_view(&account));
                        json_kint(&o->j, "id", view_integer(view_get(x, "id"), 0));
                        return 0;
                }
        }
        return cli_error(1, "there is no allocation %s of which you may know: see glsalloc", id);
}

static int gchalloc(struct cli *cli, const struct words *w)
{
        struct gold_order o;
        int code;

        gold_order(&o, "set");
        code = add_allocation(cli, allocation_named(w), &o);
        if (code == 0)
                code = add_dates(w, &o);
        code = money_send_or_free(cli, &o, code);
        if (code == 0)
                gold_say(w, "Successfully modified 1 Allocation");
        return code;
}

static int grmalloc(struct cli *cli, const struct words *w)
{
        struct gold_order o;
        int code;

        gold_order(&o, "set");
        gold_order_text(&o, "state", "inactive");
        code = money_send_or_free(cli, &o, add_allocation(cli, allocation_named(w), &o));
        if (code == 0)
                gold_say(w, "Successfully ended 1 Allocation");
        return code;
}

/* ---- tables */

#define AMOUNT                                                                                               \
        {                                                                                                    \
                "amount", 'z', WORDS_VALUE, WORDS_ACTS, "CREDITS", NULL, "How much."                         \
        }
#define ALLOCATION                                                                                           \
        {                                                                                                    \
                "allocation", 'i', WORDS_VALUE, WORDS_ACTS, "NUMBER", NULL, "The allocation."                \
        }
#define CREDITLIMIT                                                                                          \
        {                                                                                                    \
                "creditLimit", 'L', WORDS_VALUE, WORDS_ACTS, "CREDITS", NULL, "Its credit limit."            \
        }

static const struct words_row deposit_rows[] = {GOLD_ACCOUNT, GOLD_PROJECT, ALLOCATION,       AMOUNT,
                                                CREDITLIMIT,  GOLD_TIMES,   GOLD_DESCRIPTION, GOLD_HOURS,
                                                GOLD_COMMON,  {0}};
static const struct words_row withdraw_rows[] = {GOLD_ACCOUNT,     GOLD_PROJECT, ALLOCATION,  AMOUNT,
                                                 GOLD_DESCRIPTION, GOLD_HOURS,   GOLD_COMMON, {0}};
static const struct words_row transfer_rows[] = {
        {"fromAccount", 0, WORDS_VALUE, WORDS_ACTS, "ACCOUNT", NULL, "From here."},
        {"toAccount", 0, WORDS_VALUE, WORDS_ACTS, "ACCOUNT", NULL, "To here."},
        {"fromProject", 0, WORDS_VALUE, WORDS_ACTS, "PROJECT", NULL, "From here."},
        {"toProject", 0, WORDS_VALUE, WORDS_ACTS, "PROJECT", NULL, "To here."},
        ALLOCATION,
        AMOUNT,
        GOLD_DESCRIPTION,
        GOLD_HOURS,
        GOLD_COMMON,
        {0}};
static const struct words_row balance_rows[] = {
        GOLD_ACCOUNT,
        GOLD_PROJECT,
        GOLD_USER,
        GOLD_MACHINE,
        {"total", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Print the sum of the balances."},
        {"available", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Print the sum of what is available, credit included."},
        GOLD_HOURS,
        GOLD_LIST,
        GOLD_COMMON,
        {0}};
static const struct words_row my_rows[] = {GOLD_HOURS, GOLD_COMMON, {0}};
static const struct words_row allocation_rows[] = {
        GOLD_ACCOUNT,
        GOLD_PROJECT,
        ALLOCATION,
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Those that may be spent now."},
        {"inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "The others."},
        GOLD_HOURS,
        GOLD_LIST,
        GOLD_COMMON,
        {0}};
static const struct words_row remove_rows[] = {
        ALLOCATION,
        {"inactive", 'I', WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "those that have ended go by themselves."},
        GOLD_COMMON,
        {0}};
static const struct words_row change_rows[] = {
        ALLOCATION,
        CREDITLIMIT,
        GOLD_TIMES,
        {"description", 'd', WORDS_VALUE, WORDS_REFUSED, "TEXT", NULL,
         "an allocation has no description: the account has one (gchaccount), and each deposit."},
        GOLD_HOURS,
        GOLD_COMMON,
        {0}};

const struct words_tool gold_gdeposit = {.name = "gdeposit",
                                         .usage = "[OPTIONS] {-a ACCOUNT | -p PROJECT} [-z] CREDITS",
                                         .line = "Gives an account an allocation, or an allocation more.",
                                         .rows = deposit_rows,
                                         .run = gdeposit};
const struct words_tool gold_gwithdraw = {.name = "gwithdraw",
                                          .usage = "[OPTIONS] {-a ACCOUNT | -p PROJECT} [-z] CREDITS",
                                          .line = "Takes credits out of an account.",
                                          .rows = withdraw_rows,
                                          .run = gwithdraw};
const struct words_tool gold_gtransfer = {
        .name = "gtransfer",
        .usage = "[OPTIONS] --fromAccount ACCOUNT --toAccount ACCOUNT [-z] CREDITS",
        .line = "Moves credits from one account to another one.",
        .rows = transfer_rows,
        .run = gtransfer};
const struct words_tool gold_gbalance = {.name = "gbalance",
                                         .usage = "[OPTIONS] [[-p] PROJECT]",
                                         .line = "Shows what accounts have to spend now.",
                                         .rows = balance_rows,
                                         .run = gbalance};
const struct words_tool gold_mybalance = {.name = "mybalance",
                                          .usage = "[OPTIONS]",
                                          .line = "Shows the balances of the projects that you may charge.",
                                          .rows = my_rows,
                                          .run = mybalance};
const struct words_tool gold_glsalloc = {.name = "glsalloc",
                                         .usage = "[OPTIONS] [[-i] NUMBER]",
                                         .line = "Lists allocations.",
                                         .rows = allocation_rows,
                                         .run = glsalloc};
const struct words_tool gold_gchalloc = {.name = "gchalloc",
                                         .usage = "[OPTIONS] [-i] NUMBER",
                                         .line = "Changes the times and the credit limit of an allocation.",
                                         .rows = change_rows,
                                         .run = gchalloc};
const struct words_tool gold_grmalloc = {
        .name = "grmalloc",
        .usage = "[OPTIONS] [-i] NUMBER",
        .line = "Ends an allocation now: its rest can not be spent any more.",
        .rows = remove_rows,
        .run = grmalloc};
