/* Printing walks the nodes, and ends early when the buffer is full. Parentheses are kept as they were
 * written, and added where an expression was put together in another way than by reading. Folded nodes print
 * what was written. */
#include "classad/print_private.h"

#include <stdlib.h>

#include "classad/code.h"
#include "classad/lex.h"

struct printer {
        struct buf *out;
        const struct symbols *symbols;
        bool old; /* strings by the rules of the old syntax */
};

static const struct {
        const char *text;
        unsigned level;
} operators[OP_COUNT] = {
        [OP_TERNARY] = {"?", 1},
        [OP_OR] = {"||", 2},
        [OP_AND] = {"&&", 3},
        [OP_BIT_OR] = {"|", 4},
        [OP_BIT_XOR] = {"^", 5},
        [OP_BIT_AND] = {"&", 6},
        [OP_EQUAL] = {"==", 7},
        [OP_NOT_EQUAL] = {"!=", 7},
        [OP_IS] = {"=?=", 7},
        [OP_ISNT] = {"=!=", 7},
        [OP_LESS] = {"<", 8},
        [OP_LESS_EQUAL] = {"<=", 8},
        [OP_GREATER_EQUAL] = {">=", 8},
        [OP_GREATER] = {">", 8},
        [OP_SHIFT_LEFT] = {"<<", 9},
        [OP_SHIFT_RIGHT] = {">>", 9},
        [OP_SHIFT_LOGICAL] = {">>>", 9},
        [OP_ADD] = {"+", 10},
        [OP_SUBTRACT] = {"-", 10},
        [OP_MULTIPLY] = {"*", 11},
        [OP_DIVIDE] = {"/", 11},
        [OP_MODULUS] = {"%", 11},
        [OP_NOT] = {"!", 12},
        [OP_BIT_NOT] = {"~", 12},
        [OP_PLUS] = {"+", 12},
        [OP_MINUS] = {"-", 12},
        [OP_ELVIS] = {"?:", 13},
        [OP_SUBSCRIPT] = {"[", 14},
        [OP_SELECT] = {".", 14},
};

static void print_tree(const struct printer *p, const struct node *nd, unsigned level);

void print_string(struct buf *out, struct str s)
{
        buf_char(out, '"');
        for (size_t i = 0; i < s.n && !out->overflow; i++) {
                unsigned char c = (unsigned char)s.p[i];

                switch (c) {
                case '"': buf_addz(out, "\\\""); break;
                case '\\': buf_addz(out, "\\\\"); break;
                case '\b': buf_addz(out, "\\b"); break;
                case '\t': buf_addz(out, "\\t"); break;
                case '\n': buf_addz(out, "\\n"); break;
                case '\f': buf_addz(out, "\\f"); break;
                case '\r': buf_addz(out, "\\r"); break;
                default:
                        if (c < 0x20 || c == 0x7f)
                                buf_printf(out, "\\%03o", c);
                        else
                                buf_char(out, (char)c);
                        break;
                }
        }
        buf_char(out, '"');
}

/* Old lines know one escape. A line break cannot be written there; it becomes a space. */
static void print_old_string(struct buf *out, struct str s)
{
        buf_char(out, '"');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '"')
                        buf_char(out, '\\');
                buf_char(out, s.p[i] == '\n' ? ' ' : s.p[i]);
        }
        buf_char(out, '"');
}

void print_utf8(struct buf *out, struct str text)
{
        while (text.n) {
                size_t n = str_utf8(text);
                bool character = n > 0;

                /* U+FFFE and U+FFFF are none that XML knows */
                if (n == 3 && (unsigned char)text.p[0] == 0xef && (unsigned char)text.p[1] == 0xbf)
                        character = (unsigned char)text.p[2] < 0xbe;
                if (character)
                        buf_add(out, text.p, n);
                else
                        buf_printf(out, "\\%03o", (unsigned char)text.p[0]);
                text = str_skip(text, character ? n : 1);
        }
}

static bool is_reserved(struct str name)
{
        static const char *const words[] = {"true", "false", "undefined", "error", "is", "isnt"};

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                if (str_ieqz(name, words[i]))
                        return true;
        return false;
}

