/* Recursive descent with precedence climbing, straight to code: there is no tree beside it. Every rule takes
 * the token that is there, leaves the first one that it does not use, and gives the place of what it wrote.
 * Operands of lists and calls wait on a stack in the table of symbols.
 *
 * Depth is bounded twice: `depth` counts nested rules (our own recursion), and the height of what was written
 * is kept in its root (the recursion of evaluation and printing). */
#include "classad/parse.h"

#include <stdio.h>

#include "base/mem.h"
#include "classad/lex.h"

struct parse {
        struct lex lx;
        struct symbols *symbols;
        struct code *code;
        struct err *err;
        unsigned depth;
        int error; /* a classad_error, or 0 */
};

/* Binary operators by token: precedence (0: no operator) and operation. */
static const struct {
        uint8_t level, op;
} binary[TOKEN_COUNT] = {
        [TOKEN_OR] = {1, OP_OR},
        [TOKEN_AND] = {2, OP_AND},
        [TOKEN_BIT_OR] = {3, OP_BIT_OR},
        [TOKEN_BIT_XOR] = {4, OP_BIT_XOR},
        [TOKEN_BIT_AND] = {5, OP_BIT_AND},
        [TOKEN_EQUAL] = {6, OP_EQUAL},
        [TOKEN_NOT_EQUAL] = {6, OP_NOT_EQUAL},
        [TOKEN_IS] = {6, OP_IS},
        [TOKEN_ISNT] = {6, OP_ISNT},
        [TOKEN_LESS] = {7, OP_LESS},
        [TOKEN_LESS_EQUAL] = {7, OP_LESS_EQUAL},
        [TOKEN_GREATER_EQUAL] = {7, OP_GREATER_EQUAL},
        [TOKEN_GREATER] = {7, OP_GREATER},
        [TOKEN_SHIFT_LEFT] = {8, OP_SHIFT_LEFT},
        [TOKEN_SHIFT_RIGHT] = {8, OP_SHIFT_RIGHT},
        [TOKEN_SHIFT_LOGICAL] = {8, OP_SHIFT_LOGICAL},
        [TOKEN_PLUS] = {9, OP_ADD},
        [TOKEN_MINUS] = {9, OP_SUBTRACT},
        [TOKEN_STAR] = {10, OP_MULTIPLY},
        [TOKEN_SLASH] = {10, OP_DIVIDE},
        [TOKEN_PERCENT] = {10, OP_MODULUS},
};
#define LEVEL_AND     2

#define CODE_KEEP_MAX (1u << 20) /* of the table's buffer, between two texts */

static bool parse_conditional(struct parse *p, uint32_t *ret);

static bool fail_at(struct parse *p, int error, const char *at, const char *what)
{
        unsigned line, column;

        if (p->error)
                return false;
        p->error = error;
        lex_position(&p->lx, at, &line, &column);
        err_set(p->err, error, "line %u, column %u: %s", line, column, what);
        return false;
}

/* Reports that the present token is not the one that the rule needs. */
static bool parse_unexpected(struct parse *p, const char *need)
{
        char text[120];

        if (p->lx.kind == TOKEN_BAD)
                return fail_at(p, CLASSAD_SYNTAX, p->lx.at, p->lx.bad);
        if (p->lx.kind == TOKEN_END)
                snprintf(text, sizeof(text), "the text ends where %s should stand", need);
        else
                snprintf(text, sizeof(text), "'%.*s' where %s should stand",
                         (int)(p->lx.p - p->lx.at > 40 ? 40 : p->lx.p - p->lx.at), p->lx.at, need);
        return fail_at(p, CLASSAD_SYNTAX, p->lx.at, text);
}

static bool take_token(struct parse *p, enum token kind, const char *need)
{
        if (p->lx.kind != kind)
                return parse_unexpected(p, need);
        lex_next(&p->lx);
        return true;
}

static bool deeper(struct parse *p)
{
        if (++p->depth > CLASSAD_DEPTH_MAX)
                return fail_at(p, CLASSAD_TOO_DEEP, p->lx.at,
                               "an expression nested too deep (the limit is 400)");
        return true;
}

static bool parse_done(struct parse *p, uint32_t at, uint32_t *ret)
{
        if (code_node(p->code, at)->height > CLASSAD_DEPTH_MAX)
                return fail_at(p, CLASSAD_TOO_DEEP, p->lx.at,
                               "an expression nested too deep (the limit is 400)");
        *ret = at;
        return true;
}

