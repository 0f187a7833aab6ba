/* flags: tables of the HTCondor-compatible commands and their flags, and the parser of their command lines.
 *
 * HTCondor's syntax of flags differs from that of options.h: one dash or two, long names that may be
 * shortened to a minimum length of their own, qualifiers after a colon (-af:jh), and flags that take all
 * words up to the next flag. A row says what Drover does with a flag: most act; some ask for the default
 * behaviour; a flag that Drover does not support causes a warning or an error that names it. --help and the
 * manual page are made from the same rows. Source: HTCondor manual 25.x, "Command Reference Manual".
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
        FLAG_SO,   /* asks for the default behaviour */
        FLAG_HERE, /* its value must name this machine: there is one server, which is found in another way */
        FLAG_WARNED,  /* not acted on; a warning on standard error says so */
        FLAG_REFUSED, /* an error */
};
struct flag_row {
        const char *name; /* without dashes */
        unsigned min;     /* minimum length of an abbreviation; 0: it cannot be abbreviated */
        enum flag_form form;
        enum flag_effect effect;
        const char *value; /* placeholder for the words in help; NULL for none */
        const char *text;  /* one sentence; for a refused flag: what to use instead */
};

struct cli;
struct flags;
struct condor_tool {
        const char *name, *usage, *line;
        const struct flag_row *rows;   /* up to a row without a name; flags_common come after them */
        unsigned words_min, words_max; /* number of words that belong to no flag */
        int (*run)(struct cli *cli, const struct flags *f); /* 0, or any exit code for failure */
        bool passes_code; /* the exit code is run()'s result; else 1 for any failure */
};

struct flag_given {
        const struct flag_row *row;
        const char *colon; /* text after the colon; NULL: there was none */
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

/* Reads argv after the command's name; all text is borrowed from it. Returns 0, or -EINVAL with err, which
 * names the flag. */
int flags_read(struct flags *f, const struct condor_tool *tool, int argc, const char *const *argv,
               struct err *err);
void flags_deinit(struct flags *f);
/* Appends a line for each given flag that is not acted on. */
void flags_warnings(const struct flags *f, struct buf *out);

/* The following calls abort if the name is not in the command's rows. */
bool flags_has(const struct flags *f, const char *name);
const char *flags_text(const struct flags *f,
                       const char *name); /* first word of the flag's last use; NULL: none */
/* Gives a flag's whole number, or `otherwise` if it was not given. Returns 0, or -EINVAL with err. */
int flags_number(const struct flags *f, const char *name, int64_t otherwise, int64_t *ret, struct err *err);
/* Returns the next use of a flag: size_t at = 0; while ((g = flags_next(f, name, &at))). */
const struct flag_given *flags_next(const struct flags *f, const char *name, size_t *at);
/* Returns the n-th row that the command takes, its own rows and then the common ones; NULL after the last.
 */
const struct flag_row *flags_row_at(const struct condor_tool *tool, size_t n);

void flags_help(const struct condor_tool *tool, struct buf *out);
/* Appends the tool's part of the manual page, in Markdown. */
void flags_page(const struct condor_tool *tool, struct buf *out);
