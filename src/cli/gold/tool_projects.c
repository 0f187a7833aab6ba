/* gmkproject, gchproject, grmproject, glsproject, gmkaccount, gchaccount, grmaccount, glsaccount: the
 * accounts of the bank, and their members. */
#include <stdio.h>

#include "cli/gold/gold.h"

/* ---- making and changing */

/* Gives each of the users, separated by commas, a role in the account; "none" takes it. */
static int set_users(struct cli *cli, const char *account, const char *users, const char *role,
                     unsigned *count)
{
        struct str rest = str_of(users), one;

        while (rest.n && str_cut(&rest, ',', &one)) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                BUF_CLEANUP struct buf name = {0}, user = {0};
                struct gold_order o;

                if (str_eqz(one, "MEMBERS")) /* members of the project are members of its accounts */
                        continue;
                if (str_starts(one, STR("-")))
                        return cli_error(1,
                                         "\"" STR_FMT "\": a user cannot be left out of an account: name "
                                         "those who may use it",
                                         STR_ARG(one));
                buf_str(&name, str_starts(one, STR("+")) ? str_skip(one, 1)
                               : str_eqz(one, "ANY")     ? STR("*")
                                                         : one);
                if (gold_user(cli, buf_z(&name), &user) != 0)
                        return 1;
                gold_order(&o, "member");
                gold_order_text(&o, "account", account);
                gold_order_text(&o, "user", buf_z(&user));
                gold_order_text(&o, "role", role);
                if (gold_order_send(cli, &o, &answer) != 0)
                        return 1;
                (*count)++;
        }
        return 0;
}

static int open_account(struct cli *cli, const char *account, const char *description)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct gold_order o;

        gold_order(&o, "open");
        gold_order_text(&o, "account", account);
        gold_order_text(&o, "why", description);
        return gold_order_send(cli, &o, &answer);
}

static bool account_is_there(struct cli *cli, const char *account)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view list, one;

        if (api_get(cli, "/v1/bank", &answer) != 0)
                return false;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);)
                if (view_is(view_get(one, "name"), account))
                        return true;
        return false;
}

static int make_account(struct cli *cli, const struct words *w, const char *account)
{
        unsigned count = 0;

        if (account_is_there(cli, account))
                return cli_error(1, "%s exists already", account);
        if (open_account(cli, account, words_text(w, "description")) != 0)
                return 1;
        return set_users(cli, account, words_text(w, "users"), "user", &count);
}

static int gmkproject(struct cli *cli, const struct words *w)
{
        const char *name = gold_account(w);

        if (!name)
                return cli_error(1, "which project? Give its name");
        if (make_account(cli, w, name) != 0)
                return 1;
        gold_say(w, "Successfully created 1 Project");
        gold_say(w, "Auto-generated Account %s", name);
        return 0;
}

static int gmkaccount(struct cli *cli, const struct words *w)
{
        BUF_CLEANUP struct buf account = {0};
        const char *project = words_text(w, "project"), *name = words_text(w, "name");

        name = name ? name : w->word_count ? w->words[0] : NULL;
        if (!name)
                return cli_error(1, "which account? Give its name with -n");
        if (project)
                buf_printf(&account, "%s.", project);
        buf_addz(&account, name);
        if (make_account(cli, w, buf_z(&account)) != 0)
                return 1;
        gold_say(w, "Successfully created Account %s", buf_z(&account));
        return 0;
}

static int close_account(struct cli *cli, const char *account)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct gold_order o;

        gold_order(&o, "close");
        gold_order_text(&o, "account", account);
        return gold_order_send(cli, &o, &answer);
}

static int change_account(struct cli *cli, const char *account, const char *description, const char *state)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct gold_order o;

        gold_order(&o, "account");
        gold_order_text(&o, "account", account);
        gold_order_text(&o, "why", description);
        gold_order_text(&o, "state", state);
        return gold_order_send(cli, &o, &answer);
}

static int change(struct cli *cli, const struct words *w, const char *thing)
{
        const char *account = gold_account(w), *description = words_text(w, "description");
        bool closes = words_has(w, "inactive"), opens = words_has(w, "active");
        unsigned added = 0, removed = 0;
        int code = 0;

        if (!account)
                return cli_error(1, "which %s? Give its name", thing);
        if (!account_is_there(cli, account))
                return cli_error(1, "there is no %s %s, or you are no member of it", thing, account);
        if (closes && opens)
                return cli_error(1, "give one of -A and -I");
        if (description || opens || closes)
                code = change_account(cli, account, description,
                                      opens    ? "active"
                                      : closes ? "inactive"
                                               : NULL);
        if (code == 0 && (description || opens || closes))
                gold_say(w, "Successfully modified 1 %s", thing);
        if (code == 0)
                code = set_users(cli, account, words_text(w, "addUsers"), "user", &added);
        if (code == 0)
                code = set_users(cli, account, words_text(w, "delUsers"), "none", &removed);
        if (added)
                gold_say(w, "Successfully created %u %sUsers", added, thing);
        if (removed)
                gold_say(w, "Successfully deleted %u %sUsers", removed, thing);
        return code;
}

