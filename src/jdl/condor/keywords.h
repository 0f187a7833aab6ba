/* keywords: the table of submit keywords, from which the parser, its warnings and the manual's table are
 * made. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

enum keyword_effect {
        KEYWORD_ACTS,    /* acts as HTCondor's manual says, or as `text` says */
        KEYWORD_KEPT,    /* only sets an attribute: a warning, unless its value is in `quiet` */
        KEYWORD_IGNORED, /* a warning, unless its value is in `quiet` */
        KEYWORD_REFUSED, /* an error, unless its value is in `quiet` */
};
enum keyword_kind {
        KEYWORD_OTHER,  /* handled by code of its own */
        KEYWORD_STRING, /* the value is the attribute, as a string; quotes around all of it are taken off */
        KEYWORD_EXPRESSION, /* the value is the attribute's expression */
};
struct keyword {
        const char *name;    /* a '*' at its end or front matches every name with that beginning or end */
        const char *aliases; /* other spellings, separated by blanks, or NULL */
        enum keyword_effect effect;
        enum keyword_kind kind;
        const char *attribute;
        const char *quiet; /* values that have no effect, separated by blanks, or NULL */
        const char *text;  /* its effect; or why it has none, and what to use */
};

extern const struct keyword keywords[];
extern const size_t keyword_count;

const struct keyword *keyword_find(struct str name); /* finds a row by name or alias; NULL: there is none */
/* Returns the keyword that `name` is most likely a misspelling of, or NULL. */
const struct keyword *keyword_near(struct str name);
bool keyword_is_quiet(const struct keyword *k, struct str value);
/* Appends the manual's table, in Markdown: a heading and a definition list for each effect. */
void keyword_write_manual(struct buf *out);
