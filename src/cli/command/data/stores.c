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

int cmd_stores(struct cli *cli, const struct options *o)
{
        (void)o;
        return api_table(cli,
                         &(struct api_table){
                                 .path = "/v1/stores",
                                 .array = "stores",
                                 .none = "no stores: they are configured in droverd.yaml, see droverd(8)\n",
                                 .columns = columns,
                                 .column_count = sizeof(columns) / sizeof(columns[0]),
                                 .row = add_store,
                                 .below = say_down,
                         });
}
