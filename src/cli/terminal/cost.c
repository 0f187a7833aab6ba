#include "cli/terminal/cost.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/terminal/cli.h"
#include "cli/terminal/human.h"

#define RUNS_MIN 20 /* minimum number of runs for a statement on accuracy */

static void time_cell(struct table *t, int64_t ms)
{
        struct buf text BUF_CLEANUP = {0};

        human_duration(&text, ms);
        table_text(t, buf_view(&text));
}

void cost_price(struct buf *out, struct view price)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(price, &text);
        if (!view_there(price))
                buf_char(out, '-');
        else
                buf_printf(out, "%.4g", strtod(buf_z(&text), NULL));
}

static void add_cells(struct table *t, struct view cost)
{
        int64_t in = view_integer(view_get(cost, "bytes_in"), 0);
        struct buf text BUF_CLEANUP = {0};

        time_cell(t, view_integer(view_get(cost, "wait_ms"), 0));
        time_cell(t, view_integer(view_get(cost, "link_ms"), 0));
        time_cell(t,
                  view_integer(view_get(cost, "fetch_ms"), 0) + view_integer(view_get(cost, "image_ms"), 0));
        time_cell(t, view_integer(view_get(cost, "environment_ms"), 0));
        if (view_true(view_get(cost, "run_known")))
                time_cell(t, view_integer(view_get(cost, "run_ms"), 0));
        else
                table_text(t, STR("?"));
        time_cell(t, view_integer(view_get(cost, "send_ms"), 0));
        time_cell(t, view_integer(view_get(cost, "total_ms"), 0));
        if (in) {
                human_bytes(&text, view_integer(view_get(cost, "bytes_held"), 0));
                buf_char(&text, '/');
                human_bytes(&text, in);
        }
        table_text(t, in ? buf_view(&text) : STR("-"));
        buf_reset(&text);
        cost_price(&text, view_get(cost, "price"));
        table_text(t, buf_view(&text));
}

static const struct table_column columns[] = {
        {"PART", true, false}, /* only if there are several parts */
        {"AGENT", false, true}, {"QUEUE", false, false}, {"WAIT", true, false}, {"LINK", true, false},
        {"FETCH", true, false}, {"MAKE", true, false},   {"RUN", true, false},  {"SEND", true, false},
        {"TOTAL", true, false}, {"HELD", true, false},   {"PRICE", true, false}};

void cost_print_table(const struct cli *cli, struct view places, bool parts)
{
        struct table t TABLE_CLEANUP;
        unsigned from = parts ? 0 : 1;
        struct view place;
        size_t at = 0;

        table_init(&t, columns + from, sizeof(columns) / sizeof(columns[0]) - from);
        while (view_next(places, &at, &place)) {
                if (!view_there(view_get(place, "cost")))
                        continue;
                if (parts)
                        table_format(&t, "%lld", (long long)view_integer(view_get(place, "part"), 0) + 1);
                table_view(&t, view_get(place, "name"));
                table_view(&t, view_get(place, "queue"));
                add_cells(&t, view_get(place, "cost"));
        }
        cli_print_table_below(cli, &t);
}

void cost_end(struct buf *out, int64_t end_ms, int64_t most_ms, int64_t now_ms)
{
        cost_time(out, end_ms, now_ms);
        if (most_ms > end_ms) {
                buf_addz(out, ", nine in ten jobs like it ");
                cost_time(out, most_ms, now_ms);
        }
}

void cost_time(struct buf *out, int64_t at_ms, int64_t now_ms)
{
        if (at_ms == 0) {
                buf_char(out, '-');
        } else if (at_ms <= now_ms + 1000) {
                buf_addz(out, "now");
        } else {
                buf_addz(out, "in ");
                human_duration(out, at_ms - now_ms);
                buf_addz(out, " (");
                human_time(out, at_ms, now_ms);
                buf_char(out, ')');
        }
}

int64_t cost_unsized(struct view places)
{
        struct view place;
        int64_t most = 0;
        size_t at = 0;

        while (view_next(places, &at, &place)) {
                int64_t n = view_integer(view_get(view_get(place, "cost"), "unsized"), 0);

                most = n > most ? n : most;
        }
        return most;
}

void cost_unsized_line(struct buf *out, struct view places)
{
        int64_t files = cost_unsized(places);

        if (files == 0)
                return;
        buf_addz(out, "Nobody knows how large ");
        human_count(out, files, "of a job's files is", "of a job's files are");
        buf_addz(out, ": TransferInputSizes tells it, see drover-data(7).\n");
}

void cost_error_line(struct buf *out, struct view eta_error)
{
        int64_t runs = view_integer(view_get(eta_error, "runs"), 0);

        if (view_integer(view_get(eta_error, "count"), 0) > 0) {
                buf_addz(out, "Half of the last guesses of a start were off by less than ");
                human_duration(out, view_integer(view_get(eta_error, "median_ms"), 0));
                buf_addz(out, ".\n");
        }
        if (runs >= RUNS_MIN)
                buf_printf(out,
                           "Of the last %" PRId64 " jobs %" PRId64
                           " %% were over by the time said for half of them, and %" PRId64
                           " %% by the time said for nine in ten.\n",
                           runs, view_integer(view_get(eta_error, "runs_by_half"), 0),
                           view_integer(view_get(eta_error, "runs_by_most"), 0));
}
