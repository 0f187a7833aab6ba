/* table: aligned columns for people, and the same rows as CSV for programs.
 *
 * Cells are given row by row, left to right; a short row is filled up. A cell is a text; one that stands for
 * a time, a length of time or a number has its value, too, by which rows are sorted. On a terminal a table
 * that is too wide has its `wide` columns cut until it fits, with "…" at the cut, and what is in `wraps`
 * columns goes on in lines below; elsewhere nothing is cut.
 * Text is made safe for a terminal (human_safe).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/view.h"

struct table_column {
        const char *title;
        bool right; /* numbers */
        bool wide;  /* may be cut, down to 8 columns or its title */
        bool extra; /* shown only when a form names it */
        bool wraps; /* with wide: nothing of it is lost; it is made no narrower than 24 columns */
};

enum table_colour { TABLE_PLAIN, TABLE_RED, TABLE_GREEN, TABLE_YELLOW, TABLE_BLUE, TABLE_DIM, TABLE_BOLD };

/* What the user asks of a table. All zero: as it is. */
struct table_form {
        const char *columns; /* titles in any case, with commas: "id,state"; NULL: all that are not extra */
        const char *sort;    /* a title; with a minus before it the largest first; NULL: as the rows came */
        bool csv;            /* RFC 4180: times in ISO 8601 (UTC), lengths of time in seconds */
        bool bare;           /* no line of titles */
};

enum table_kind { TABLE_TEXT, TABLE_NUMBER, TABLE_TIME, TABLE_DURATION };
struct table_cell {
        int64_t value; /* of every kind but text: a number, Unix ms, ms */
        uint32_t n;    /* bytes of its text */
        uint16_t width;
        uint8_t colour, kind;
};

#define TABLE_COLUMNS_MAX 18

struct table {
        const struct table_column *columns;
        unsigned column_count;
        unsigned shown[TABLE_COLUMNS_MAX], shown_count;
        struct buf text;
        struct table_cell *cells;
        size_t cell_count, cell_cap;
        bool colour, bare, csv;
        unsigned sort; /* a column; column_count: none */
        bool descending;
        unsigned width; /* of the terminal; 0: no limit */
};

void table_init(struct table *t, const struct table_column *columns, unsigned count);
/* 0, or -EINVAL with err, which names the columns that there are. */
int table_set_form(struct table *t, const struct table_form *form, struct err *err);
void table_deinit(struct table *t);
#define TABLE_CLEANUP __attribute__((cleanup(table_deinit)))

void table_text(struct table *t, struct str text);
void table_view(struct table *t, struct view v); /* a string's text, a number; "-" when it is none */
void table_format(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_time(struct table *t, int64_t at_ms, int64_t now_ms); /* human_time; 0: "-" */
void table_duration(struct table *t, int64_t ms);                /* human_duration */
void table_paint(struct table *t, enum table_colour colour);     /* the last cell */
void table_end_row(struct table *t);                             /* fills the row up with empty cells */
size_t table_rows(const struct table *t);
/* The whole table as text. */
void table_print(const struct table *t, struct buf *out);
/* Text in a colour, when `on`. */
void table_coloured(struct buf *out, bool on, enum table_colour colour, const char *text);