static int gchproject(struct cli *cli, const struct words *w)
{
        return change(cli, w, "Project");
}

static int gchaccount(struct cli *cli, const struct words *w)
{
        return change(cli, w, "Account");
}

static int remove_account(struct cli *cli, const struct words *w, const char *thing)
{
        const char *account = gold_account(w);

        if (!account)
                return cli_error(1, "which %s? Give its name", thing);
        if (close_account(cli, account) != 0)
                return 1;
        gold_say(w, "Successfully closed 1 %s: it is still listed, with what it was charged", thing);
        return 0;
}

static int grmproject(struct cli *cli, const struct words *w)
{
        return remove_account(cli, w, "Project");
}

static int grmaccount(struct cli *cli, const struct words *w)
{
        return remove_account(cli, w, "Account");
}

/* ---- listing */

static void add_users(struct table *t, struct view account)
{
        struct view list = view_get(account, "members"), one;
        BUF_CLEANUP struct buf users = {0};

        for (size_t at = 0; view_next(list, &at, &one);) {
                buf_addz(&users, users.n ? "," : "");
                view_text(view_get(one, "user"), &users);
        }
        table_text(t, buf_view(&users));
}

static void add_description(struct table *t, struct view account)
{
        BUF_CLEANUP struct buf text = {0};

        view_text(view_get(account, "description"), &text);
        table_text(t, buf_view(&text));
}

static bool has_member(struct view account, const char *user)
{
        struct view list = view_get(account, "members"), one;

        for (size_t at = 0; view_next(list, &at, &one);) {
                BUF_CLEANUP struct buf member = {0};

                view_text(view_get(one, "user"), &member);
                /* members are patterns: *@lab */
                if (str_eqz(buf_view(&member), user) || str_eqz(buf_view(&member), "*") ||
                    (str_starts(buf_view(&member), STR("*@")) &&
                     str_ends(str_of(user), str_skip(buf_view(&member), 1))))
                        return true;
        }
        return false;
}

static void add_project(const struct words *w, struct table *t, struct view account)
{
        (void)w;
        table_view(t, view_get(account, "name"));
        table_text(t, view_true(view_get(account, "closed")) ? STR("False") : STR("True"));
        add_users(t, account);
        table_text(t, STR("ANY"));
        add_description(t, account);
}

static void add_account(const struct words *w, struct table *t, struct view account)
{
        table_view(t, view_get(account, "name"));
        table_view(t, view_get(account, "name"));
        gold_units(w, t, view_integer(view_get(account, "balance"), 0));
        table_view(t, view_get(account, "name"));
        add_users(t, account);
        table_text(t, STR("ANY"));
        add_description(t, account);
}

static int list_accounts(struct cli *cli, const struct words *w, const struct table_column *columns,
                         unsigned count, void (*add)(const struct words *w, struct table *t, struct view a))
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf user = {0};
        struct view list, one;
        struct table t;

        if (gold_table(w, &t, columns, count) != 0 || api_get(cli, "/v1/bank", &answer) != 0)
                return 1;
        if (words_text(w, "user") && gold_user(cli, words_text(w, "user"), &user) != 0)
                return 1;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);)
                if (gold_matches(gold_account(w), view_get(one, "name")) &&
                    (!user.n || has_member(one, buf_z(&user))) &&
                    !words_has(w, view_true(view_get(one, "closed")) ? "active" : "inactive"))
                        add(w, &t, one);
        gold_table_print(cli, &t);
        return 0;
}

static int glsproject(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Name"},
                                                      {.title = "Active"},
                                                      {.title = "Users"},
                                                      {.title = "Machines"},
                                                      {.title = "Description"}};

        return list_accounts(cli, w, columns, 5, add_project);
}

static int glsaccount(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {
                {.title = "Id"},         {.title = "Name"},  {.title = "Amount", .right = true},
                {.title = "Projects"},   {.title = "Users"}, {.title = "Machines"},
                {.title = "Description"}};

        return list_accounts(cli, w, columns, 7, add_account);
}

/* ---- tables */

#define USERS                                                                                                \
        {                                                                                                    \
                "users", 'u', WORDS_VALUE, WORDS_ACTS, "USERS", NULL,                                        \
                        "Those who may use it, separated by commas; ANY: everybody; MEMBERS: those of the "  \
                        "project."                                                                           \
        }
