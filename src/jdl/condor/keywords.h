/* keywords: the one table of submit keywords, from which the parser, its warnings and the manual's table are
 * made. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

enum keyword_effect {
        KEYWORD_ACTS,    /* does what HTCondor's manual says, or what `text` says */
        KEYWORD_KEPT,    /* becomes an attribute and nothing else: a warning, unless its value is `quiet` */
        KEYWORD_IGNORED, /* a warning, unless its value is `quiet` */
        KEYWORD_REFUSED, /* an error, unless its value is `quiet` */
};
enum keyword_kind {
        KEYWORD_OTHER,  /* code of its own */
        KEYWORD_STRING, /* the value is the attribute, as a string; quotes around all of it are taken off */
        KEYWORD_EXPRESSION, /* the value is the attribute's expression */
};
struct keyword {
        const char *name;    /* a '*' at its end, or its front: every name that begins, or ends, so */
        const char *aliases; /* other spellings, parted by blanks, or NULL */
        enum keyword_effect effect;
        enum keyword_kind kind;
        const char *attribute;
        const char *quiet; /* values that ask for nothing, parted by blanks, or NULL */
        const char *text;  /* what it does; or why not, and what to use */
};

extern const struct keyword keywords[];
extern const size_t keyword_count;

const struct keyword *keyword_find(struct str name); /* by name or alias; NULL */
/* The keyword that `name` is most likely a misspelling of, or NULL. */
const struct keyword *keyword_near(struct str name);
bool keyword_is_quiet(const struct keyword *k, struct str value);
/* The manual's table, in Markdown: a heading and a definition list for each effect. */
void keyword_write_manual(struct buf *out);