static void print_name(const struct printer *p, symbol name, uint32_t spelling)
{
        struct buf spelled BUF_CLEANUP = {0};
        struct str s = symbols_name(p->symbols, name);

        if (spelling) {
                symbols_print(p->symbols, name, spelling, &spelled);
                s = buf_view(&spelled);
        }

        if (lex_is_name(s) && !is_reserved(s)) {
                buf_str(p->out, s);
                return;
        }
        buf_char(p->out, '\'');
        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char)s.p[i];

                if (p->old) { /* where a backslash is only that */
                        buf_char(p->out, c == '\n' ? ' ' : (char)c);
                        continue;
                }
                if (c < 0x20 || c == 0x7f) {
                        buf_printf(p->out, "\\%03o", c);
                        continue;
                }
                if (c == '\'' || c == '\\')
                        buf_char(p->out, '\\');
                buf_char(p->out, (char)c);
        }
        buf_char(p->out, '\'');
}

static void print_literal(const struct printer *p, const struct node *nd)
{
        struct value v;

        node_literal(nd, &v);
        if (p->old && v.type == VALUE_STRING)
                print_old_string(p->out, v.string);
        else
                value_print(p->out, &v);
}

static void print_kids(const struct printer *p, const struct node *nd, const char *between, unsigned level)
{
        for (uint32_t i = 0; i < nd->n && !p->out->overflow; i++) {
                buf_addz(p->out, i ? between : "");
                print_tree(p, node_wide_kid(nd, i), level);
        }
}

static void print_entries(const struct printer *p, const struct node *nd)
{
        const struct entry *e = node_entries(nd);

        buf_addz(p->out, "[ ");
        for (uint32_t i = 0; i < nd->n && !p->out->overflow; i++) {
                buf_addz(p->out, i ? "; " : "");
                print_name(p, e[i].name, e[i].spelling);
                buf_addz(p->out, " = ");
                print_tree(p, node_at(nd, e[i].at), 0);
        }
        buf_addz(p->out, " ]");
}

/* A negative number is read as one only where a unary operator could stand. */
static unsigned level_of(const struct node *nd)
{
        if (nd->op == OP_INTEGER && nd->integer < 0)
                return operators[OP_MINUS].level;
        if (nd->op == OP_REAL && __builtin_signbit(nd->real))
                return operators[OP_MINUS].level;
        return operators[nd->op].text ? operators[nd->op].level : 15;
}

static void print_node_here(const struct printer *p, const struct node *nd)
{
        struct buf *out = p->out;
        unsigned level = operators[nd->op].level;

        switch (nd->op) {
        case OP_NAME: print_name(p, nd->a, nd->spelling); break;
        case OP_ABSOLUTE:
        case OP_MY:
        case OP_TARGET:
                buf_addz(out, nd->op == OP_MY ? "MY." : nd->op == OP_TARGET ? "TARGET." : ".");
                print_name(p, nd->a, nd->spelling);
                break;
        case OP_SELECT:
                print_tree(p, node_kid(nd, 0), level);
                /* "1.a" would be a broken number */
                buf_addz(out, node_kid(nd, 0)->op == OP_INTEGER ? " ." : ".");
                print_name(p, nd->a, nd->spelling);
                break;
        case OP_SUBSCRIPT:
                print_tree(p, node_kid(nd, 0), level);
                buf_char(out, '[');
                print_tree(p, node_kid(nd, 1), 0);
                buf_char(out, ']');
                break;
        case OP_NOT:
        case OP_BIT_NOT:
        case OP_PLUS:
        case OP_MINUS:
                buf_addz(out, operators[nd->op].text);
                print_tree(p, node_kid(nd, 0), level);
                break;
        case OP_AND: print_kids(p, nd, " && ", level + 1); break;
        case OP_OR: print_kids(p, nd, " || ", level + 1); break;
        case OP_TERNARY:
                print_tree(p, node_wide_kid(nd, 0), level + 1);
                buf_addz(out, " ? ");
                print_tree(p, node_wide_kid(nd, 1), 0);
                buf_addz(out, " : ");
                print_tree(p, node_wide_kid(nd, 2), level);
                break;
        case OP_LIST:
                buf_addz(out, "{ ");
                print_kids(p, nd, ",", 0);
                buf_addz(out, " }");
                break;
        case OP_CALL:
                print_name(p, nd->a, nd->spelling);
                buf_char(out, '(');
                print_kids(p, nd, ",", 0);
                buf_char(out, ')');
                break;
        case OP_AD: print_entries(p, nd); break;
        default: /* two operands, grouped from the left */
                print_tree(p, node_kid(nd, 0), level);
                buf_printf(out, " %s ", operators[nd->op].text);
                print_tree(p, node_kid(nd, 1), level + 1);
                break;
        }
}

