/* Numbers have corners that are kept because users' expressions were written against HTCondor's library:
 * hexadecimal is read but is 0, a leading zero is allowed before octal digits only and yet means decimal,
 * "5." is no number. In the old syntax an integer with a leading zero is an error, and a backslash escapes
 * only a double quote. */
#include "classad/lex.h"

#include <math.h>
#include <stdlib.h>

#define S LEX_SPACE
#define D LEX_DIGIT
#define A LEX_ALPHA
const unsigned char lex_class[256] = {
        ['\t'] = S, ['\n'] = S, ['\v'] = S, ['\f'] = S, ['\r'] = S, [' '] = S, ['0'] = D, ['1'] = D,
        ['2'] = D,  ['3'] = D,  ['4'] = D,  ['5'] = D,  ['6'] = D,  ['7'] = D, ['8'] = D, ['9'] = D,
        ['A'] = A,  ['B'] = A,  ['C'] = A,  ['D'] = A,  ['E'] = A,  ['F'] = A, ['G'] = A, ['H'] = A,
        ['I'] = A,  ['J'] = A,  ['K'] = A,  ['L'] = A,  ['M'] = A,  ['N'] = A, ['O'] = A, ['P'] = A,
        ['Q'] = A,  ['R'] = A,  ['S'] = A,  ['T'] = A,  ['U'] = A,  ['V'] = A, ['W'] = A, ['X'] = A,
        ['Y'] = A,  ['Z'] = A,  ['a'] = A,  ['b'] = A,  ['c'] = A,  ['d'] = A, ['e'] = A, ['f'] = A,
        ['g'] = A,  ['h'] = A,  ['i'] = A,  ['j'] = A,  ['k'] = A,  ['l'] = A, ['m'] = A, ['n'] = A,
        ['o'] = A,  ['p'] = A,  ['q'] = A,  ['r'] = A,  ['s'] = A,  ['t'] = A, ['u'] = A, ['v'] = A,
        ['w'] = A,  ['x'] = A,  ['y'] = A,  ['z'] = A,  ['_'] = A,
};

static inline unsigned class_of(char c)
{
        return lex_class[(unsigned char)c];
}

static inline bool digit_at(const struct lex *lx, const char *p)
{
        return p < lx->end && (class_of(*p) & LEX_DIGIT);
}

static inline char char_at(const struct lex *lx, const char *p)
{
        return p < lx->end ? *p : '\0';
}

bool lex_is_name(struct str s)
{
        if (s.n == 0 || !(class_of(s.p[0]) & LEX_ALPHA))
                return false;
        for (size_t i = 1; i < s.n; i++)
                if (!(class_of(s.p[i]) & (LEX_ALPHA | LEX_DIGIT)))
                        return false;
        return true;
}

void lex_position(const struct lex *lx, const char *at, unsigned *ret_line, unsigned *ret_column)
{
        unsigned line = 1, column = 1;

        for (const char *p = lx->start; p < at; p++) {
                column++;
                if (*p == '\n') {
                        line++;
                        column = 1;
                }
        }
        *ret_line = line;
        *ret_column = column;
}

static void bad(struct lex *lx, const char *why)
{
        lx->kind = TOKEN_BAD;
        lx->bad = why;
}

bool lex_space(struct lex *lx)
{
        const char *p = lx->p, *end = lx->end;

        for (;;) {
                while (p < end && (class_of(*p) & LEX_SPACE))
                        p++;
                lx->p = p;
                if (end - p < 2 || p[0] != '/' || lx->old)
                        return true;
                if (p[1] == '/') {
                        const char *nl = memchr(p, '\n', (size_t)(end - p));

                        p = nl ? nl + 1 : end;
                } else if (p[1] == '*') {
                        struct str rest = str_make(p + 2, (size_t)(end - p - 2));
                        ptrdiff_t close = str_search(rest, STR("*/"));

                        if (close < 0)
                                return false;
                        p = rest.p + close + 2;
                } else {
                        return true;
                }
        }
}