static void push_kid(struct symbols *s, uint32_t at)
{
        MEM_GROW(s->kids, s->kids_cap, s->kids_n + 1);
        s->kids[s->kids_n++] = at;
}

/* Returns the symbol of a name. If the table may not grow, a name that it lacks is an error; the parse goes
 * on with any other symbol to its end. */
static symbol name_of(struct parse *p, uint32_t *ret_spelling)
{
        const struct symbols_use *use = p->symbols->use;
        bool full = symbols_use_full(use);
        char text[128];

        *ret_spelling = 0;
        if ((!p->symbols->frozen && !full) || symbols_known(p->symbols, p->lx.text)) {
                symbol name = symbols_intern(p->symbols, p->lx.text);

                *ret_spelling = symbols_spelling(p->symbols, name, p->lx.text);
                return name;
        }
        snprintf(text, sizeof(text), "a new name: more than %u made-up ones are in use", full ? use->max : 0);
        fail_at(p, CLASSAD_TOO_BIG, p->lx.at, full ? text : "a name that is known nowhere");
        return SYM_RANK;
}

static bool reserved(symbol name)
{
        return name >= SYM_TRUE && name <= SYM_ISNT;
}

/* Expressions between commas, up to `close`, onto the stack. */
static bool sequence(struct parse *p, enum token close, const char *need)
{
        uint32_t at;

        lex_next(&p->lx);
        if (p->lx.kind == close) {
                lex_next(&p->lx);
                return true;
        }
        for (;;) {
                if (!parse_conditional(p, &at))
                        return false;
                push_kid(p->symbols, at);
                if (p->lx.kind != TOKEN_COMMA)
                        return take_token(p, close, need);
                lex_next(&p->lx);
        }
}

static bool wide(struct parse *p, enum op op, symbol name, size_t base, uint32_t *ret)
{
        struct symbols *s = p->symbols;
        uint32_t at = code_wide(p->code, op, name, s->kids + base, (uint32_t)(s->kids_n - base));

        s->kids_n = base;
        return parse_done(p, at, ret);
}

/* name = expression, onto the stack of entries. */
static bool parse_attribute(struct parse *p, size_t base)
{
        struct symbols *s = p->symbols;
        bool quoted = p->lx.kind == TOKEN_QUOTED;
        symbol name;
        uint32_t at, spelling;

        if (!quoted && p->lx.kind != TOKEN_NAME)
                return parse_unexpected(p, "an attribute's name");
        name = name_of(p, &spelling);
        if (!quoted && reserved(name))
                return parse_unexpected(p, "an attribute's name");
        lex_next(&p->lx);
        if (!take_token(p, TOKEN_ASSIGN, "'='") || !parse_conditional(p, &at))
                return false;
        if (s->entries_n - base >= CLASSAD_ATTRIBUTES_MAX)
                return fail_at(p, CLASSAD_TOO_BIG, p->lx.at, "more than 100000 attributes");
        MEM_GROW(s->entries, s->entries_cap, s->entries_n + 1);
        s->entries[s->entries_n++] = (struct entry){name, (int32_t)at, spelling};
        return true;
}

/* Parses from behind the '[' to behind the ']'; the attributes are left on the stack from `base`. */
static bool parse_attributes(struct parse *p, size_t base)
{
        for (;;) {
                while (p->lx.kind == TOKEN_SEMICOLON)
                        lex_next(&p->lx);
                if (p->lx.kind == TOKEN_BOX_CLOSE) {
                        lex_next(&p->lx);
                        return true;
                }
                if (!parse_attribute(p, base))
                        return false;
                if (p->lx.kind != TOKEN_SEMICOLON && p->lx.kind != TOKEN_BOX_CLOSE)
                        return parse_unexpected(p, "';' or ']'");
        }
}

uint32_t entries_index_mask(uint32_t n)
{
        uint32_t mask = 15;

        while (mask < n * 2)
                mask = mask * 2 + 1;
        return mask;
}

uint32_t entries_unique(struct entry *entries, uint32_t n, uint32_t *index, uint32_t mask)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = symbol_hash(entries[i].name) & mask, j = 0;

                if (index) {
                        while ((j = index[at]) != 0 && entries[j - 1].name != entries[i].name)
                                at = (at + 1) & mask;
                } else {
                        for (uint32_t k = 0; k < count && !j; k++)
                                if (entries[k].name == entries[i].name)
                                        j = k + 1;
                }
                if (j) {
                        entries[j - 1].at = entries[i].at;
                        continue;
                }
                entries[count++] = entries[i];
                if (index)
                        index[at] = count;
        }
        return count;
}

