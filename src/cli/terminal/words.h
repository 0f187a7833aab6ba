/* words: tables of commands that look like another system's, and of their options, and the parser of their
 * command lines.
 *
 * Options are read as by getopt_long(3): long names may be abbreviated if unambiguous, and an optional value
 * follows "=". A row says what Drover does with an option. Most act; an option without an
 * equivalent that changes nothing a job can see causes a warning that names it; an option that would change
 * the job's meaning is an error. --help and the tables of the manual page are made from the same rows.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum words_form {
        WORDS_PLAIN,
        WORDS_VALUE,
        WORDS_MAYBE, /* --name, or --name=VALUE */
};
enum words_effect {
        WORDS_ACTS,
        WORDS_SO,      /* asks for the default behaviour */
        WORDS_NAMED,   /* no equivalent, and the job means the same without it: named in a warning */
        WORDS_REFUSED, /* named in an error */
};
struct words_row {
        const char *name; /* without dashes; NULL: the option has a letter only */
        char letter;      /* 0: none */
        enum words_form form;
        enum words_effect effect;
        const char *value;    /* placeholder for the value in help; NULL for none */
        const char *variable; /* environment variable that also sets the option; NULL: none */
        const char *text;     /* one sentence; for a refused option: what to use instead */
};

struct cli;
struct words;
struct words_tool {
        const char *name, *usage, *line;
        const struct words_row *rows; /* up to a row without name and letter; words_common come after them */
        bool stops;                   /* the first word that is not an option ends the options */
        bool no_variables; /* environment variables are not read, since they are another command's */
        int (*run)(struct cli *cli, const struct words *w); /* returns the exit code */
};

enum words_origin { WORDS_SCRIPT, WORDS_ENVIRONMENT, WORDS_CALL };
struct words_given {
        const struct words_row *row;
        char *value; /* NULL: none was given */
        enum words_origin origin;
};
struct words {
        const struct words_tool *tool;
        struct words_given *given; /* in order; a later one overrides */
        size_t given_count, given_cap;
        char **words; /* words that belong to no option */
        size_t word_count, word_cap;
};
#define WORDS_CLEANUP __attribute__((cleanup(words_deinit)))

extern const struct words_row words_common[];

void words_init(struct words *w, const struct words_tool *tool);
void words_deinit(struct words *w);
/* Adds the options and words of argv, after the command's name. Returns 0, or -EINVAL with err, which names
 * the option; a refused option is an error. Words that are not options are accepted for WORDS_CALL only, and
 * are an error elsewhere. */
int words_read(struct words *w, enum words_origin origin, size_t argc, const char *const *argv,
               struct err *err);
/* Adds the options that environment variables set. */
int words_environment(struct words *w, struct err *err);
/* Appends a line for each given option that has no equivalent, once for each. */
void words_warnings(const struct words *w, struct buf *out);

/* The following calls abort if the name is not in the tool's rows. */
bool words_has(const struct words *w, const char *name);
/* Returns the last value of an option; "" if it was given without a value; NULL: it was not given. */
const char *words_text(const struct words *w, const char *name);
/* Returns the position at which an option was last given, for options of which the later one counts; 0: not
 * given. */
size_t words_place(const struct words *w, const char *name);
/* Returns the next value of an option: size_t at = 0; while ((text = words_next(w, name, &at))). */
const char *words_next(const struct words *w, const char *name, size_t *at);
/* Gives an option's whole number of at least `least`, or `otherwise` if it was not given. Returns 0, or
 * -EINVAL with err. */
int words_number(const struct words *w, const char *name, int64_t least, int64_t otherwise, int64_t *ret,
                 struct err *err);

/* Appends the help; its last line is `closing`. */
void words_help(const struct words_tool *tool, const char *closing, struct buf *out);
/* Appends the tool's part of the manual page, in Markdown: a table of its options. */
void words_page(const struct words_tool *tool, struct buf *out);
