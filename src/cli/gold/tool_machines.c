/* gmkmachine, gchmachine, grmmachine, glsmachine: the bank's register of machines. */
#include "cli/gold/gold.h"

static const char *machine_named(const struct words *w)
{
        return words_text(w, "machine") ? words_text(w, "machine") : w->word_count ? w->words[0] : NULL;
}

static int order_machine(struct cli *cli, const struct words *w, const char *op, const char *done)
{
        static const char *const texts[][2] = {{"arch", "arch"}, {"opsys", "opsys"}, {"description", "why"}};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        const char *name = machine_named(w);
        bool changes = strcmp(op, "unregister") != 0;
        struct gold_order o;
        int code;

        if (!name)
                return cli_error(1, "which machine? Give its name");
        gold_order(&o, op);
        gold_order_text(&o, "place", name);
        for (size_t i = 0; changes && i < 3; i++)
                gold_order_text(&o, texts[i][1], words_text(w, texts[i][0]));
        if (changes && (words_has(w, "active") || words_has(w, "inactive")))
                gold_order_text(&o, "state",
                                words_place(w, "inactive") > words_place(w, "active") ? "inactive"
                                                                                      : "active");
        code = gold_order_send(cli, &o, &answer);
        if (code == 0)
                gold_say(w, "Successfully %s 1 Machine", done);
        return code;
}

static int gmkmachine(struct cli *cli, const struct words *w)
{
        return order_machine(cli, w, "register", "created");
}

static int gchmachine(struct cli *cli, const struct words *w)
{
        return order_machine(cli, w, "machine", "modified");
}

static int grmmachine(struct cli *cli, const struct words *w)
{
        return order_machine(cli, w, "unregister", "deleted");
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

/* Returns whether -A and -I leave the machine in. */
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

                if (gold_matches(machine_named(w), view_get(one, "name")) && is_asked_for(w, active))
                        (empty ? add_agent : add_registered)(&t, one);
        }
        gold_table_print(cli, &t);
        return 0;
}

/* ---- tables */

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
