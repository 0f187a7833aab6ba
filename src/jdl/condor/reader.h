/* reader: one condor_parse under way, shared by the files of this folder.
 *
 *   parse.c      statements: assignments, if, include, queue
 *   lines.c      logical lines of the files that are being read
 *   settings.c   what was assigned, and the macros made of it
 *   queue.c      a queue statement: variables, items, steps
 *   entry.c      the values of keywords for a part, and the attributes made of them
 *   attributes.c from settings to the attributes of a part, by its chapters: universe.c, command.c, files.c,
 *                accounts.c, policy.c, resources.c, places.c
 *
 * parse.c uses all others, attributes.c the chapters, and the chapters entry.c.
 */
#pragma once
#include "base/job/macro.h"
#include "base/map.h"
#include "classad/print.h"
#include "jdl/condor/condor.h"
#include "jdl/condor/keywords.h"

#define READER_IF_MAX        32
#define READER_VARIABLES_MAX 60 /* maximum number of variables of a queue statement */

struct place { /* position in a description */
        const char *file;
        unsigned line;
};

struct source {
        struct place at; /* position of the last line given */
        struct str rest;
        struct buf text;   /* owns the text that rest borrows, for included files */
        unsigned next;     /* number of the next physical line */
        unsigned if_depth; /* depth of the reader's ifs when the file was opened */
};

struct setting {
        char *name, *value;
        struct place at;
        bool used;
        bool builtin;
};

struct branch { /* branch of an if */
        bool active, taken, seen_else, outer;
        struct place at;
};

enum universe {
        UNIVERSE_VANILLA,
        UNIVERSE_CONTAINER,
        UNIVERSE_DOCKER,
        UNIVERSE_GRID,
        UNIVERSE_LOCAL, /* also scheduler: the machine of the submit */
        UNIVERSE_PARALLEL,
        UNIVERSE_DATA, /* a placement job, run by the mover of an agent */
};

struct reader {
        const struct form_world *world;
        const struct condor_options *options;
        struct form *form;
        struct err *err;
        struct symbols *symbols;
        uint64_t random;

        struct source sources[CONDOR_INCLUDE_MAX];
        unsigned depth;  /* number of open files */
        struct buf line; /* the logical line */
        char **files;    /* names of files, owned */
        size_t file_count;
        struct branch branches[READER_IF_MAX];
        unsigned branch_count;

        bool queued; /* a queue statement was read */

        struct map *by_name; /* lower-cased by the map: struct setting */
        struct setting **settings;
        size_t setting_count, setting_cap;

        /* set while a part is made: */
        struct form_part *part;
        uint64_t first_member;
        enum universe universe;
        bool gangs;          /* its jobs come in gangs, and $(Node) is a job's number in its gang */
        bool dataset_inputs; /* its jobs have inputs of their own: files that are fetched */
        bool local_files;    /* a URL of the placement job is a file of this machine */
        bool dataset;        /* its rows are pieces of a dataset */
        bool slice;          /* row numbers count in the list before it was sliced */
        struct place at;     /* position of the text being expanded, for warnings */
};