static bool nested_ad(struct parse *p, uint32_t *ret)
{
        struct symbols *s = p->symbols;
        size_t base = s->entries_n;
        uint32_t n, mask, at;
        uint32_t *index = NULL;

        lex_next(&p->lx);
        if (!parse_attributes(p, base))
                return false;
        n = (uint32_t)(s->entries_n - base);
        mask = entries_index_mask(n);
        if (n >= AD_INDEX_MIN)
                index = mem_zalloc(((size_t)mask + 1) * sizeof(*index));
        n = entries_unique(s->entries + base, n, index, mask);
        free(index);
        at = code_ad(p->code, s->entries + base, n);
        s->entries_n = base;
        return parse_done(p, at, ret);
}

/* Strings that stand beside each other are one. */
static bool parse_string(struct parse *p, uint32_t *ret)
{
        struct buf all BUF_CLEANUP = {0};

        if (!lex_space(&p->lx) || p->lx.p >= p->lx.end || *p->lx.p != '"') {
                *ret = code_text(p->code, p->lx.text);
                lex_next(&p->lx);
                return true;
        }
        buf_str(&all, p->lx.text);
        for (lex_next(&p->lx); p->lx.kind == TOKEN_STRING; lex_next(&p->lx))
                buf_str(&all, p->lx.text);
        *ret = code_text(p->code, buf_view(&all));
        return true;
}

static bool name_or_call(struct parse *p, uint32_t *ret)
{
        bool quoted = p->lx.kind == TOKEN_QUOTED;
        uint32_t spelling;
        symbol name = name_of(p, &spelling);
        size_t base = p->symbols->kids_n;

        if (!quoted && reserved(name)) {
                switch (name) {
                case SYM_TRUE: *ret = code_scalar(p->code, OP_BOOLEAN, 1); break;
                case SYM_FALSE: *ret = code_scalar(p->code, OP_BOOLEAN, 0); break;
                case SYM_UNDEFINED: *ret = code_scalar(p->code, OP_UNDEFINED, 0); break;
                case SYM_ERROR: *ret = code_scalar(p->code, OP_ERROR, 0); break;
                default: return parse_unexpected(p, "a value");
                }
                lex_next(&p->lx);
                return true;
        }
        lex_next(&p->lx);
        if (quoted || p->lx.kind != TOKEN_OPEN) {
                *ret = code_name(p->code, OP_NAME, name);
                code_node(p->code, *ret)->spelling = spelling;
                return true;
        }
        if (!sequence(p, TOKEN_CLOSE, "',' or ')'") || !wide(p, OP_CALL, name, base, ret))
                return false;
        code_node(p->code, *ret)->spelling = spelling;
        return true;
}

static bool parenthesised(struct parse *p, uint32_t *ret)
{
        struct node *nd;

        lex_next(&p->lx);
        if (!parse_conditional(p, ret) || !take_token(p, TOKEN_CLOSE, "')'"))
                return false;
        nd = code_node(p->code, *ret);
        if (nd->parens < UINT8_MAX)
                nd->parens++;
        return true;
}

static bool absolute(struct parse *p, uint32_t *ret)
{
        uint32_t spelling;

        lex_next(&p->lx);
        if (p->lx.kind != TOKEN_NAME && p->lx.kind != TOKEN_QUOTED)
                return parse_unexpected(p, "a name");
        *ret = code_name(p->code, OP_ABSOLUTE, name_of(p, &spelling));
        code_node(p->code, *ret)->spelling = spelling;
        lex_next(&p->lx);
        return true;
}

static bool primary(struct parse *p, uint32_t *ret)
{
        size_t base = p->symbols->kids_n;

        switch (p->lx.kind) {
        case TOKEN_INTEGER:
                *ret = code_scalar(p->code, OP_INTEGER, p->lx.integer);
                lex_next(&p->lx);
                return true;
        case TOKEN_REAL:
                *ret = code_real(p->code, p->lx.real);
                lex_next(&p->lx);
                return true;
        case TOKEN_STRING: return parse_string(p, ret);
        case TOKEN_NAME:
        case TOKEN_QUOTED: return name_or_call(p, ret);
        case TOKEN_OPEN: return parenthesised(p, ret);
        case TOKEN_BRACE_OPEN:
                return sequence(p, TOKEN_BRACE_CLOSE, "',' or '}'") && wide(p, OP_LIST, 0, base, ret);
        case TOKEN_BOX_OPEN: return nested_ad(p, ret);
        case TOKEN_DOT: return absolute(p, ret);
        default: return parse_unexpected(p, "a value");
        }
}

