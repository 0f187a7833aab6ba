/* drover reserve: reservations of capacity at places for a time. */
#include <stdio.h>

#include "base/format/json.h"
#include "base/format/quantity.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

#define DAY_S       86400
#define SECONDS_MAX 3000000000ll

static const struct table_column columns[] = {
        {"ID", true, false},    {"STATE", false, false},  {"START", true, false}, {"END", true, false},
        {"EVERY", true, false}, {"PLACES", true, false},  {"CPUS", true, false},  {"USED", true, false},
        {"OWNER", false, true}, {"ACCOUNT", false, true}, {"REASON", false, true}};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void add_reservation(struct cli *cli, struct table *t, struct view r)
{
        struct view places = view_get(r, "places"), p;
        int64_t cpus = 0, used = 0, every_ms = view_integer(view_get(r, "every_ms"), 0);
        size_t n = 0;

        for (size_t at = 0; view_next(places, &at, &p); n++) {
                cpus += view_integer(view_get(p, "cpus"), 0);
                used += view_integer(view_get(p, "used_cpus"), 0);
        }
        table_view(t, view_get(r, "id"));
        if (view_true(view_get(r, "maintenance")))
                table_text(t, STR("maintenance"));
        else
                table_view(t, view_get(r, "state"));
        table_time(t, view_integer(view_get(r, "start_ms"), 0), cli->now_ms);
        table_time(t, view_integer(view_get(r, "end_ms"), 0), cli->now_ms);
        if (every_ms)
                table_duration(t, every_ms);
        else
                table_text(t, STR("-"));
        table_format(t, "%zu", n);
        table_format(t, "%lld", (long long)cpus);
        table_format(t, "%lld", (long long)used);
        table_view(t, view_get(r, "owner"));
        table_view(t, view_get(r, "account"));
        table_view(t, view_get(r, "reason"));
}

static int list(struct cli *cli)
{
        return api_table(cli, &(struct api_table){.path = "/v1/reservations",
                                                  .array = "reservations",
                                                  .none = "nothing is reserved\n",
                                                  .columns = columns,
                                                  .column_count = COLUMNS,
                                                  .row = add_reservation});
}

/* ---- one reservation */

static void print_line(struct buf *out, const char *what, struct view v)
{
        struct buf text BUF_CLEANUP = {0};

        if (!view_there(v))
                return;
        view_text(v, &text);
        buf_printf(out, "%-12s ", what);
        human_safe(out, buf_view(&text));
        buf_char(out, '\n');
}

static void print_time(struct cli *cli, struct buf *out, const char *what, struct view v)
{
        buf_printf(out, "%-12s ", what);
        human_time(out, view_integer(v, 0), cli->now_ms);
        buf_char(out, '\n');
}

static void print_reservation(struct cli *cli, struct view r)
{
        struct buf out BUF_CLEANUP = {0};
        struct view places = view_get(r, "places"), p;

        print_line(&out, "reservation", view_get(r, "id"));
        print_line(&out, "state", view_get(r, "state"));
        print_line(&out, "job", view_get(r, "job"));
        print_line(&out, "owner", view_get(r, "owner"));
        print_time(cli, &out, "start", view_get(r, "start_ms"));
        print_time(cli, &out, "end", view_get(r, "end_ms"));
        if (view_there(view_get(r, "every_ms"))) {
                buf_printf(&out, "%-12s ", "every");
                human_duration(&out, view_integer(view_get(r, "every_ms"), 0));
                buf_char(&out, '\n');
        }
        if (view_there(view_get(r, "until_ms")))
                print_time(cli, &out, "until", view_get(r, "until_ms"));
        print_line(&out, "users", view_get(r, "users"));
        print_line(&out, "groups", view_get(r, "groups"));
        print_line(&out, "account", view_get(r, "account"));
        print_line(&out, "reason", view_get(r, "reason"));
        print_line(&out, "maintenance", view_get(r, "maintenance"));
        for (size_t at = 0; view_next(places, &at, &p);) {
                buf_printf(&out, "%-12s ", "place");
                view_text(view_get(p, "agent"), &out);
                buf_char(&out, '/');
                view_text(view_get(p, "queue"), &out);
                buf_printf(&out, ", %lld processors, %lld MiB, %lld processors in use by %lld jobs\n",
                           (long long)view_integer(view_get(p, "cpus"), 0),
                           (long long)view_integer(view_get(p, "memory_mib"), 0),
                           (long long)view_integer(view_get(p, "used_cpus"), 0),
                           (long long)view_integer(view_get(p, "attempts"), 0));
        }
        cli_print(&out);
}

static int reserve_path_of(struct buf *out, const char *number)
{
        uint64_t id;

        if (str_to_u64(str_of(number), &id) != 0)
                return cli_error(CLI_USAGE,
                                 "'%s' is not the number of a reservation: see drover reserve list", number);
        buf_printf(out, "/v1/reservations/%llu", (unsigned long long)id);
        return 0;
}

static int reservation_show(struct cli *cli, const char *number)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        int code = reserve_path_of(&path, number);

        if (code == 0)
                code = api_get(cli, buf_z(&path), &answer);
        if (code == 0 && !api_print_json(cli, &answer))
                print_reservation(cli, answer.root);
        return code;
}

static int reservation_end(struct cli *cli, const char *number)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct err err = {""};
        int code = reserve_path_of(&path, number), rc;

        if (code != 0)
                return code;
        rc = api_call(cli, &(struct api_request){.method = "DELETE", .path = buf_z(&path)}, &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        api_print_json(cli, &answer);
        return CLI_OK;
}

