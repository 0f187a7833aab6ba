/* options: tables of subcommands and their options, and the parser of the command line.
 *
 * A row of the table makes the parser, --help, the manual page and the completion (command/help_text.h).
 * Options may be anywhere (except with runs_words); "--" ends them; --name=value, --name value, -nvalue and
 * -n value are equivalent; letters of flags may be combined. A name may be abbreviated if it is unambiguous.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

enum option_form {
        OPTION_FLAG,
        OPTION_TEXT,
        OPTION_NUMBER,   /* a whole number, may be negative */
        OPTION_DURATION, /* 90s 15m 1h 2d; a bare number is seconds */
        OPTION_LIST,     /* text, may be given several times */
};
struct option_row {
        const char *name; /* without the dashes */
        char letter;      /* 0: none */
        enum option_form form;
        const char *value; /* placeholder for the value in help: "FILE"; NULL for a flag */
        const char *text;  /* one sentence */
};

struct cli;
struct options;
struct command {
        const char *name;
        const char *group;                /* heading under which `drover help` shows it */
        const char *line;                 /* short description */
        const char *usage;                /* words after the name, without [OPTIONS]: "ID..." */
        const struct option_row *options; /* up to a row without a name */
        unsigned words_min, words_max;    /* words that aren't options; words_max 0: none */
        /* Completion of a word: "requests", "jobs", "files", "commands", "" for none, or the possible words
         * themselves. */
        const char *completes;
        bool passes_on; /* all words are passed unchanged to another program */
        int (*run)(struct cli *cli, const struct options *o); /* returns the exit code */
        /* the words are a command with options of its own: the first word ends this command's */
        bool runs_words;
};
#define WORDS_ANY 100000u

struct option_given {
        const struct option_row *row;
        const char *text; /* NULL: a flag */
};
struct options {
        const struct command *command;
        struct option_given *given;
        size_t given_count, given_cap;
        const char **words;
        size_t word_count, word_cap;
        bool ended; /* "--" stands before the first word */
};
#define OPTIONS_CLEANUP __attribute__((cleanup(options_deinit)))

/* Reads argv (after the command's name) by the command's rows and the common ones. All text is borrowed from
 * argv. Returns 0, or -EINVAL with err: one sentence, with a hint of the nearest name. */
int options_read(struct options *o, const struct command *command, int argc, char **argv, struct err *err);
void options_deinit(struct options *o);

/* The following calls abort if no row has the name. */
bool options_flag(const struct options *o, const char *name);
const char *options_text(const struct options *o, const char *name); /* last value given; NULL: none */
int64_t options_number(const struct options *o, const char *name, int64_t otherwise); /* durations: seconds */
/* Returns the next value of an option given several times: size_t at = 0; while ((v = options_list(o, name,
 * &at))). */
const char *options_list(const struct options *o, const char *name, size_t *at);

extern const struct option_row options_common[]; /* options of every command */
/* Returns the row of that name in the command's table or the common one; NULL: there is none. */
const struct option_row *options_row(const struct command *command, struct str name);

/* Returns the nearest of n names, for a hint; NULL if none is near. `name_of` gives the i-th. */
const char *options_nearest(struct str word, const char *(*name_of)(const void *arg, size_t i),
                            const void *arg);
