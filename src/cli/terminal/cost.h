/* cost: what a job would take at a place, and when: the columns that `why` and `quote` share. */
#pragma once
#include "cli/terminal/table.h"
#include "cli/terminal/view.h"

#define COST_COLUMNS                                                                                         \
        {"WAIT", true, false}, {"LINK", true, false}, {"FETCH", true, false}, {"MAKE", true, false},         \
                {"RUN", true, false}, {"SEND", true, false}, {"TOTAL", true, false}, {"HELD", true, false},  \
        {                                                                                                    \
                "PRICE", true, false                                                                         \
        }

#define COST_COLUMN_COUNT (sizeof((const struct table_column[]){COST_COLUMNS}) / sizeof(struct table_column))

/* The cells of a cost (docs/openapi.json, Cost); dashes when there is none. */
void cost_cells(struct table *t, struct view cost);
/* A price, to four digits. */
void cost_price(struct buf *out, struct view price);
/* "in 3:07 (14:02:11)", or "now"; "-" for 0. */
void cost_time(struct buf *out, int64_t at_ms, int64_t now_ms);
/* How many files of a job have a size that nobody knows, by the costs of these places; and a line on it, if
 * there are any. */
int64_t cost_unsized(struct view places);
void cost_unsized_line(struct buf *out, struct view places);
/* A line on how good such times have been, if any have. */
void cost_error_line(struct buf *out, struct view eta_error);
