/* table: aligned columns for people.
 *
 * Cells are given row by row, left to right; a short row is filled up. On a terminal a table that is too wide
 * has its `wide` columns cut until it fits, with "…" at the cut; elsewhere nothing is cut. Text is made safe
 * for a terminal (human_safe). */
#pragma once
#include "base/buf.h"
#include "cli/terminal/view.h"

struct table_column {
        const char *title;
        bool right; /* numbers */
        bool wide;  /* may be cut, down to 8 columns or its title */
};

enum table_colour { TABLE_PLAIN, TABLE_RED, TABLE_GREEN, TABLE_YELLOW, TABLE_BLUE, TABLE_DIM, TABLE_BOLD };

struct table_cell {
        uint32_t n;
        uint16_t width;
        uint8_t colour;
};
struct table {
        const struct table_column *columns;
        unsigned column_count;
        struct buf text;
        struct table_cell *cells;
        size_t cell_count, cell_cap;
        bool colour, bare; /* bare: no line of titles */
        unsigned width;    /* of the terminal; 0: no limit */
};

#define TABLE_COLUMNS_MAX 18

void table_init(struct table *t, const struct table_column *columns, unsigned count);
void table_deinit(struct table *t);
#define TABLE_CLEANUP __attribute__((cleanup(table_deinit)))

void table_text(struct table *t, struct str text);
void table_view(struct table *t, struct view v); /* a string's text, a number; "-" when it is none */
void table_format(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_paint(struct table *t, enum table_colour colour); /* the last cell */
void table_end_row(struct table *t);                         /* fills the row up with empty cells */
size_t table_rows(const struct table *t);
/* The whole table as text. */
void table_print(const struct table *t, struct buf *out);
/* Text in a colour, when `on`. */
void table_coloured(struct buf *out, bool on, enum table_colour colour, const char *text);