static bool unary(struct parse *p, uint32_t *ret);

static bool postfix(struct parse *p, uint32_t *ret)
{
        uint32_t at, y, spelling;

        if (!primary(p, &at))
                return false;
        for (;;) {
                if (p->lx.kind == TOKEN_DOT) {
                        lex_next(&p->lx);
                        if (p->lx.kind != TOKEN_NAME && p->lx.kind != TOKEN_QUOTED)
                                return parse_unexpected(p, "a name");
                        at = code_select(p->code, at, name_of(p, &spelling));
                        code_node(p->code, at)->spelling = spelling;
                        lex_next(&p->lx);
                } else if (p->lx.kind == TOKEN_BOX_OPEN) {
                        lex_next(&p->lx);
                        if (!parse_conditional(p, &y) || !take_token(p, TOKEN_BOX_CLOSE, "']'"))
                                return false;
                        at = code_binary(p->code, OP_SUBSCRIPT, at, y);
                } else if (p->lx.kind == TOKEN_ELVIS) {
                        lex_next(&p->lx);
                        if (!deeper(p) || !unary(p, &y))
                                return false;
                        p->depth--;
                        at = code_binary(p->code, OP_ELVIS, at, y);
                } else {
                        *ret = at;
                        return true;
                }
                if (!parse_done(p, at, &at))
                        return false;
        }
}

static bool unary(struct parse *p, uint32_t *ret)
{
        enum op op;
        uint32_t x;

        switch (p->lx.kind) {
        case TOKEN_NOT: op = OP_NOT; break;
        case TOKEN_TILDE: op = OP_BIT_NOT; break;
        case TOKEN_PLUS: op = OP_PLUS; break;
        case TOKEN_MINUS: op = OP_MINUS; break;
        default: op = OP_COUNT; break;
        }
        if (op == OP_COUNT)
                return postfix(p, ret);
        if (!deeper(p))
                return false;
        lex_next(&p->lx);
        if (!unary(p, &x) || !parse_done(p, code_unary(p->code, op, x), ret))
                return false;
        p->depth--;
        return true;
}

/* The binary operator that the present token is; `is` and `isnt` are words. */
static enum token operator_token(const struct parse *p)
{
        if (p->lx.kind != TOKEN_NAME)
                return p->lx.kind;
        if (str_ieq(p->lx.text, STR("is")))
                return TOKEN_IS;
        return str_ieq(p->lx.text, STR("isnt")) ? TOKEN_ISNT : TOKEN_NAME;
}

static bool operation(struct parse *p, unsigned level, uint32_t *ret)
{
        struct symbols *s = p->symbols;
        uint32_t at, y;
        enum token token;

        if (!unary(p, &at))
                return false;
        while (binary[token = operator_token(p)].level >= level) {
                unsigned own = binary[token].level;

                if (own <= LEVEL_AND) {
                        size_t base = s->kids_n;

                        push_kid(s, at);
                        while (p->lx.kind == token) {
                                lex_next(&p->lx);
                                if (!operation(p, own + 1, &y))
                                        return false;
                                push_kid(s, y);
                        }
                        if (!wide(p, (enum op)binary[token].op, 0, base, &at))
                                return false;
                        continue;
                }
                lex_next(&p->lx);
                if (!operation(p, own + 1, &y) ||
                    !parse_done(p, code_binary(p->code, (enum op)binary[token].op, at, y), &at))
                        return false;
        }
        *ret = at;
        return true;
}

static bool parse_conditional(struct parse *p, uint32_t *ret)
{
        struct symbols *s = p->symbols;
        size_t base = s->kids_n;
        uint32_t kid;

        if (!deeper(p) || !operation(p, 1, &kid))
                return false;
        if (p->lx.kind == TOKEN_QUESTION) {
                push_kid(s, kid);
                lex_next(&p->lx);
                if (!parse_conditional(p, &kid) || !take_token(p, TOKEN_COLON, "':'"))
                        return false;
                push_kid(s, kid);
                if (!parse_conditional(p, &kid))
                        return false;
                push_kid(s, kid);
                if (!wide(p, OP_TERNARY, 0, base, &kid))
                        return false;
        }
        p->depth--;
        *ret = kid;
        return true;
}

