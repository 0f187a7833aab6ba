/* lex: the tokeniser (private to classad/). One token of look-ahead is in lex->kind and the members behind
 * it. */
#pragma once
#include "base/buf.h"

enum token {
        TOKEN_END,
        TOKEN_BAD, /* lex->bad says why */
        TOKEN_INTEGER,
        TOKEN_REAL,
        TOKEN_STRING,
        TOKEN_NAME,   /* a bare word, reserved ones too */
        TOKEN_QUOTED, /* 'a b' */
        /* the others are operators and brackets: enum op values are given in parse.c's table */
        TOKEN_OPEN,
        TOKEN_CLOSE,
        TOKEN_BOX_OPEN,
        TOKEN_BOX_CLOSE,
        TOKEN_BRACE_OPEN,
        TOKEN_BRACE_CLOSE,
        TOKEN_COMMA,
        TOKEN_SEMICOLON,
        TOKEN_DOT,
        TOKEN_ASSIGN,
        TOKEN_QUESTION,
        TOKEN_COLON,
        TOKEN_ELVIS,
        TOKEN_NOT,
        TOKEN_TILDE,
        TOKEN_STAR,
        TOKEN_SLASH,
        TOKEN_PERCENT,
        TOKEN_PLUS,
        TOKEN_MINUS,
        TOKEN_SHIFT_LEFT,
        TOKEN_SHIFT_RIGHT,
        TOKEN_SHIFT_LOGICAL,
        TOKEN_LESS,
        TOKEN_LESS_EQUAL,
        TOKEN_GREATER_EQUAL,
        TOKEN_GREATER,
        TOKEN_EQUAL,
        TOKEN_NOT_EQUAL,
        TOKEN_IS,
        TOKEN_ISNT,
        TOKEN_BIT_AND,
        TOKEN_BIT_XOR,
        TOKEN_BIT_OR,
        TOKEN_AND,
        TOKEN_OR,
        TOKEN_COUNT
};

struct lex {
        const char *p, *end; /* text not read yet */
        const char *start;   /* of all text, for line and column */
        const char *at;      /* where the present token begins */
        const char *bad;
        struct buf *scratch; /* texts with escapes are resolved here */
        bool old;            /* old-syntax rules for numbers and strings */
        enum token kind;
        struct str text; /* string, name; until the next token that needs scratch */
        int64_t integer;
        double real;
};

void lex_next(struct lex *lx);
/* Skips white space and comments; false: a comment does not end. */
bool lex_space(struct lex *lx);
bool lex_is_name(struct str s); /* whether s needs no quotes as a name, reserved words aside */
void lex_position(const struct lex *lx, const char *at, unsigned *ret_line, unsigned *ret_column);

extern const unsigned char lex_class[256];
enum { LEX_SPACE = 1, LEX_DIGIT = 2, LEX_ALPHA = 4 };
