/* reader: one condor_parse under way, shared by the files of this folder.
 *
 *   parse.c      statements: assignments, if, include, queue
 *   lines.c      logical lines of the files that are being read
 *   settings.c   what was assigned, and the macros made of it
 *   queue.c      a queue statement: variables, items, steps
 *   attributes.c from settings to the attributes of a part; its chapters: universe.c, command.c, files.c,
 *                accounts.c, policy.c, resources.c, places.c
 */
#pragma once
#include "base/macro.h"
#include "base/map.h"
#include "classad/print.h"
#include "jdl/condor/condor.h"
#include "jdl/condor/keywords.h"

#define READER_IF_MAX        32
#define READER_VARIABLES_MAX 60 /* of a queue statement */

struct place { /* where something was written */
        const char *file;
        unsigned line;
};

struct source {
        struct place at; /* of the last line given */
        struct str rest;
        struct buf text;   /* holds what rest looks at, for included files */
        unsigned next;     /* number of the next physical line */
        unsigned if_depth; /* of the reader when the file was opened */
};

struct setting {
        char *name, *value;
        struct place at;
        bool used;
        bool builtin;
};

struct branch { /* of an if */
        bool active, taken, seen_else, outer;
        struct place at;
};

enum universe {
        UNIVERSE_VANILLA,
        UNIVERSE_CONTAINER,
        UNIVERSE_DOCKER,
        UNIVERSE_GRID,
        UNIVERSE_LOCAL, /* and scheduler: the machine of the submit */
        UNIVERSE_PARALLEL,
        UNIVERSE_DATA, /* a placement job, which the mover of an agent does */
};

struct reader {
        const struct form_world *world;
        const struct condor_options *options;
        struct form *form;
        struct err *err;
        struct symbols *symbols;
        uint64_t random;

        struct source sources[CONDOR_INCLUDE_MAX];
        unsigned depth;  /* files open */
        struct buf line; /* the logical line */
        char **files;    /* names of files, owned */
        size_t file_count;
        struct branch branches[READER_IF_MAX];
        unsigned branch_count;

        bool queued; /* a queue statement was there */

        struct map *by_name; /* lower-cased by the map: struct setting */
        struct setting **settings;
        size_t setting_count, setting_cap;

        /* While a part is made: */
        struct form_part *part;
        uint64_t first_member;
        enum universe universe;
        bool sets;           /* its jobs come in sets, and $(Node) is a job's place in its own */
        bool dataset_inputs; /* and they have inputs of their own: files that are fetched */
        bool local_files;    /* of a placement job: a URL is of a file of this machine */
        bool dataset;        /* its rows are pieces of one */
        bool slice;          /* row numbers are those of the list before it was sliced */
        struct place at;     /* what is being expanded, for warnings */
};

