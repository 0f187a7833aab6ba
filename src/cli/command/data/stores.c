/* drover stores: the stores, the links to them and their space, and orders about the latter. */
#include "base/format/json.h"
#include "base/format/quantity.h"
#include "base/format/url.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {{"STORE", false, true},     {"LABELS", false, false},
                                              {"AGENT", false, true},     {"LATENCY", true, false},
                                              {"BANDWIDTH", true, false}, {"MEASURED", true, false},
                                              {"ANSWERS", false, false},  {"URL", false, true}};

static void add_words(struct table *t, struct view words)
{
        struct buf text BUF_CLEANUP = {0};
        struct view one;
        size_t at = 0;

        while (view_next(words, &at, &one)) {
                if (text.n)
                        buf_char(&text, ',');
                view_text(one, &text);
        }
        table_text(t, buf_view(&text));
}

/* Adds "yes", or since when the store does not answer; nothing when no agent has asked it. */
static void add_answers(struct cli *cli, struct table *t, struct view link)
{
        int64_t down_ms = view_integer(view_get(link, "down_ms"), 0);
        struct buf text BUF_CLEANUP = {0};

        if (down_ms) {
                buf_addz(&text, "not for ");
                human_duration(&text, cli->now_ms - down_ms);
        } else if (view_there(link)) {
                buf_addz(&text, "yes");
        }
        table_text(t, buf_view(&text));
        if (down_ms)
                table_paint(t, TABLE_RED);
}

/* Prints what agents reported about stores that do not answer. */
static void say_down(struct buf *out, struct view stores)
{
        struct buf text BUF_CLEANUP = {0};
        struct view store, link;

        for (size_t at = 0; view_next(stores, &at, &store);)
                for (size_t k = 0; view_next(view_get(store, "links"), &k, &link);) {
                        if (!view_there(view_get(link, "down_why")))
                                continue;
                        buf_reset(&text);
                        view_text(view_get(store, "name"), &text);
                        buf_addz(&text, " does not answer ");
                        view_text(view_get(link, "agent"), &text);
                        buf_addz(&text, ": ");
                        view_text(view_get(link, "down_why"), &text);
                        buf_addz(out, out->n ? "" : "\n");
                        human_safe(out, buf_view(&text));
                        buf_char(out, '\n');
                }
}

static void add_bytes(struct buf *out, struct view v, const char *name)
{
        human_bytes(out, view_integer(view_get(v, name), 0));
}

/* "  lot run7 of ann@lab: 1.5G of 10G used, 2G claimed by running jobs, for 23:12:07" */
static void say_lot(struct cli *cli, struct buf *out, struct view lot)
{
        bool named = view_there(view_get(lot, "name"));

        buf_addz(out, named ? "  lot " : "  files");
        if (named)
                view_safe(view_get(lot, "name"), out);
        buf_addz(out, " of ");
        view_safe(view_get(lot, "owner"), out);
        buf_addz(out, ": ");
        add_bytes(out, lot, "used_bytes");
        if (named) {
                buf_addz(out, " of ");
                add_bytes(out, lot, "size_bytes");
                buf_addz(out, " used, ");
                add_bytes(out, lot, "claimed_bytes");
                buf_addz(out, " claimed by running jobs, for ");
                human_duration(out, view_integer(view_get(lot, "expires_ms"), 0) - cli->now_ms);
        }
        buf_char(out, '\n');
}

/* "dav: of 10T files have 3T, lots 1T, running jobs 20G; 5.9T are left, and the store has 6T free" */
static void say_space(struct cli *cli, struct buf *out, struct view stores)
{
        struct view store, lot;

        for (size_t at = 0; view_next(stores, &at, &store);) {
                struct view space = view_get(store, "space");

                if (!view_there(space))
                        continue;
                buf_addz(out, out->n ? "" : "\n");
                view_safe(view_get(store, "name"), out);
                buf_addz(out, ": of ");
                add_bytes(out, store, "capacity_bytes");
                buf_addz(out, " files have ");
                add_bytes(out, space, "files_bytes");
                buf_addz(out, ", lots ");
                add_bytes(out, space, "reserved_bytes");
                buf_addz(out, ", running jobs ");
                add_bytes(out, space, "claimed_bytes");
                buf_addz(out, "; ");
                add_bytes(out, space, "left_bytes");
                buf_addz(out, " are left");
                if (view_there(view_get(space, "free_bytes"))) {
                        buf_addz(out, ", and the store has ");
                        add_bytes(out, space, "free_bytes");
                        buf_addz(out, " free");
                }
                buf_char(out, '\n');
                for (size_t k = 0; view_next(view_get(space, "lots"), &k, &lot);)
                        say_lot(cli, out, lot);
        }
}

