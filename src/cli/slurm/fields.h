/* fields: tables of the job fields that squeue and sacct can print, and the parsers of their format options.
 */
#pragma once
#include "base/err.h"
#include "cli/slurm/record.h"

struct field {
        char letter;                  /* letter for squeue -o; 0: none */
        const char *long_name, *head; /* name for squeue -O, and its heading; NULL: none */
        const char *account_name;     /* name for sacct --format; NULL: none */
        unsigned account_width;
        bool account_left; /* left-aligned in sacct */
        /* Appends the value. `group`: numbers of the tasks that one line stands for; empty: the job's own.
         */
        void (*write)(const struct record *r, struct str group, struct buf *out);
};
/* Column of a listing. */
struct column {
        const struct field *field; /* NULL: text only */
        unsigned width;            /* 0: as wide as its text */
        bool right;
        char *behind; /* text between this column and the next one */
};
struct columns {
        struct column *items;
        size_t count, cap;
        char *before; /* text before the first column; may be NULL */
        bool account; /* sacct's format: a blank between columns, and a plus sign marks truncated values */
};
#define COLUMNS_CLEANUP __attribute__((cleanup(columns_deinit)))
void columns_deinit(struct columns *c);

/* Read a format of squeue -o, "%.18i %.9P %j"; of squeue -O, "JobArrayID,Name:30,State:.10"; and of sacct,
 * "JobID,JobName%30,State". Return 0, or -EINVAL with err. */
int columns_read(struct columns *c, struct str format, struct err *err);
int columns_read_long(struct columns *c, struct str format, struct err *err);
int columns_read_account(struct columns *c, struct str format, struct err *err);

void columns_heads(const struct columns *c, struct buf *out);
void columns_line(const struct columns *c, const struct record *r, struct str group, struct buf *out);
/* Appends a line of sacct's columns with a mark between them, and after the last one if `last`. r NULL: the
 * headings. */
void columns_parsable(const struct columns *c, const struct record *r, const char *mark, bool last,
                      struct buf *out);
/* Appends the sacct names of all fields, four a line, as sacct --helpformat prints them. */
void fields_help(struct buf *out);