/* ---- making a reservation */

static int add_every(struct json *j, const char *text)
{
        struct err err = {""};
        int64_t s;

        if (!text)
                return 0;
        if (strcmp(text, "day") == 0)
                s = DAY_S;
        else if (strcmp(text, "week") == 0)
                s = 7 * DAY_S;
        else if (human_to_seconds(str_of(text), &s, &err) != 0 || s <= 0 || s > SECONDS_MAX)
                return cli_error(CLI_USAGE, "--every: '%s' is not a time: write day, week or 12h", text);
        json_kint(j, "every_ms", s * 1000);
        return 0;
}

static int reserve_add_number(struct json *j, const struct options *o, const char *option, const char *key,
                              int64_t scale)
{
        int64_t n = options_number(o, option, -1);

        if (!options_text(o, option))
                return 0;
        if (n < 0 || n > SECONDS_MAX)
                return cli_error(CLI_USAGE, "--%s must be from 0 to %lld", option, (long long)SECONDS_MAX);
        json_kint(j, key, n * scale);
        return 0;
}

static int add_memory(struct json *j, const char *text)
{
        uint64_t bytes;

        if (!text)
                return 0;
        if (quantity_size(str_of(text), &bytes) != 0)
                return cli_error(CLI_USAGE, "--memory: '%s' is not a size: write 16G or 500M", text);
        json_kint(j, "memory_mib", (int64_t)(bytes >> 20));
        return 0;
}

/* Adds a group as one more condition. */
static void add_where(struct json *j, const char *where, const char *group)
{
        struct buf text BUF_CLEANUP = {0};

        if (!where && !group)
                return;
        if (where)
                buf_printf(&text, "(%s)", where);
        if (group) {
                buf_addz(&text,
                         where ? " && ParallelSchedulingGroup == \"" : "ParallelSchedulingGroup == \"");
                for (const char *p = group; *p; p++) {
                        if (*p == '"' || *p == '\\')
                                buf_char(&text, '\\');
                        buf_char(&text, *p);
                }
                buf_char(&text, '"');
        }
        json_kstr(j, "where", buf_view(&text));
}

static int add_times(struct json *j, const struct options *o)
{
        int64_t start_ms = 0, until_ms = 0;
        int code = cli_time(o, "from", &start_ms);

        if (code == 0)
                code = cli_time(o, "until", &until_ms);
        if (code == 0 && !options_text(o, "for"))
                code = cli_error(CLI_USAGE, "--for is missing: how long the room is needed");
        if (code == 0)
                code = reserve_add_number(j, o, "for", "duration_ms", 1000);
        if (code == 0)
                code = add_every(j, options_text(o, "every"));
        if (start_ms)
                json_kint(j, "start_ms", start_ms);
        if (until_ms)
                json_kint(j, "until_ms", until_ms);
        return code;
}

static int write_order(struct json *j, const struct options *o)
{
        static const char *const texts[] = {"users", "groups", "account", "reason"};
        static const char *const flags[] = {"maintenance", "evict"};
        const char *place;
        int code;

        json_open(j, '{');
        json_key(j, "places");
        json_open(j, '[');
        for (size_t at = 0; (place = options_list(o, "queue", &at)) != NULL;)
                json_strz(j, place);
        json_close(j, ']');
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (options_text(o, texts[i]))
                        json_kstrz(j, texts[i], options_text(o, texts[i]));
        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
                if (options_flag(o, flags[i]))
                        json_kbool(j, flags[i], true);
        if (options_flag(o, "dry-run"))
                json_kbool(j, "check_only", true);
        add_where(j, options_text(o, "where"), options_text(o, "group"));
        code = add_times(j, o);
        if (code == 0)
                code = reserve_add_number(j, o, "nodes", "nodes", 1);
        if (code == 0)
                code = reserve_add_number(j, o, "cpus", "cpus", 1);
        if (code == 0)
                code = add_memory(j, options_text(o, "memory"));
        json_close(j, '}');
        return code;
}

static int reservation_make(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        int code = write_order(&j, o);

        if (code == 0)
                code = api_post(cli, "/v1/reservations", buf_view(&body), &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        if (options_flag(o, "dry-run"))
                buf_addz(&out, "possible");
        else
                view_text(view_get(view_get(answer.root, "reservation"), "id"), &out);
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

int cmd_reserve(struct cli *cli, const struct options *o)
{
        static const char making[] = "queue where group nodes cpus memory from for every until users groups "
                                     "account maintenance evict reason dry-run";
        const char *word = o->word_count ? o->words[0] : NULL;
        bool lists = word && strcmp(word, "list") == 0 && o->word_count == 1;
        bool shows = word && strcmp(word, "show") == 0 && o->word_count == 2;
        bool ends = word && strcmp(word, "end") == 0 && o->word_count == 2;
        struct buf name BUF_CLEANUP = {0};

        if (word && !lists && !shows && !ends)
                return cli_error(
                        CLI_USAGE,
                        "drover reserve has list, show NUMBER and end NUMBER: see drover reserve --help");
        buf_printf(&name, "reserve %s", word ? word : "without a subcommand");
        if (cli_check_options(o, buf_z(&name), word ? "" : making, lists) != 0)
                return CLI_USAGE;
        if (lists)
                return list(cli);
        if (shows)
                return reservation_show(cli, o->words[1]);
        return ends ? reservation_end(cli, o->words[1]) : reservation_make(cli, o);
}
