/* fields: what squeue and sacct can tell of a job, as tables; and how squeue and sacct ask for them.
 */
#pragma once
#include "base/err.h"
#include "cli/slurm/record.h"

struct field {
        char letter;                  /* of squeue -o; 0: none */
        const char *long_name, *head; /* of squeue -O, and its heading; NULL: none */
        const char *account_name;     /* of sacct --format; NULL: none */
        unsigned account_width;
        bool account_left; /* sacct writes it to the left */
        /* `group`: the numbers of the tasks that one line stands for; empty: the job's own. */
        void (*write)(const struct record *r, struct str group, struct buf *out);
};
/* A column of a listing. */
struct column {
        const struct field *field; /* NULL: text only */
        unsigned width;            /* 0: as wide as it is */
        bool right;
        char *behind; /* text between it and the next one */
};
struct columns {
        struct column *items;
        size_t count, cap;
        char *before; /* text in front of the first one; may be NULL */
        bool account; /* sacct's: a blank between, and what is cut has a plus sign */
};
#define COLUMNS_CLEANUP __attribute__((cleanup(columns_deinit)))
void columns_deinit(struct columns *c);

/* "%.18i %.9P %j". 0, or -EINVAL with err. */
int columns_read(struct columns *c, struct str format, struct err *err);
/* "JobArrayID,Name:30,State:.10" */
int columns_read_long(struct columns *c, struct str format, struct err *err);
/* sacct's "JobID,JobName%30,State" */
int columns_read_account(struct columns *c, struct str format, struct err *err);

void columns_heads(const struct columns *c, struct buf *out);
void columns_line(const struct columns *c, const struct record *r, struct str group, struct buf *out);
/* The same with a mark between, and after the last one if `last`. r NULL: the headings. Of sacct's columns.
 */
void columns_parsable(const struct columns *c, const struct record *r, const char *mark, bool last,
                      struct buf *out);
/* The account names of all fields, four a line, as sacct --helpformat prints them. */
void fields_help(struct buf *out);