static void begin_parse(struct parse *p, struct symbols *s, struct str text, struct err *err)
{
        *p = (struct parse){.symbols = s, .code = &s->code, .err = err};
        p->lx = (struct lex){.p = text.p, .end = text.p + text.n, .start = text.p, .scratch = &s->text};
        if (s->code.cap > CODE_KEEP_MAX)
                code_deinit(&s->code);
        s->code.n = s->code.again = 0;
        s->code.no_fold = false;
        s->entries_n = s->kids_n = 0;
        if (s->text.cap > 65536)
                buf_deinit(&s->text);
        buf_reset(&s->text);
}

static int too_long(struct err *err)
{
        return err_set(err, CLASSAD_TOO_BIG, "the text is longer than %u bytes", CLASSAD_TEXT_MAX);
}

int parse_expression(struct symbols *symbols, struct str text, bool fold, uint32_t *ret_root, struct err *err)
{
        struct parse p;

        if (text.n > CLASSAD_TEXT_MAX)
                return too_long(err);
        if (!text.p)
                text = STR("");
        begin_parse(&p, symbols, text, err);
        symbols->code.no_fold = !fold;
        lex_next(&p.lx);
        if (parse_conditional(&p, ret_root) && p.lx.kind != TOKEN_END)
                parse_unexpected(&p, "an operator or the end");
        return p.error;
}

static bool looks_new(struct str text)
{
        struct lex lx = {.p = text.p, .end = text.p + text.n};

        return lex_space(&lx) && lx.p < lx.end && *lx.p == '[';
}

static void old_lines(struct parse *p, const char *end)
{
        const char *line = p->lx.p, *next;

        p->lx.old = true;
        for (; line < end && !p->error; line = next) {
                const char *nl = memchr(line, '\n', (size_t)(end - line));
                const char *stop = nl ? nl : end;

                next = nl ? nl + 1 : end;
                while (stop > line && (lex_class[(unsigned char)stop[-1]] & LEX_SPACE))
                        stop--;
                p->lx.p = line;
                p->lx.end = stop;
                lex_space(&p->lx);
                if (p->lx.p >= stop || *p->lx.p == '#')
                        continue;
                lex_next(&p->lx);
                if (parse_attribute(p, 0) && p->lx.kind != TOKEN_END)
                        parse_unexpected(p, "an operator or the end of the line");
        }
}

int parse_ad(struct symbols *symbols, struct str text, enum classad_syntax syntax, struct err *err)
{
        struct parse p;

        if (text.n > CLASSAD_TEXT_MAX)
                return too_long(err);
        if (!text.p)
                text = STR("");
        begin_parse(&p, symbols, text, err);
        if (syntax == CLASSAD_OLD || (syntax == CLASSAD_ANY && !looks_new(text))) {
                old_lines(&p, text.p + text.n);
                return p.error;
        }
        lex_next(&p.lx);
        if (take_token(&p, TOKEN_BOX_OPEN, "'['") && parse_attributes(&p, 0) && p.lx.kind != TOKEN_END)
                parse_unexpected(&p, "the end of the ad");
        return p.error;
}

/* Returns the end of an ad's lines: before an empty line, or a separator line of HTCondor's history files. */
static const char *old_end(const char *p, const char *end)
{
        while (p < end) {
                const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
                struct str line = str_trim(str_make(p, (size_t)(stop - p)));

                if (line.n == 0 || str_starts(line, STR("***")))
                        return p;
                p = nl ? nl + 1 : end;
        }
        return end;
}

int parse_ad_part(struct symbols *symbols, struct str text, size_t *at, enum classad_syntax syntax,
                  struct err *err)
{
        const char *from = text.p + *at, *end = text.p + text.n;
        struct parse p;

        begin_parse(&p, symbols, text, err);
        p.lx.p = from;
        if (syntax == CLASSAD_OLD) {
                end = old_end(from, end);
                if ((size_t)(end - from) > CLASSAD_TEXT_MAX)
                        return too_long(err);
                old_lines(&p, end);
                if (!p.error)
                        *at = (size_t)(end - text.p);
                return p.error;
        }
        if ((size_t)(end - from) > CLASSAD_TEXT_MAX)
                p.lx.end = from + CLASSAD_TEXT_MAX;
        lex_next(&p.lx);
        if (take_token(&p, TOKEN_BOX_OPEN, "'['") && parse_attributes(&p, 0))
                *at = (size_t)(p.lx.at - text.p); /* of the token behind the ad */
        else if (p.lx.end != end && p.lx.p == p.lx.end)
                return too_long(err);
        return p.error;
}
