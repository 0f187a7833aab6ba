/* cost: the estimated cost and start of a job at each place, for `why` and `quote`. */
#pragma once
#include "cli/terminal/table.h"
#include "cli/terminal/view.h"

struct cli;

/* Prints a further table of the cost at each place; places without a cost are left out. `parts`: the places
 * are of several parts of a request, whose number is the first column. */
void cost_print_table(const struct cli *cli, struct view places, bool parts);
/* Appends a price with four digits; "-" for null. */
void cost_price(struct buf *out, struct view price);
/* Appends a time: "in 3:07 (14:02:11)", or "now"; "-" for 0. */
void cost_time(struct buf *out, int64_t at_ms, int64_t now_ms);
/* Appends when half of the jobs like it would have ended and, if it is later, nine in ten: "in 3:07
 * (14:02:11), nine in ten jobs like it in 5:10 (14:04:14)". */
void cost_end(struct buf *out, int64_t end_ms, int64_t most_ms, int64_t now_ms);
/* Returns the number of a job's files whose size is not known, by the costs of these places.
 * cost_unsized_line appends a line about them, if there are any. */
int64_t cost_unsized(struct view places);
void cost_unsized_line(struct buf *out, struct view places);
/* Appends a line about the accuracy of earlier estimates, if there were any. */
void cost_error_line(struct buf *out, struct view eta_error);
