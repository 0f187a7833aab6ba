/* table: aligned columns for people, and the same rows as CSV for programs.
 *
 * Cells are given row by row, left to right; a short row is filled up. A cell is a text; a cell for a time,
 * a duration or a number also has its value, by which rows are sorted. On a terminal a table that is too
 * wide is made narrower, in this order, until it fits: empty `spare` columns are left out; a `wraps` column
 * without room for its words is moved below its rows, uncut; other `spare` columns are left out; `wide`
 * columns are cut, with "…" at the cut. Columns that a form names are always shown. Elsewhere nothing is cut
 * or left out.
 * Text is made safe for a terminal (human_safe).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/view.h"

struct table_column {
        const char *title;
        bool right; /* right-aligned, for numbers */
        bool wide;  /* may be cut, down to 8 columns or its title */
        bool extra; /* shown only when a form names it */
        bool wraps; /* with wide: continued in further lines instead of cut; at most one column of a table */
        bool spare; /* may be left out */
};

enum table_colour { TABLE_PLAIN, TABLE_RED, TABLE_GREEN, TABLE_YELLOW, TABLE_BLUE, TABLE_DIM, TABLE_BOLD };

/* Form of a table that the user asks for. All zero: the default. */
struct table_form {
        /* titles in any case, separated by commas: "id,state"; NULL: all that are not extra */
        const char *columns;
        /* a title; with a minus before it in descending order; NULL: in the order of the rows */
        const char *sort;
        bool csv;   /* RFC 4180: times in ISO 8601 (UTC), durations in seconds */
        bool bare;  /* no line of titles */
        bool ruled; /* a line of dashes below the titles */
        bool raw;   /* titles and cells with a "|" between them, unaligned */
};

enum table_kind { TABLE_TEXT, TABLE_NUMBER, TABLE_TIME, TABLE_DURATION };
struct table_cell {
        int64_t value; /* value of a cell that is not text: a number, Unix ms, ms */
        uint32_t n;    /* bytes of the cell's text */
        uint16_t width;
        uint8_t colour, kind;
};

#define TABLE_COLUMNS_MAX 32

struct table {
        const struct table_column *columns;
        unsigned column_count;
        unsigned shown[TABLE_COLUMNS_MAX], shown_count;
        struct buf text;
        struct table_cell *cells;
        size_t cell_count, cell_cap;
        bool colour, bare, csv, ruled, raw;
        bool chosen;   /* the form names the columns */
        unsigned sort; /* number of a column; column_count: none */
        bool descending;
        unsigned width; /* of the terminal; 0: no limit */
};

void table_init(struct table *t, const struct table_column *columns, unsigned count);
/* Sets the table's form. Returns 0, or -EINVAL with err, which lists the existing columns. */
int table_set_form(struct table *t, const struct table_form *form, struct err *err);
void table_deinit(struct table *t);
#define TABLE_CLEANUP __attribute__((cleanup(table_deinit)))

void table_text(struct table *t, struct str text);
void table_view(struct table *t, struct view v); /* a string's text or a number; "-" for anything else */
void table_format(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_integer(struct table *t, int64_t n); /* as table_format with %lld, which takes much longer */
void table_time(struct table *t, int64_t at_ms, int64_t now_ms);   /* human_time; 0: "-" */
void table_duration(struct table *t, int64_t ms);                  /* human_duration */
void table_range(struct table *t, int64_t from_ms, int64_t to_ms); /* human_range; its value is from_ms */
void table_paint(struct table *t, enum table_colour colour);       /* colours the last cell */
void table_end_row(struct table *t);                               /* fills the row up with empty cells */
size_t table_rows(const struct table *t);
/* Appends the whole table as text. */
void table_print(const struct table *t, struct buf *out);
/* Appends text, in a colour if `on`. */
void table_coloured(struct buf *out, bool on, enum table_colour colour, const char *text);