/* Prints a node; `level` is the precedence of the operator around it. */
static void print_tree(const struct printer *p, const struct node *nd, unsigned level)
{
        unsigned parens;

        while (nd->op == OP_ENTRY || nd->op == OP_FOLD) {
                if (nd->op == OP_FOLD && nd->parens)
                        break;
                nd = node_kid(nd, 0);
        }
        parens = nd->parens;
        if (nd->op == OP_FOLD)
                nd = node_kid(nd, 0);
        if (!parens && level_of(nd) < level)
                parens = 1;
        for (unsigned i = 0; i < parens; i++)
                buf_char(p->out, '(');
        if (node_is_literal(nd))
                print_literal(p, nd);
        else
                print_node_here(p, nd);
        for (unsigned i = 0; i < parens; i++)
                buf_char(p->out, ')');
}

void print_node(struct buf *out, const struct node *nd, const struct symbols *symbols)
{
        print_tree(&(struct printer){.out = out, .symbols = symbols}, nd, 0);
}

void print_bare_node(struct buf *out, const struct node *nd, const struct symbols *symbols)
{
        print_node_here(&(struct printer){.out = out, .symbols = symbols}, nd);
}

void expr_print(struct buf *out, const struct expr *e, const struct symbols *symbols)
{
        print_node(out, &e->root, symbols);
}

void expr_print_clause(struct buf *out, const struct expr *e, unsigned n, const struct symbols *symbols)
{
        struct printer p = {.out = out, .symbols = symbols};
        const struct node *nd = expr_root(e);

        assert(n < expr_clause_count(e));
        if (nd->op == OP_AND)
                nd = node_wide_kid(nd, n);
        if (nd->op == OP_FOLD)
                nd = node_kid(nd, 0);
        /* without the parentheses around all of it */
        if (node_is_literal(nd))
                print_literal(&p, nd);
        else
                print_node_here(&p, nd);
}

struct listed *print_listed(const struct ad *ad, bool with_parents, size_t *ret_n)
{
        struct listed *all = NULL;
        size_t n = 0, cap = 0;

        for (const struct ad *a = ad; a; a = with_parents ? a->parent : NULL) {
                for (uint32_t i = 0; i < a->count; i++) {
                        symbol name = a->entries[i].name;
                        const struct ad *first = ad;

                        while (first != a && !ad_get_own(first, name))
                                first = first->parent;
                        if (first != a)
                                continue;
                        MEM_GROW(all, cap, n + 1);
                        all[n++] = (struct listed){name, a->entries[i].spelling, ad_get_own(a, name)};
                }
        }
        *ret_n = n;
        return all;
}

static int compare_listed(const void *a, const void *b, void *symbols)
{
        return str_icmp(symbols_name(symbols, ((const struct listed *)a)->name),
                        symbols_name(symbols, ((const struct listed *)b)->name));
}

void ad_print(struct buf *out, const struct ad *ad, enum classad_syntax syntax, bool with_parents)
{
        struct printer p = {.out = out, .symbols = ad->symbols, .old = syntax == CLASSAD_OLD};
        size_t n;
        struct listed *all = print_listed(ad, with_parents, &n);

        if (p.old && n)
                qsort_r(all, n, sizeof(*all), compare_listed, ad->symbols);
        buf_addz(out, p.old ? "" : "[ ");
        for (size_t i = 0; i < n && !out->overflow; i++) {
                buf_addz(out, i && !p.old ? "; " : "");
                print_name(&p, all[i].name, all[i].spelling);
                buf_addz(out, " = ");
                print_tree(&p, all[i].nd, 0);
                buf_addz(out, p.old ? "\n" : "");
        }
        buf_addz(out, p.old ? "" : " ]");
        free(all);
}
