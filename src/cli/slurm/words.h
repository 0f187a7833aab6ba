/* words: the look-alikes of Slurm's commands and their options as tables, and the words of a call read by
 * them.
 *
 * Slurm reads its options by getopt_long(3), and so does this: long names may be cut short as long as they
 * are clear, a value that may be missing stands behind "=". A row says what becomes of an option here. Most
 * act; an option that Drover has no equivalent for, and that changes nothing that a job can see, is named in
 * a warning; one that would change what the job means is an error. --help and the tables of the manual page
 * are made of the same rows. Source: Slurm 22.05 to 24.11, manual pages.
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
        WORDS_SO,      /* asks for what is so anyway */
        WORDS_NAMED,   /* no equivalent, and the job means the same without it: a warning names it */
        WORDS_REFUSED, /* an error names it */
};
struct words_row {
        const char *name; /* without dashes; NULL: of the letter alone */
        char letter;      /* 0: none */
        enum words_form form;
        enum words_effect effect;
        const char *value;    /* what stands for it in help; NULL for none */
        const char *variable; /* of the environment, that gives it as well; NULL: none */
        const char *text;     /* one sentence; of a refused one: what to do instead */
};

struct cli;
struct words;
struct slurm_tool {
        const char *name, *usage, *line;
        const struct words_row *rows; /* up to a row without name and letter; words_common come after them */
        bool stops;                   /* the first word that is no option ends them */
        bool no_variables;            /* of the environment: they are another command's */
        int (*run)(struct cli *cli, const struct words *w); /* the exit code */
};

enum words_origin { WORDS_SCRIPT, WORDS_ENVIRONMENT, WORDS_CALL };
struct words_given {
        const struct words_row *row;
        char *value; /* NULL: none was given */
        enum words_origin origin;
};
struct words {
        const struct slurm_tool *tool;
        struct words_given *given; /* the later one wins */
        size_t given_count, given_cap;
        char **words; /* those that belong to no option */
        size_t word_count, word_cap;
};
#define WORDS_CLEANUP __attribute__((cleanup(words_deinit)))

extern const struct words_row words_common[];

void words_init(struct words *w, const struct slurm_tool *tool);
void words_deinit(struct words *w);
/* Adds what argv says, from behind the command's name. 0, or -EINVAL with err, which names the option; a
 * refused option is an error. Words that are no options are taken of WORDS_CALL only, and are an error
 * elsewhere. */
int words_read(struct words *w, enum words_origin origin, size_t argc, const char *const *argv,
               struct err *err);
/* Adds what variables of the environment say. */
int words_environment(struct words *w, struct err *err);
/* Appends a sentence a line on each option that was given and has no equivalent; each once. */
void words_warnings(const struct words *w, struct buf *out);

/* Names must be in the tool's rows: another is a mistake in the program, and aborts. */
bool words_has(const struct words *w, const char *name);
/* The value of the last one; "" when it was given without one; NULL: it was not given. */
const char *words_text(const struct words *w, const char *name);
/* How late it was given, for options of which the later one counts; 0: not at all. */
size_t words_place(const struct words *w, const char *name);
/* Each time an option was given: size_t at = 0; while ((text = words_next(w, name, &at))). */
const char *words_next(const struct words *w, const char *name, size_t *at);
/* A whole number from `least` on: 0 and its value or `otherwise`; -EINVAL with err. */
int words_number(const struct words *w, const char *name, int64_t least, int64_t otherwise, int64_t *ret,
                 struct err *err);

void words_help(const struct slurm_tool *tool, struct buf *out);
/* The tool's part of the manual page, in Markdown: its options as a table. */
void words_page(const struct slurm_tool *tool, struct buf *out);
