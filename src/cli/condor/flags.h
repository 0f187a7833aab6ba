/* flags: the look-alike commands and their flags as tables, and the words of one call read by them.
 *
 * HTCondor's way with flags is not that of options.h: one dash or two, long names that may be cut short down
 * to a length of their own, a tail of qualifiers behind a colon (-af:jh), and flags that take all words up to
 * the next flag. A row says what becomes of a flag here: most act; some ask for what is so anyway; one that
 * Drover does not act on is warned of or refused, by name. --help and the manual page are made from the same
 * rows. Source: HTCondor manual 25.x, "Command Reference Manual".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

enum flag_form {
        FLAG_PLAIN,
        FLAG_VALUE, /* one word */
        FLAG_TWO,   /* two words */
        FLAG_WORDS, /* all words up to the next that begins with a dash; at least one */
};
enum flag_effect {
        FLAG_ACTS,
        FLAG_SO,      /* asks for what is so anyway */
        FLAG_HERE,    /* its value must name this machine: there is one server, and it is found otherwise */
        FLAG_WARNED,  /* not acted on, which is said on standard error */
        FLAG_REFUSED, /* an error */
};
struct flag_row {
        const char *name; /* without dashes */
        unsigned min;     /* it may be cut down to so many letters; 0: not at all */
        enum flag_form form;
        enum flag_effect effect;
        const char *value; /* what stands for the words in help; NULL for none */
        const char *text;  /* one sentence; of a refused one: what to do instead */
};

struct cli;
struct flags;
struct condor_tool {
        const char *name, *usage, *line;
        const struct flag_row *rows;   /* up to a row without a name; flags_common come after them */
        unsigned words_min, words_max; /* words that belong to no flag */
        int (*run)(struct cli *cli, const struct flags *f); /* 0, or any exit code for failure */
        bool passes_code;                                   /* that code is the command's own; else 1 is */
};

struct flag_given {
        const struct flag_row *row;
        const char *colon; /* what stood behind the colon; NULL: there was none */
        const char *const *words;
        size_t count;
};
struct flags {
        const struct condor_tool *tool;
        struct flag_given *given;
        size_t given_count, given_cap;
        const char **words;
        size_t word_count, word_cap;
};
#define FLAGS_CLEANUP __attribute__((cleanup(flags_deinit)))

extern const struct flag_row flags_common[];

/* Reads argv from behind the command's name; all text is borrowed from it. 0, or -EINVAL with err, which
 * names the flag. */
int flags_read(struct flags *f, const struct condor_tool *tool, int argc, const char *const *argv,
               struct err *err);
void flags_deinit(struct flags *f);
/* Appends a sentence a line on each flag that was given and is not acted on. */
void flags_warnings(const struct flags *f, struct buf *out);

/* Names must be in the command's rows: another is a mistake in the program, and aborts. */
bool flags_has(const struct flags *f, const char *name);
const char *flags_text(const struct flags *f,
                       const char *name); /* the first word of the last one; NULL: none */
/* A whole number: 0 and its value or `otherwise`; -EINVAL with err. */
int flags_number(const struct flags *f, const char *name, int64_t otherwise, int64_t *ret, struct err *err);
/* Each time a flag was given: size_t at = 0; while ((g = flags_next(f, name, &at))). */
const struct flag_given *flags_next(const struct flags *f, const char *name, size_t *at);
/* The n-th row that the command takes, its own and the common ones; NULL behind the last. */
const struct flag_row *flags_row_at(const struct condor_tool *tool, size_t n);

void flags_help(const struct condor_tool *tool, struct buf *out);
/* The tool's part of the manual page, in Markdown. */
void flags_page(const struct condor_tool *tool, struct buf *out);