/* Converts a number that the fast exact path does not cover. */
static double slow_real(const char *from, const char *to)
{
        char small[64], *end;
        size_t n = (size_t)(to - from);
        char *z = n < sizeof(small) ? small : mem_alloc(n + 1);
        double v;

        memcpy(z, from, n);
        z[n] = '\0';
        v = strtod(z, &end);
        if (z != small)
                free(z);
        return v;
}

/* Reads a number, from a digit, or a dot with a digit behind it. */
static void lex_number(struct lex *lx)
{
        const char *from = lx->p, *p = from;
        uint64_t n = 0;
        bool real = false, octal = true;

        if (p[0] == '0' && (char_at(lx, p + 1) | 0x20) == 'x') {
                for (p += 2; p < lx->end &&
                             ((class_of(*p) & LEX_DIGIT) || ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'f'));)
                        p++;
                lx->p = p;
                lx->integer = 0;
                lx->kind = TOKEN_INTEGER;
                if (p - from == 2)
                        bad(lx, "a hexadecimal number without digits");
                else if (lx->old)
                        bad(lx, "an integer with a leading zero");
                return;
        }
        for (; digit_at(lx, p); p++) {
                octal = octal && *p < '8';
                n = n * 10 + (uint64_t)(*p - '0');
        }
        if (char_at(lx, p) == '.') {
                real = true;
                if (!digit_at(lx, p + 1)) {
                        lx->p = p;
                        bad(lx, "a number that ends in a dot");
                        return;
                }
                for (p++; digit_at(lx, p);)
                        p++;
        }
        if ((char_at(lx, p) | 0x20) == 'e') {
                const char *e = p + 1;

                if (char_at(lx, e) == '+' || char_at(lx, e) == '-')
                        e++;
                if (!digit_at(lx, e)) {
                        lx->p = p;
                        bad(lx, "an exponent without digits");
                        return;
                }
                real = true;
                for (p = e; digit_at(lx, p);)
                        p++;
        }
        lx->p = p;
        if (p < lx->end && (class_of(*p) & LEX_ALPHA)) {
                bad(lx, "a number that runs into a name");
        } else if (real) {
                lx->kind = TOKEN_REAL;
                lx->real = slow_real(from, p);
        } else {
                lx->kind = TOKEN_INTEGER;
                lx->integer = (int64_t)n;
                if (from[0] == '0' && p - from > 1 && (lx->old || !octal))
                        bad(lx, "an integer with a leading zero");
        }
}

/* The character that an escape stands for, with lx->p behind the backslash; -1 when there is none. */
static int escape(struct lex *lx)
{
        char c = char_at(lx, lx->p);

        if (lx->p >= lx->end)
                return -1;
        lx->p++;
        switch (c) {
        case 'a': return '\a';
        case 'b': return '\b';
        case 't': return '\t';
        case 'n': return '\n';
        case 'f': return '\f';
        case 'r': return '\r';
        case 'v': return '\v';
        default: break;
        }
        if (c >= '0' && c <= '7') {
                int v = c - '0', digits = c <= '3' ? 3 : 2;

                for (int i = 1; i < digits && lx->p < lx->end && *lx->p >= '0' && *lx->p <= '7'; i++)
                        v = v * 8 + (*lx->p++ - '0');
                return v == 0 ? -1 : v;
        }
        return c ? (unsigned char)c : -1; /* \\ \" \' and whatever else: the character itself */
}

/* Old syntax: a backslash before the quote that ends the line stands for itself. */
static bool old_escape(const struct lex *lx, const char *p)
{
        const char *after = p + 2;

        if (char_at(lx, p + 1) != '"')
                return false;
        while (after < lx->end && (*after == ' ' || *after == '\t' || *after == '\r'))
                after++;
        return after < lx->end && *after != '\n';
}

