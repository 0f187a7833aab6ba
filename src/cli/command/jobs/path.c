/* drover path: shows each server and place that has a job. */
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static const struct table_column columns[] = {
        {"HOP", true, false}, {"SERVER", false, false}, {"JOB", false, false},    {"STATE", false, false},
        {"AGE", true, false}, {"PLACE", false, true},   {"RUNNER", false, false}, {"NATIVE", false, false}};

static void add_hop(struct table *t, struct view hop, unsigned number, int64_t now_ms)
{
        int64_t since_ms = view_integer(view_get(hop, "since_ms"), 0);
        struct buf text BUF_CLEANUP = {0}, server BUF_CLEANUP = {0};

        buf_printf(&text, "%u", number);
        table_text(t, buf_view(&text));
        view_text(view_get(hop, "server"), &server);
        buf_reset(&text);
        view_text(view_get(hop, "domain"), &text);
        buf_printf(&text, " " STR_FMT, STR_ARG(str_head(buf_view(&server), 8)));
        table_text(t, buf_view(&text));
        table_view(t, view_get(hop, "job"));
        table_view(t, view_get(hop, "state"));
        buf_reset(&text);
        human_duration(&text, since_ms ? now_ms - since_ms : 0);
        table_text(t, since_ms ? buf_view(&text) : STR("-"));
        buf_reset(&text);
        if (view_there(view_get(hop, "agent"))) {
                view_text(view_get(hop, "agent"), &text);
                buf_char(&text, '/');
                view_text(view_get(hop, "queue"), &text);
        }
        table_text(t, text.n ? buf_view(&text) : STR("-"));
        table_view(t, view_get(hop, "runner"));
        table_view(t, view_get(hop, "native"));
}

/* Appends "hop 1: making the conda environment of tools.yml, for 3:07, 12M of 1.5G". */
static void add_doing(struct buf *out, struct view hop, int64_t now_ms)
{
        int64_t since_ms = view_integer(view_get(hop, "doing_since_ms"), 0);
        int64_t bytes = view_integer(view_get(hop, "doing_bytes"), 0);
        int64_t all = view_integer(view_get(hop, "doing_bytes_all"), 0);

        if (since_ms) {
                buf_addz(out, ", for ");
                human_duration(out, now_ms - since_ms);
        }
        if (bytes || all) {
                buf_addz(out, ", ");
                human_bytes(out, bytes);
        }
        if (all) {
                buf_addz(out, " of ");
                human_bytes(out, all);
        }
}

/* Appends the runner's own state if it says more: "waiting" for a job that is staging, "suspended" for one
 * that runs. For a job that was handed on, the next hop says it. */
static void add_word(struct buf *out, struct view hop, unsigned number)
{
        struct buf word BUF_CLEANUP = {0}, state BUF_CLEANUP = {0}, runner BUF_CLEANUP = {0};

        if (!view_there(view_get(hop, "word")))
                return;
        view_text(view_get(hop, "word"), &word);
        view_text(view_get(hop, "state"), &state);
        view_text(view_get(hop, "runner"), &runner);
        if (str_eq(buf_view(&word), buf_view(&state)) || str_eqz(buf_view(&runner), "drover"))
                return;
        buf_printf(out, "hop %u: in ", number);
        human_safe(out, buf_view(&runner));
        buf_addz(out, ": ");
        human_safe(out, buf_view(&word));
        buf_char(out, '\n');
}