#define MACHINES_REFUSED                                                                                     \
        {                                                                                                    \
                "machines", 'm', WORDS_VALUE, WORDS_REFUSED, "MACHINES", NULL,                               \
                        "drover bank deposit --places ties an allocation to machines."                       \
        }
#define ACTIVE                                                                                               \
        {"active", 'A', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Active ones, which all are."},                   \
        {                                                                                                    \
                "inactive", 'I', WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "nothing begins closed."            \
        }
#define LIST_ACTIVE                                                                                          \
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Open ones only."},                             \
        {                                                                                                    \
                "inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Closed ones only."                    \
        }
#define CHANGE_ACTIVE                                                                                        \
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Open it again."},                              \
        {                                                                                                    \
                "inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Close it: it has no credits left."    \
        }
#define ADD_AND_REMOVE                                                                                       \
        {"addUsers", 0, WORDS_VALUE, WORDS_ACTS, "USERS", NULL, "Let these users use it."},                  \
        {                                                                                                    \
                "delUsers", 0, WORDS_VALUE, WORDS_ACTS, "USERS", NULL,                                       \
                        "Let these users not use it any more."                                               \
        }

static const struct words_row make_project_rows[] = {
        GOLD_PROJECT, USERS, MACHINES_REFUSED, GOLD_DESCRIPTION, ACTIVE, GOLD_COMMON, {0}};
static const struct words_row make_account_rows[] = {
        GOLD_PROJECT,
        {"name", 'n', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "Its name; with a project it is PROJECT.NAME."},
        USERS,
        MACHINES_REFUSED,
        GOLD_DESCRIPTION,
        GOLD_COMMON,
        {0}};
static const struct words_row change_project_rows[] = {GOLD_PROJECT,  GOLD_DESCRIPTION, ADD_AND_REMOVE,
                                                       CHANGE_ACTIVE, GOLD_COMMON,      {0}};
static const struct words_row change_account_rows[] = {GOLD_ACCOUNT,  GOLD_DESCRIPTION, ADD_AND_REMOVE,
                                                       CHANGE_ACTIVE, GOLD_COMMON,      {0}};
static const struct words_row remove_project_rows[] = {GOLD_PROJECT, GOLD_COMMON, {0}};
static const struct words_row remove_account_rows[] = {GOLD_ACCOUNT, GOLD_COMMON, {0}};
static const struct words_row list_project_rows[] = {GOLD_PROJECT, GOLD_USER,   LIST_ACTIVE,
                                                     GOLD_LIST,    GOLD_COMMON, {0}};
static const struct words_row list_account_rows[] = {GOLD_ACCOUNT, GOLD_PROJECT, GOLD_USER,   LIST_ACTIVE,
                                                     GOLD_HOURS,   GOLD_LIST,    GOLD_COMMON, {0}};

const struct words_tool gold_gmkproject = {.name = "gmkproject",
                                           .usage = "[OPTIONS] [-p] PROJECT",
                                           .line = "Makes a project, and its account.",
                                           .rows = make_project_rows,
                                           .run = gmkproject};
const struct words_tool gold_gchproject = {.name = "gchproject",
                                           .usage = "[OPTIONS] [-p] PROJECT",
                                           .line = "Changes a project.",
                                           .rows = change_project_rows,
                                           .run = gchproject};
const struct words_tool gold_glsproject = {.name = "glsproject",
                                           .usage = "[OPTIONS] [[-p] PATTERN]",
                                           .line = "Lists projects.",
                                           .rows = list_project_rows,
                                           .run = glsproject};
const struct words_tool gold_gmkaccount = {.name = "gmkaccount",
                                           .usage = "[OPTIONS] [-n] NAME",
                                           .line = "Makes an account.",
                                           .rows = make_account_rows,
                                           .run = gmkaccount};
const struct words_tool gold_gchaccount = {.name = "gchaccount",
                                           .usage = "[OPTIONS] [-a] ACCOUNT",
                                           .line = "Changes an account.",
                                           .rows = change_account_rows,
                                           .run = gchaccount};
const struct words_tool gold_glsaccount = {.name = "glsaccount",
                                           .usage = "[OPTIONS] [[-a] PATTERN]",
                                           .line = "Lists accounts.",
                                           .rows = list_account_rows,
                                           .run = glsaccount};
const struct words_tool gold_grmproject = {.name = "grmproject",
                                           .usage = "[OPTIONS] [-p] PROJECT",
                                           .line = "Closes a project that has no credits.",
                                           .rows = remove_project_rows,
                                           .run = grmproject};
const struct words_tool gold_grmaccount = {.name = "grmaccount",
                                           .usage = "[OPTIONS] [-a] ACCOUNT",
                                           .line = "Closes an account that has no credits.",
                                           .rows = remove_account_rows,
                                           .run = grmaccount};