/* "FILE:LINE: text" into the reader's err; returns -EINVAL. */
int reader_fail(struct reader *r, struct place at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void reader_warn(struct reader *r, struct place at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* lines.c */
/* Gives the next logical line, trimmed, without comments and blank lines. 1; 0 at the end of the last file;
 * or a failure. *ret lives until the next call. */
int lines_next(struct reader *r, struct str *ret, struct place *at);
/* The next physical line of the current file, trimmed, as it stands; false at its end. */
bool lines_raw(struct reader *r, struct str *ret, struct place *at);
/* The same for lists of items: with the lines that a backslash joins to it. *ret lives until the next call.
 */
bool lines_item(struct reader *r, struct str *ret, struct place *at);
/* Reads on in another text, then comes back. text is taken over. name is copied. */
int lines_open(struct reader *r, struct str name, struct buf *text, struct place from);
void lines_close(struct reader *r);
const char *lines_keep_name(struct reader *r, struct str name); /* a copy that lives as long as the reader */

/* Why a call of form_world failed, in words. */
const char *reader_reason(int rc);

/* settings.c */
struct setting *settings_get(struct reader *r, struct str name); /* NULL when there is none */
/* Sets; a reference to itself in the value becomes the value it had. */
int settings_set(struct reader *r, struct str name, struct str value, struct place at);
void settings_builtin(struct reader *r, const char *name, struct str value); /* unless it is set */
void settings_deinit(struct reader *r);
/* Expands text as macros are known now; what belongs to one job stays when a part is being made (*ret_late).
 * Outside of one it is an error. */
int settings_expand(struct reader *r, struct str text, struct place at, struct buf *out, bool *ret_late);
/* The same for an item of a list, which each job expands once more. */
int settings_expand_item(struct reader *r, struct str text, struct place at, struct buf *out);

/* queue.c */
bool queue_is_statement(struct str line, struct str *ret_rest);
/* Reads a queue statement (rest: what stands behind the word), makes a part of it, and fills the part's
 * variables, items, rows and steps. */
int queue_read(struct reader *r, struct str rest, struct place at);

/* Takes the next word, parted by blanks, commas and ends of lines. */
bool queue_word(struct str *rest, struct str *ret);

/* attributes.c */
int attributes_make(struct reader *r); /* the attributes of r->part, from the settings */
/* Names what was set and never used. */
void attributes_unused(struct reader *r);

/* A keyword's value for this part. */
struct entry {
        struct buf text; /* expanded, trimmed */
        bool late;
        struct place at;
        const char *keyword; /* as the user wrote it */
};
void entry_deinit(struct entry *e);
#define ENTRY_CLEANUP __attribute__((cleanup(entry_deinit)))
/* 1: set and not empty; 0: not; or a failure. keyword is a name of the table; its aliases are looked for too.
 */
int entry_get(struct reader *r, const char *keyword, struct entry *ret);
/* The same for a keyword whose value is an expression. Its text is in the new syntax then, as
 * attribute_expression takes it. */
int entry_get_expression(struct reader *r, const char *keyword, struct entry *ret);
int entry_fail(struct reader *r, const struct entry *e, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* true or false, also yes/no/1/0; a late one is an error. */
int entry_boolean(struct reader *r, const struct entry *e, bool *ret);
/* Takes quotes that stand around the whole value off. */
struct str entry_unquoted(const struct entry *e);

/* Sets an attribute of the part: an expression of the new syntax, which is checked, or a string. */
int attribute_expression(struct reader *r, const char *attribute, const struct entry *e, struct str text);
int attribute_string(struct reader *r, const char *attribute, const struct entry *e, struct str text);
void attribute_default(struct reader *r, const char *attribute, const char *expression);
void attribute_default_string(struct reader *r, const char *attribute, const char *value);

/* A row of the part's items, for trying late text out. */
struct sample {
        struct reader *reader;
        struct str values[READER_VARIABLES_MAX];
        size_t count;
        uint64_t row;
        struct str rest;
        bool row_only; /* expand what the row decides, keep what differs within it */
};
void sample_start(struct sample *s, struct reader *r, bool row_only);
bool sample_next(
        struct sample *s); /* false behind the last row. A part without items has one row without values */
int sample_expand(struct sample *s, struct str text, struct buf *out, bool *ret_late, struct err *err);
int sample_expand_expression(struct sample *s, struct str text, struct buf *out, struct err *err);

/* Adds a column to the items: `convert` of the text for each row. The column's name is `variable`. A row
 * whose text depends on the job as well is converted with the macros of the job in it if `late`; else
 * *ret_done is false, and nothing is added. */
typedef int derive_fn(const struct reader *r, struct str text, struct buf *out, struct err *err);
int derive_column(struct reader *r, const struct entry *e, const char *variable, bool late,
                  derive_fn *convert, bool *ret_done);

/* The path as seen from anywhere: relative ones start at the folder of the submit. Where only some rows have
 * a relative one, a column of that name is added, with the folder for these. 0 or a failure. */
int path_from_cwd(struct reader *r, const struct entry *e, struct str path, const char *column,
                  struct buf *out);

/* dataset.c */
/* Of a part with `dataset`: finds its files, and makes its rows of them. 0, also when there is none; or a
 * failure. */
int dataset_read(struct reader *r);
int dataset_make(struct reader *r); /* behind files_make */
/* True: a clause was added, which holds late macros. */
bool dataset_clauses(struct reader *r, struct buf *out);

/* The chapters; each 0 or a failure. */
int command_make(struct reader *r);
int files_make(struct reader *r);
int universe_make(struct reader *r); /* before all others */
int sets_make(struct reader *r);     /* behind universe_make */
int accounts_make(struct reader *r);
int resources_make(struct reader *r);
int places_make(struct reader *r); /* resources and requirements; after all others */
int policy_make(struct reader *r);
int placement_make(struct reader *r);    /* in place of command_make and files_make */
void placement_policy(struct reader *r); /* behind policy_make */
void placement_clause(struct reader *r, struct buf *out);
bool placement_keyword(const char *name); /* is it for placement jobs only? */
int notices_make(struct reader *r);       /* how users are told of their jobs */

/* Clauses for the requirements, joined by &&. `mentioned`: the user's own speak of this attribute of the
 * place.
 */
void clause_add(struct buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void resources_clauses(struct reader *r, bool (*mentioned)(void *arg, struct str name), void *arg,
                       struct buf *out);
/* True: a clause holds late macros. */
bool universe_clauses(struct reader *r, bool (*mentioned)(void *arg, struct str name), void *arg,
                      struct buf *out);
bool universe_wants_arch(const struct reader *r); /* of the machine of the submit, if nothing else is said */
bool universe_wants_opsys(const struct reader *r);