static void print_words(struct view root, int64_t now_ms)
{
        struct view hops = view_get(root, "hops");
        int64_t failed = view_integer(view_get(root, "failed_hop"), 0);
        static const char *const words[][2] = {{"doing", ""}, {"said", "it waits there: "}, {"error", ""}};
        struct buf out BUF_CLEANUP = {0};
        struct view hop;
        unsigned number = 0;
        size_t at = 0;

        while (view_next(hops, &at, &hop)) {
                number++;
                add_word(&out, hop, number);
                for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                        struct buf text BUF_CLEANUP = {0};

                        if (!view_there(view_get(hop, words[i][0])))
                                continue;
                        view_text(view_get(hop, words[i][0]), &text);
                        buf_printf(&out, "hop %u%s: %s%s", number,
                                   i == 2 && number == failed ? " failed first" : "",
                                   view_is(view_get(hop, "word"), "unreachable") ? "" : words[i][1],
                                   i == 2 && str_starts(buf_view(&text), STR("by user ")) ? "held " : "");
                        human_safe(&out, buf_view(&text));
                        if (i == 0)
                                add_doing(&out, hop, now_ms);
                        buf_char(&out, '\n');
                }
        }
        cli_print(&out);
}

/* ---- as nested ClassAds */

static void put_text(struct buf *out, const char *name, struct view v)
{
        struct buf text BUF_CLEANUP = {0};

        if (!view_there(v))
                return;
        view_safe(v, &text);
        buf_printf(out, "%s = \"", name);
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '"' || text.p[i] == '\\')
                        buf_char(out, '\\');
                buf_char(out, text.p[i]);
        }
        buf_addz(out, "\"; ");
}

static void put_number(struct buf *out, const char *name, struct view v, int64_t unit)
{
        if (view_there(v))
                buf_printf(out, "%s = %lld; ", name, (long long)(view_integer(v, 0) / unit));
}

static void print_ad(struct view root, struct buf *out)
{
        static const char *const names[][2] = {
                {"Server", "server"}, {"Domain", "domain"}, {"Job", "job"},     {"Owner", "owner"},
                {"State", "state"},   {"Agent", "agent"},   {"Queue", "queue"}, {"Runner", "runner"},
                {"Native", "native"}, {"Word", "word"},     {"Said", "said"},   {"Doing", "doing"},
                {"Error", "error"}};
        struct view hop;
        unsigned depth = 0;
        size_t at = 0;

        buf_addz(out, "[ ");
        put_text(out, "Summary", view_get(root, "summary"));
        if (view_there(view_get(root, "failed_hop")))
                buf_printf(out, "FailedHop = %lld; ",
                           (long long)view_integer(view_get(root, "failed_hop"), 0));
        for (; view_next(view_get(root, "hops"), &at, &hop); depth++) {
                buf_addz(out, depth ? "Next = [ " : "Path = [ ");
                for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                        put_text(out, names[i][0], view_get(hop, names[i][1]));
                put_number(out, "DoingSince", view_get(hop, "doing_since_ms"), 1000);
                put_number(out, "DoingBytes", view_get(hop, "doing_bytes"), 1);
                put_number(out, "DoingBytesAll", view_get(hop, "doing_bytes_all"), 1);
                buf_printf(out, "Since = %lld; ",
                           (long long)view_integer(view_get(hop, "since_ms"), 0) / 1000);
        }
        while (depth-- > 0)
                buf_addz(out, "] ");
        buf_addz(out, "]\n");
}

int cmd_path(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0}, checked BUF_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view hop;
        unsigned number = 0;
        size_t at = 0;
        int code = jobs_ids(o->words, o->word_count, &checked);

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        if (code != 0)
                return code;
        buf_printf(&path, "/v1/jobs/%s%s/path", o->words[0], strchr(o->words[0], '.') ? "" : ".0");
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0)
                return code;
        if (cli->json) {
                buf_str(&out, answer.root.text);
                buf_char(&out, '\n');
        } else if (options_flag(o, "ad")) {
                print_ad(answer.root, &out);
        } else {
                view_safe(view_get(answer.root, "summary"), &out);
                buf_addz(&out, "\n");
        }
        cli_print(&out);
        if (cli->json || options_flag(o, "ad"))
                return CLI_OK;
        while (view_next(view_get(answer.root, "hops"), &at, &hop))
                add_hop(&t, hop, ++number, cli->now_ms);
        cli_print_table(cli, &t);
        print_words(answer.root, cli->now_ms);
        return CLI_OK;
}
