/* gmkmachine, gchmachine, grmmachine, glsmachine, gmkuser, gchuser, grmuser, glsuser: the bank's registers of
 * machines and of users. */
#include "base/map.h"
#include "cli/gold/gold.h"

static const char *entry_named(const struct words *w, const char *option)
{
        return words_text(w, option) ? words_text(w, option) : w->word_count ? w->words[0] : NULL;
}

/* Sends an order about a machine; `user`: about a user, whose name gets the server's domain. */
static int order_entry(struct cli *cli, const struct words *w, bool user, const char *op, const char *done)
{
        static const char *const texts[][2] = {{"description", "why"}, {"arch", "arch"}, {"opsys", "opsys"}};
        const char *thing = user ? "user" : "machine", *name = entry_named(w, thing);
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf principal = {0};
        bool changes = strcmp(op, "unregister") != 0;
        struct gold_order o;
        int code;

        if (!name)
                return cli_error(1, "which %s? Give its name", thing);
        if (user && gold_user(cli, name, &principal) != 0)
                return 1;
        gold_order(&o, op);
        gold_order_text(&o, user ? "user" : "place", user ? buf_z(&principal) : name);
        for (size_t i = 0; changes && i < (user ? 1 : 3); i++)
                gold_order_text(&o, texts[i][1], words_text(w, texts[i][0]));
        if (changes && (words_has(w, "active") || words_has(w, "inactive")))
                gold_order_text(&o, "state",
                                words_place(w, "inactive") > words_place(w, "active") ? "inactive"
                                                                                      : "active");
        code = gold_order_send(cli, &o, &answer);
        if (code == 0)
                gold_say(w, "Successfully %s 1 %s", done, user ? "User" : "Machine");
        return code;
}

static int gmkmachine(struct cli *cli, const struct words *w)
{
        return order_entry(cli, w, false, "register", "created");
}

static int gchmachine(struct cli *cli, const struct words *w)
{
        return order_entry(cli, w, false, "machine", "modified");
}

static int grmmachine(struct cli *cli, const struct words *w)
{
        return order_entry(cli, w, false, "unregister", "deleted");
}

static int gmkuser(struct cli *cli, const struct words *w)
{
        return order_entry(cli, w, true, "register", "created");
}

static int gchuser(struct cli *cli, const struct words *w)
{
        return order_entry(cli, w, true, "user", "modified");
}

static int grmuser(struct cli *cli, const struct words *w)
{
        return order_entry(cli, w, true, "unregister", "deleted");
}

static int gchpasswd(struct cli *cli, const struct words *w)
{
        (void)cli;
        (void)w;
        return cli_error(1, "there are no passwords here: drover token user makes a token for a user");
}

/* ---- listing */

static void add_text(struct table *t, struct view v)
{
        if (view_there(v))
                table_view(t, v);
        else
                table_text(t, STR(""));
}

static void add_registered(struct table *t, struct view x)
{
        table_view(t, view_get(x, "name"));
        table_text(t, view_true(view_get(x, "active")) ? STR("True") : STR("False"));
        add_text(t, view_get(x, "arch"));
        add_text(t, view_get(x, "opsys"));
        add_text(t, view_get(x, "description"));
}

static void add_agent(struct table *t, struct view x)
{
        struct view queues = view_get(x, "queues"), queue;
        size_t at = 0;

        table_view(t, view_get(x, "name"));
        table_text(t, view_is(view_get(x, "state"), "connected") ? STR("True") : STR("False"));
        queue = view_next(queues, &at, &queue) ? view_get(queue, "ad") : (struct view){0};
        table_view(t, view_get(queue, "Arch"));
        table_view(t, view_get(queue, "OpSys"));
        table_view(t, view_get(x, "host"));
}

/* Returns whether -A and -I leave the machine or the user in. */
static bool is_asked_for(const struct words *w, bool active)
{
        if (words_has(w, "active") == words_has(w, "inactive"))
                return true;
        return words_has(w, "active") == active;
}

