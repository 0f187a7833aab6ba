/* columns: -autoformat and -format: which values of an ad are printed, and how.
 *
 * -af[:QUALIFIERS] takes attributes or expressions and prints their values with a blank between them and a
 * new line behind the last. Qualifiers: j the job's id first; l labels ("Name = value"); h headings, with
 * aligned columns; V strings in quotes; r the expression itself, not its value; T seconds as days+hh:mm:ss; Y
 * a Unix time as a date; , a comma behind each field but the last; t a tab between fields, not a blank; n
 * each field on a line of its own; g an empty line behind each ad, and no blanks between fields. -format
 * takes a printf-like format with one conversion, and an expression: when that is undefined, nothing is
 * printed of the format. Source: HTCondor manual, "condor_q", -autoformat and -format.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "classad/eval.h"

#define COLUMNS_MAX 256

struct column {
        const char *text;   /* the attribute or expression; NULL: the job's id */
        const char *format; /* of -format; NULL: autoformat */
        struct expr *expr;
        char between; /* what stands before it unless it is the first of its group; 0: nothing */
        bool comma, label, raw, quoted, seconds, date, heading;
        bool first, last, gap; /* of its group; gap: an empty line behind the group */
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
/* qualifiers: NULL or what stood behind the colon. Text is borrowed. 0, or -EINVAL or -E2BIG with err. */
int columns_auto(struct columns *c, const char *qualifiers, const char *const *words, size_t count,
                 struct err *err);
int columns_format(struct columns *c, const char *format, const char *text, struct err *err);

/* A row for an ad; `id` is the job's, for qualifier j. Appends to out, or keeps it for columns_end. */
void columns_row(struct columns *c, const struct ad *ad, const char *id, struct buf *out);
/* What was kept. */
void columns_end(struct columns *c, struct buf *out);
/* Appends the names of the attributes that the columns need, parted by commas; or "*": all. */
void columns_names(const struct columns *c, struct buf *out);