/* The rest of a string that has an escape in it, or that stands beside another. */
static void resolve(struct lex *lx, char quote, const char *from)
{
        struct buf *out = lx->scratch;
        size_t begin = out->n;

        buf_add(out, from, (size_t)(lx->p - from));
        for (;;) {
                const char *run = lx->p;

                while (lx->p < lx->end && *lx->p != quote && *lx->p != '\\' && *lx->p != '\0' &&
                       !(lx->old && *lx->p == '\n'))
                        lx->p++;
                buf_add(out, run, (size_t)(lx->p - run));
                if (lx->p >= lx->end || *lx->p == '\0' || *lx->p == '\n') {
                        bad(lx, "a string that does not end");
                        return;
                }
                if (*lx->p == quote) {
                        lx->p++;
                        break;
                }
                if (lx->old) {
                        buf_char(out, old_escape(lx, lx->p) ? '"' : '\\');
                        lx->p += old_escape(lx, lx->p) ? 2 : 1;
                        continue;
                }
                lx->p++;
                int c = escape(lx);
                if (c < 0) {
                        bad(lx, "an escape that stands for no character");
                        return;
                }
                buf_char(out, (char)c);
        }
        lx->text = str_make(out->p ? out->p + begin : "", out->n - begin);
}

static void lex_string(struct lex *lx, char quote)
{
        const char *from = ++lx->p, *p = from, *end = lx->end;

        lx->kind = quote == '"' ? TOKEN_STRING : TOKEN_QUOTED;
        while (p < end && *p != quote && *p != '\\' && *p != '\n' && *p != '\0')
                p++;
        lx->p = p;
        if (p < end && *p == quote) {
                lx->text = str_make(from, (size_t)(p - from));
                lx->p++;
        } else {
                resolve(lx, quote, from);
        }
        if (lx->kind == TOKEN_QUOTED && lx->text.n == 0)
                bad(lx, "an empty name");
}

static enum token token_take(struct lex *lx, int length, enum token kind)
{
        lx->p += length;
        return kind;
}

static enum token operator(struct lex *lx) {
        const char *p = lx->p; char c = p[0], d = char_at(lx, p + 1), e = d ? char_at(lx, p + 2) : '\0';

        switch (c){
                case '(' : return token_take(lx, 1, TOKEN_OPEN);
                case ')' : return token_take(lx, 1, TOKEN_CLOSE);
                case '[' : return token_take(lx, 1, TOKEN_BOX_OPEN);
                case ']' : return token_take(lx, 1, TOKEN_BOX_CLOSE);
                case '{' : return token_take(lx, 1, TOKEN_BRACE_OPEN);
                case '}' : return token_take(lx, 1, TOKEN_BRACE_CLOSE);
                case ',' : return token_take(lx, 1, TOKEN_COMMA);
                case ';' : return token_take(lx, 1, TOKEN_SEMICOLON);
                case '.' : return token_take(lx, 1, TOKEN_DOT);
                case ':' : return token_take(lx, 1, TOKEN_COLON);
                case '~' : return token_take(lx, 1, TOKEN_TILDE);
                case '*' : return token_take(lx, 1, TOKEN_STAR);
                case '/' : return token_take(lx, 1, TOKEN_SLASH);
                case '%' : return token_take(lx, 1, TOKEN_PERCENT);
                case '+' : return token_take(lx, 1, TOKEN_PLUS);
                case '-' : return token_take(lx, 1, TOKEN_MINUS);
                case '^' : return token_take(lx, 1, TOKEN_BIT_XOR);
                case '?' : return d == ':' ? token_take(lx, 2, TOKEN_ELVIS)
                                           : token_take(lx, 1, TOKEN_QUESTION);
                case '!' : return d == '=' ? token_take(lx, 2, TOKEN_NOT_EQUAL)
                                           : token_take(lx, 1, TOKEN_NOT);
                case '&' : return d == '&' ? token_take(lx, 2, TOKEN_AND) : token_take(lx, 1, TOKEN_BIT_AND);
                case '|' : return d == '|' ? token_take(lx, 2, TOKEN_OR) : token_take(lx, 1, TOKEN_BIT_OR);
                case '<' : if (d == '<') return token_take(lx, 2, TOKEN_SHIFT_LEFT);
                return d == '=' ? token_take(lx, 2, TOKEN_LESS_EQUAL) : token_take(lx, 1, TOKEN_LESS);
                case '>' : if (d == '>') return e == '>' ? token_take(lx, 3, TOKEN_SHIFT_LOGICAL)
                                                         : token_take(lx, 2, TOKEN_SHIFT_RIGHT);
                return d == '=' ? token_take(lx, 2, TOKEN_GREATER_EQUAL) : token_take(lx, 1, TOKEN_GREATER);
                case '=' : if (d == '=') return token_take(lx, 2, TOKEN_EQUAL);
                if (d == '?' && e == '=') return token_take(lx, 3, TOKEN_IS);
                if (d == '!' && e == '=') return token_take(lx, 3, TOKEN_ISNT);
                return token_take(lx, 1, TOKEN_ASSIGN);
                default : lx->bad = "a character that has no meaning here";
                return TOKEN_BAD;
        }
}