/* Puts "FILE:LINE: text" into the reader's err. Returns -EINVAL. */
int reader_fail(struct reader *r, struct place at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void reader_warn(struct reader *r, struct place at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* lines.c */

/* Gives the next logical line, trimmed, without comments and blank lines. Returns 1; 0 at the end of the last
 * file; or a failure. *ret is valid until the next call. */
int lines_next(struct reader *r, struct str *ret, struct place *at);
/* Gives the next physical line of the current file, trimmed but otherwise unchanged. Returns false at its
 * end. */
bool lines_raw(struct reader *r, struct str *ret, struct place *at);
/* Like lines_raw, for lists of items: joins lines that end in a backslash with the next one. *ret is valid
 * until the next call. */
bool lines_item(struct reader *r, struct str *ret, struct place *at);
/* Makes the reader read another text, and then continue in the present one. Takes ownership of text; name is
 * copied. */
int lines_open(struct reader *r, struct str name, struct buf *text, struct place from);
void lines_close(struct reader *r);
/* returns a copy that lives as long as the reader */
const char *lines_keep_name(struct reader *r, struct str name);

/* Returns a description of an error of form_world. */
const char *reader_reason(int rc);

/* settings.c */
struct setting *settings_get(struct reader *r, struct str name); /* NULL: not set */
/* Sets a macro; a reference to itself in the value is replaced by its previous value. */
int settings_set(struct reader *r, struct str name, struct str value, struct place at);
void settings_builtin(struct reader *r, const char *name, struct str value); /* only if it is not set yet */
void settings_deinit(struct reader *r);
/* Expands text with the macros that are known now. While a part is made, macros that differ from job to job
 * are kept (*ret_late); otherwise they are an error. */
int settings_expand(struct reader *r, struct str text, struct place at, struct buf *out, bool *ret_late);
/* Like settings_expand, for an item of a list, which is expanded once more for each job. */
int settings_expand_item(struct reader *r, struct str text, struct place at, struct buf *out);

/* queue.c */
bool queue_is_statement(struct str line, struct str *ret_rest);
/* Reads a queue statement (rest: the text after the word), makes a part of it, and fills the part's
 * variables, items, rows and steps. */
int queue_read(struct reader *r, struct str rest, struct place at);

/* Takes the next word; words are separated by blanks, commas and line ends. */
bool queue_word(struct str *rest, struct str *ret);

/* attributes.c */
int attributes_make(struct reader *r); /* makes the attributes of r->part from the settings */
/* Warns of macros that were set and never used. */
void attributes_unused(struct reader *r);

/* Value of a keyword for the present part. */
struct entry {
        struct buf text; /* expanded, trimmed */
        bool late;
        struct place at;
        const char *keyword; /* as the user wrote it */
};
void entry_deinit(struct entry *e);
#define ENTRY_CLEANUP __attribute__((cleanup(entry_deinit)))
/* Gives a keyword's value. keyword is a name of the table; its aliases are looked for too. Returns 1: set
 * and not empty; 0: not set or empty; or a failure. */
int entry_get(struct reader *r, const char *keyword, struct entry *ret);
/* Like entry_get, for a keyword whose value is an expression. The text is translated to the new syntax, as
 * attribute_expression takes it. */
int entry_get_expression(struct reader *r, const char *keyword, struct entry *ret);
int entry_fail(struct reader *r, const struct entry *e, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* Reads true or false, also yes/no/1/0; a late value is an error. */
int entry_boolean(struct reader *r, const struct entry *e, bool *ret);
/* Returns the value without quotes around the whole of it. */
struct str entry_unquoted(const struct entry *e);

/* Sets an attribute of the part: an expression of the new syntax, which is checked, or a string. */
int attribute_expression(struct reader *r, const char *attribute, const struct entry *e, struct str text);
int attribute_string(struct reader *r, const char *attribute, const struct entry *e, struct str text);
void attribute_default(struct reader *r, const char *attribute, const char *expression);
void attribute_default_string(struct reader *r, const char *attribute, const char *value);

/* Iterator over the rows of the part's items, for expanding late text as a check. */
struct sample {
        struct reader *reader;
        struct str values[READER_VARIABLES_MAX];
        size_t count;
        uint64_t row;
        struct str rest;
        bool row_only; /* expand macros that depend on the row only, keep those that differ within it */
};
void sample_start(struct sample *s, struct reader *r, bool row_only);
bool sample_next(
        struct sample *s); /* false after the last row; a part without items has one row without values */
int sample_expand(struct sample *s, struct str text, struct buf *out, bool *ret_late, struct err *err);
int sample_expand_expression(struct sample *s, struct str text, struct buf *out, struct err *err);

/* Adds a column named `variable` to the items: `convert` of the text for each row. If the text of a row also
 * depends on the job, it is converted with the macros of the job in it if `late`; else *ret_done is false,
 * and nothing is added. */
typedef int derive_fn(const struct reader *r, struct str text, struct buf *out, struct err *err);
int derive_column(struct reader *r, const struct entry *e, const char *variable, bool late,
                  derive_fn *convert, bool *ret_done);

/* Appends the path so that it does not depend on the current folder: relative paths start at the folder of
 * the submit. If only some rows have a relative path, a column of that name is added, with the folder for
 * these. Returns 0 or a failure. */
int path_from_cwd(struct reader *r, const struct entry *e, struct str path, const char *column,
                  struct buf *out);

/* dataset.c */

/* Finds the files of a part with `dataset`, and makes its rows of them. Returns 0, also without a dataset; or
 * a failure. */
int dataset_read(struct reader *r);
int dataset_make(struct reader *r); /* to be called after files_make */
/* Appends the clauses of a dataset. Returns true if one with late macros was added. */
bool dataset_clauses(struct reader *r, struct buf *out);

/* The following calls each make one group of attributes, and return 0 or a failure. */
int command_make(struct reader *r);
int files_make(struct reader *r);
/* Returns whether container_image (e; its value) is a file or folder that the job brings along, as HTCondor
 * sends them: 1 yes, 0 no, -EINVAL with the reader's error. If it is, *ret_name is its name in the job's
 * folder, and *ret_path (borrowed like the value) is the file to send. */
int files_image(struct reader *r, const struct entry *e, struct str *ret_path, struct str *ret_name);
int universe_make(struct reader *r); /* to be called before all others */
int gangs_make(struct reader *r);    /* to be called after universe_make */
int accounts_make(struct reader *r);
int meta_make(struct reader *r);
int resources_make(struct reader *r);
/* Sets NodeCount and TasksPerNode; multiplies the resources that resources_make has set. */
int nodes_make(struct reader *r);
int places_make(struct reader *r); /* sets resources and requirements; to be called after all others */
int policy_make(struct reader *r);
int placement_make(struct reader *r); /* called instead of command_make and files_make */
/* The size that a job of any universe writes at most. */
int placement_size(struct reader *r, const char *keyword);
void placement_policy(struct reader *r); /* to be called after policy_make */
void placement_clause(struct reader *r, struct buf *out);
bool placement_keyword(const char *name); /* true for keywords of placement jobs only */
int notices_make(struct reader *r);       /* sets notifications of users about their jobs */

/* Append clauses for the requirements, joined by &&. `mentioned` says whether the user's own requirements
 * refer to this attribute of the place. */
void clause_add(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void resources_clauses(struct reader *r, bool (*mentioned)(void *arg, struct str name), void *arg,
                       struct buf *out);
void nodes_clauses(const struct reader *r, struct buf *out); /* for a job with more than one node */
/* Returns true if an appended clause has late macros. */
bool universe_clauses(struct reader *r, bool (*mentioned)(void *arg, struct str name), void *arg,
                      struct buf *out);
bool universe_wants_arch(const struct reader *r); /* default: the architecture of the machine of the submit */
bool universe_wants_opsys(const struct reader *r);