static int glsmachine(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Name"},
                                                      {.title = "Active"},
                                                      {.title = "Architecture"},
                                                      {.title = "OperatingSystem"},
                                                      {.title = "Description"}};
        struct api_answer registered API_ANSWER_CLEANUP = {0}, agents API_ANSWER_CLEANUP = {0};
        struct view list, one;
        size_t first = 0;
        struct table t;
        bool empty;

        if (gold_table(w, &t, columns, 5) != 0 || api_get(cli, "/v1/bank/machines", &registered) != 0)
                return 1;
        list = view_get(registered.root, "machines");
        empty = !view_next(list, &first, &one);
        if (empty && api_get(cli, "/v1/agents", &agents) != 0)
                return 1;
        if (empty)
                list = view_get(agents.root, "agents");
        for (size_t at = 0; view_next(list, &at, &one);) {
                bool active = empty ? view_is(view_get(one, "state"), "connected")
                                    : view_true(view_get(one, "active"));

                if (gold_matches(entry_named(w, "machine"), view_get(one, "name")) && is_asked_for(w, active))
                        (empty ? add_agent : add_registered)(&t, one);
        }
        gold_table_print(cli, &t);
        return 0;
}

static void add_user(struct table *t, struct str name, bool active, struct view project, struct view text)
{
        table_text(t, name);
        table_text(t, active ? STR("True") : STR("False"));
        add_text(t, project);
        add_text(t, text);
}

/* Adds the members of an account who were not seen before. A registered one is in `known`. */
static void add_members(const struct words *w, struct table *t, struct map *known, struct map *seen,
                        struct view account)
{
        struct view list = view_get(account, "members"), member;

        for (size_t at = 0; view_next(list, &at, &member);) {
                BUF_CLEANUP struct buf name = {0};
                const struct view *entry;
                bool active;

                view_text(view_get(member, "user"), &name);
                entry = map_get(known, buf_view(&name));
                active = !entry || view_true(view_get(*entry, "active"));
                if (map_get(seen, buf_view(&name)) || !is_asked_for(w, active) ||
                    !gold_matches(entry_named(w, "user"), view_get(member, "user")))
                        continue;
                map_put(seen, buf_view(&name), seen);
                add_user(t, buf_view(&name), active, view_get(account, "name"),
                         entry ? view_get(*entry, "description") : (struct view){0});
        }
}

static int glsuser(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Name"},
                                                      {.title = "Active"},
                                                      {.title = "DefaultProject"},
                                                      {.title = "Description"}};
        struct api_answer answer API_ANSWER_CLEANUP = {0}, registered API_ANSWER_CLEANUP = {0};
        struct map *known, *seen;
        struct view list, one;
        struct table t;
        void *value;

        if (gold_table(w, &t, columns, 4) != 0 || api_get(cli, "/v1/bank", &answer) != 0 ||
            api_get(cli, "/v1/bank/users", &registered) != 0)
                return 1;
        known = map_new();
        seen = map_new();
        list = view_get(registered.root, "users");
        for (size_t at = 0; view_next(list, &at, &one);) {
                BUF_CLEANUP struct buf name = {0};
                struct view *entry = mem_new(struct view);

                *entry = one;
                view_text(view_get(one, "name"), &name);
                map_put(known, buf_view(&name), entry);
        }
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; view_next(list, &at, &one);)
                add_members(w, &t, known, seen, one);
        list = view_get(registered.root, "users"); /* those who are members of no account */
        for (size_t at = 0; view_next(list, &at, &one);) {
                BUF_CLEANUP struct buf name = {0};
                bool active = view_true(view_get(one, "active"));

                view_text(view_get(one, "name"), &name);
                if (!map_get(seen, buf_view(&name)) && is_asked_for(w, active) &&
                    gold_matches(entry_named(w, "user"), view_get(one, "name")))
                        add_user(&t, buf_view(&name), active, (struct view){0}, view_get(one, "description"));
        }
        for (size_t at = 0; map_next(known, &at, NULL, &value);)
                free(value);
        map_free(known);
        map_free(seen);
        gold_table_print(cli, &t);
        return 0;
}

/* ---- tables */