/* Adds a row for each agent that has measured the store, or one row without an agent. */
static void add_link(struct cli *cli, struct table *t, struct view store, struct view link)
{
        int64_t measured_ms = view_integer(view_get(link, "measured_ms"), 0);
        int64_t latency_us = view_integer(view_get(link, "latency_us"), 0);
        struct buf text BUF_CLEANUP = {0};
        struct view url = {STR_NONE};
        size_t at = 0;

        table_view(t, view_get(store, "name"));
        add_words(t, view_get(store, "labels"));
        table_view(t, view_get(link, "agent"));
        if (measured_ms)
                buf_printf(&text, "%lld.%01lldms", (long long)(latency_us / 1000),
                           (long long)(latency_us / 100 % 10));
        table_text(t, buf_view(&text));
        buf_reset(&text);
        if (measured_ms && view_integer(view_get(link, "bytes_per_s"), 0) == 0) {
                buf_char(&text, '?');
        } else if (measured_ms) {
                human_bytes(&text, view_integer(view_get(link, "bytes_per_s"), 0));
                buf_addz(&text, "/s");
        }
        table_text(t, buf_view(&text));
        buf_reset(&text);
        if (measured_ms)
                human_duration(&text, cli->now_ms - measured_ms);
        table_text(t, buf_view(&text));
        add_answers(cli, t, link);
        view_next(view_get(store, "urls"), &at, &url);
        table_view(t, url);
}

static void add_store(struct cli *cli, struct table *t, struct view store)
{
        struct view links = view_get(store, "links"), link;
        size_t at = 0, n = 0;

        for (; view_next(links, &at, &link); n++)
                add_link(cli, t, store, link);
        if (n == 0)
                add_link(cli, t, store, (struct view){STR_NONE});
}

/* STORE/LOT is released, or what the owner has in STORE=SIZE is set. */
static int order(struct cli *cli, const struct options *o, struct str rest, bool release)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
        const char *owner = options_text(o, "owner");
        struct json j = {.out = &body};
        struct str store;
        uint64_t bytes = 0;
        struct err err = {""};
        int rc;

        if (!str_cut(&rest, release ? '/' : '=', &store) || !store.n || !rest.n ||
            (!release && quantity_size(rest, &bytes) != 0))
                return cli_error(CLI_USAGE, release ? "--release takes STORE/LOT"
                                                    : "--used takes STORE=SIZE, as in dav=120G");
        if (!release && !owner)
                return cli_error(CLI_USAGE, "with --used say whose files they are: --owner ann@lab");
        buf_addz(&path, "/v1/stores/");
        url_escape(&path, store);
        json_open(&j, '{');
        if (release)
                json_kstr(&j, "release", rest);
        else
                json_kint(&j, "used_bytes", (int64_t)bytes);
        if (owner)
                json_kstrz(&j, "owner", owner);
        json_close(&j, '}');
        rc = api_call(cli,
                      &(struct api_request){.method = "POST", .path = buf_z(&path), .body = buf_view(&body)},
                      &answer, &err);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        api_print_json(cli, &answer);
        return CLI_OK;
}

static void say_below(struct cli *cli, struct buf *out, struct view stores)
{
        say_down(out, stores);
        say_space(cli, out, stores);
}

int cmd_stores(struct cli *cli, const struct options *o)
{
        const char *release = options_text(o, "release"), *used = options_text(o, "used");

        if (release && used)
                return cli_error(CLI_USAGE, "one of --release and --used");
        if (release || used)
                return order(cli, o, str_of(release ? release : used), release != NULL);
        return api_table(cli,
                         &(struct api_table){
                                 .path = "/v1/stores",
                                 .array = "stores",
                                 .none = "no stores: they are configured in droverd.yaml, see droverd(8)\n",
                                 .columns = columns,
                                 .column_count = sizeof(columns) / sizeof(columns[0]),
                                 .row = add_store,
                                 .below = say_below,
                         });
}
