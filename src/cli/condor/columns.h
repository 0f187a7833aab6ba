/* columns: -autoformat and -format: the selection and format of an ad's printed values.
 *
 * -af[:QUALIFIERS] takes attributes or expressions and prints their values with a blank between them and a
 * newline after the last. Qualifiers: j the job's id first; l labels ("Name = value"); h headings, with
 * aligned columns; V strings in quotes; r the expression itself, not its value; T seconds as days+hh:mm:ss;
 * Y a Unix time as a date; , a comma after each field but the last; t a tab between fields instead of a
 * blank; n each field on a line of its own; g an empty line after each ad, and no blanks between fields.
 * -format takes a printf-like format with one conversion, and an expression; if its value is undefined,
 * nothing of the format is printed. Source: HTCondor manual, "condor_q", -autoformat and -format.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "classad/eval.h"

#define COLUMNS_MAX 256

struct column {
        const char *text;   /* the attribute or expression; NULL: the job's id */
        const char *format; /* format of -format; NULL: autoformat */
        struct expr *expr;
        char between; /* separator before it unless it is the first of its group; 0: none */
        bool comma, label, raw, quoted, seconds, date, heading;
        bool first, last, gap; /* first and last of its group; gap: an empty line after the group */
        unsigned width;
};
struct columns {
        struct symbols *symbols;
        struct column *items;
        size_t count, cap;
        char **cells; /* with headings: rows are kept until columns_end */
        size_t cell_count, cell_cap;
        struct eval eval;
};

void columns_init(struct columns *c, struct symbols *symbols, int64_t now_s);
void columns_deinit(struct columns *c);
#define COLUMNS_CLEANUP __attribute__((cleanup(columns_deinit)))
/* Adds the columns of one -autoformat. qualifiers: the text after the colon, or NULL. All text is borrowed.
 * Returns 0, or -EINVAL or -E2BIG with err. */
int columns_auto(struct columns *c, const char *qualifiers, const char *const *words, size_t count,
                 struct err *err);
int columns_format(struct columns *c, const char *format, const char *text, struct err *err);

/* Adds a row for an ad; `id` is the job's, for qualifier j. The row is appended to out, or kept for
 * columns_end. */
void columns_row(struct columns *c, const struct ad *ad, const char *id, struct buf *out);
/* Appends the rows that were kept, with headings and aligned. */
void columns_end(struct columns *c, struct buf *out);
/* Appends the names of the attributes that the columns need, separated by commas; or "*": all. */
void columns_names(const struct columns *c, struct buf *out);