#define UNKNOWN_USER                                                                                         \
        {"commonName", 'n', WORDS_VALUE, WORDS_NAMED, "NAME", NULL, "The description can have it."},         \
                {"phoneNumber",                                                                              \
                 'F',                                                                                        \
                 WORDS_VALUE,                                                                                \
                 WORDS_NAMED,                                                                                \
                 "NUMBER",                                                                                   \
                 NULL,                                                                                       \
                 "The description can have it."},                                                            \
                {"emailAddress",                                                                             \
                 'E',                                                                                        \
                 WORDS_VALUE,                                                                                \
                 WORDS_NAMED,                                                                                \
                 "ADDRESS",                                                                                  \
                 NULL,                                                                                       \
                 "The description can have it."},                                                            \
        {                                                                                                    \
                "defaultProject", 'p', WORDS_VALUE, WORDS_NAMED, "PROJECT", NULL, "A job names its project." \
        }

#define STATE                                                                                                \
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Active: it gets quotes and reservations."},    \
        {                                                                                                    \
                "inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL,                                        \
                        "Inactive: it gets neither quotes nor reservations."                                 \
        }
#define TEXTS                                                                                                \
        {"arch", 0, WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "Its architecture."},                             \
                {"opsys", 0, WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "Its operating system."},                \
                GOLD_DESCRIPTION

static const struct words_row make_rows[] = {GOLD_MACHINE, STATE, TEXTS, GOLD_COMMON, {0}};
static const struct words_row remove_rows[] = {GOLD_MACHINE, GOLD_COMMON, {0}};
static const struct words_row make_user_rows[] = {
        GOLD_USER,
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Active: the user gets quotes and reservations."},
        {"inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL,
         "Inactive: the user gets no quotes, no reservations and no jobs that a project pays for."},
        GOLD_DESCRIPTION,
        UNKNOWN_USER,
        GOLD_COMMON,
        {0}};
static const struct words_row remove_user_rows[] = {GOLD_USER, GOLD_COMMON, {0}};
static const struct words_row list_user_rows[] = {
        GOLD_USER,
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only active ones."},
        {"inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only inactive ones."},
        GOLD_LIST,
        GOLD_COMMON,
        {0}};
static const struct words_row list_rows[] = {
        GOLD_MACHINE,
        {"active", 'A', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only active ones."},
        {"inactive", 'I', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Only inactive ones."},
        GOLD_LIST,
        GOLD_COMMON,
        {0}};

const struct words_tool gold_gmkmachine = {.name = "gmkmachine",
                                           .usage = "[OPTIONS] [-m] MACHINE",
                                           .line = "Registers a machine.",
                                           .rows = make_rows,
                                           .run = gmkmachine};
const struct words_tool gold_gchmachine = {.name = "gchmachine",
                                           .usage = "[OPTIONS] [-m] MACHINE",
                                           .line = "Changes a machine.",
                                           .rows = make_rows,
                                           .run = gchmachine};
const struct words_tool gold_grmmachine = {.name = "grmmachine",
                                           .usage = "[OPTIONS] [-m] MACHINE",
                                           .line = "Removes a machine from the register.",
                                           .rows = remove_rows,
                                           .run = grmmachine};
const struct words_tool gold_glsmachine = {.name = "glsmachine",
                                           .usage = "[OPTIONS] [[-m] PATTERN]",
                                           .line = "Lists machines; agents, while none is registered.",
                                           .rows = list_rows,
                                           .run = glsmachine};
const struct words_tool gold_gmkuser = {.name = "gmkuser",
                                        .usage = "[OPTIONS] [-u] USER",
                                        .line = "Registers a user.",
                                        .rows = make_user_rows,
                                        .run = gmkuser};
const struct words_tool gold_gchuser = {.name = "gchuser",
                                        .usage = "[OPTIONS] [-u] USER",
                                        .line = "Changes a registered user.",
                                        .rows = make_user_rows,
                                        .run = gchuser};
const struct words_tool gold_grmuser = {.name = "grmuser",
                                        .usage = "[OPTIONS] [-u] USER",
                                        .line = "Removes a user from the register.",
                                        .rows = remove_user_rows,
                                        .run = grmuser};
const struct words_tool gold_glsuser = {.name = "glsuser",
                                        .usage = "[OPTIONS] [[-u] PATTERN]",
                                        .line = "Lists the members of accounts, and registered users.",
                                        .rows = list_user_rows,
                                        .run = glsuser};
const struct words_tool gold_gchpasswd = {.name = "gchpasswd",
                                          .usage = "[[-u] USER]",
                                          .line = "Is refused: drover token user makes a token.",
                                          .rows = remove_user_rows,
                                          .run = gchpasswd};
