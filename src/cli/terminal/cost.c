#include "cli/terminal/cost.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/terminal/human.h"

#define RUNS_MIN 20 /* with fewer the past says little */

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
        buf_printf(out, "%.4g", strtod(buf_z(&text), NULL));
}

void cost_cells(struct table *t, struct view cost)
{
        int64_t in = view_integer(view_get(cost, "bytes_in"), 0);
        struct buf text BUF_CLEANUP = {0};

        if (!view_there(cost)) {
                for (size_t i = 0; i < COST_COLUMN_COUNT; i++)
                        table_text(t, STR("-"));
                return;
        }
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