/* Operators of one character that begin no other. */
static const unsigned char single[256] = {
        ['('] = TOKEN_OPEN,       [')'] = TOKEN_CLOSE,       ['['] = TOKEN_BOX_OPEN, [']'] = TOKEN_BOX_CLOSE,
        ['{'] = TOKEN_BRACE_OPEN, ['}'] = TOKEN_BRACE_CLOSE, [','] = TOKEN_COMMA,    [';'] = TOKEN_SEMICOLON,
        ['~'] = TOKEN_TILDE,      ['*'] = TOKEN_STAR,        ['%'] = TOKEN_PERCENT,  ['+'] = TOKEN_PLUS,
        ['-'] = TOKEN_MINUS,      ['^'] = TOKEN_BIT_XOR,     [':'] = TOKEN_COLON,
};

/* Reads a token that its first character does not decide. A function of its own, so that lex_next need save
 * no registers: every word of an ad passes there, and most are names. */
static __attribute__((noinline)) void other(struct lex *lx)
{
        const char *p = lx->p;
        unsigned class = class_of(*p);

        if ((class & LEX_SPACE) || *p == '/') {
                if (!lex_space(lx)) {
                        lx->at = lx->p;
                        bad(lx, "a comment that does not end");
                        return;
                }
                if (lx->p != p) {
                        lex_next(lx);
                        return;
                }
        }
        if ((class & LEX_DIGIT) || (*p == '.' && digit_at(lx, p + 1)))
                lex_number(lx);
        else if (*p == '"' || *p == '\'')
                lex_string(lx, *p);
        else
                lx->kind = operator(lx);
}

static inline bool in_name(char c)
{
        return class_of(c) & (LEX_ALPHA | LEX_DIGIT);
}

void lex_next(struct lex *lx)
{
        const char *p = lx->p, *end = lx->end;

        while (p < end && *p == ' ')
                p++;
        lx->at = lx->p = p;
        if (p >= end) {
                lx->kind = TOKEN_END;
        } else if (class_of(*p) & LEX_ALPHA) {
                while (end - p > 3 && in_name(p[1]) && in_name(p[2]) && in_name(p[3]))
                        p += 3;
                do
                        p++;
                while (p < end && in_name(*p));
                lx->text = str_make(lx->at, (size_t)(p - lx->at));
                lx->p = p;
                lx->kind = TOKEN_NAME;
        } else if (single[(unsigned char)*p]) {
                lx->kind = single[(unsigned char)*p];
                lx->p = p + 1;
        } else if (*p == '.' && end - p > 1 && (class_of(p[1]) & LEX_ALPHA)) {
                lx->kind = TOKEN_DOT;
                lx->p = p + 1;
        } else if (*p == '=' && end - p > 1 && p[1] == ' ') {
                lx->kind = TOKEN_ASSIGN;
                lx->p = p + 1;
        } else {
                other(lx);
        }
}
