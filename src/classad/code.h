/* code: the compact form of expressions, shared by the stages of the engine (private to classad/).
 *
 * An expression is a sequence of nodes of 16 bytes in one block of bytes ("code"), in parsing order. Operands
 * precede their operator, which refers to them by their distance in bytes, so code is position-independent
 * and can be copied. Long texts are in the code too; texts of up to eight bytes are in the node itself. A
 * `struct expr *` is the address of the root node. Nodes with many operands ("wide") are followed by their
 * distances.
 *
 * Constant parts are evaluated at compilation: OP_FOLD has the value for evaluation and the original for
 * printing.
 */
#pragma once
#include <assert.h>

#include "classad/expr.h"

enum op {
        /* literals; literal_value() */
        OP_UNDEFINED,
        OP_ERROR,
        OP_BOOLEAN,
        OP_INTEGER,
        OP_REAL,
        OP_TEXT_SHORT, /* a: length, at most 8; the text is in the node */
        OP_TEXT,       /* a: length; kid[0]: where the text is */
        OP_LITERAL_LAST = OP_TEXT,
        OP_FOLD,  /* kid[0]: the original, kid[1]: a literal with its value */
        OP_ENTRY, /* kid[0]: the root; the first node of an expression that stands alone; a: bytes of all */
        /* names; a: the symbol */
        OP_NAME,     /* x */
        OP_ABSOLUTE, /* .x */
        OP_MY,       /* MY.x */
        OP_TARGET,   /* TARGET.x */
        /* one operand */
        OP_SELECT, /* kid[0].a */
        OP_NOT,
        OP_BIT_NOT,
        OP_PLUS,
        OP_MINUS,
        /* two operands */
        OP_SUBSCRIPT,
        OP_ELVIS,
        OP_MULTIPLY,
        OP_DIVIDE,
        OP_MODULUS,
        OP_ADD,
        OP_SUBTRACT,
        OP_SHIFT_LEFT,
        OP_SHIFT_RIGHT,
        OP_SHIFT_LOGICAL,
        OP_LESS,
        OP_LESS_EQUAL,
        OP_GREATER_EQUAL,
        OP_GREATER,
        OP_EQUAL,
        OP_NOT_EQUAL,
        OP_IS,
        OP_ISNT,
        OP_BIT_AND,
        OP_BIT_XOR,
        OP_BIT_OR,
        /* wide; n operands */
        OP_AND,
        OP_OR,
        OP_TERNARY,
        OP_LIST,
        OP_CALL, /* a: the function's name */
        OP_AD,   /* followed by n struct entry, relative to this node */
        OP_COUNT
};

struct node {
        uint8_t op;
        uint8_t parens;  /* pairs of parentheses written around it, for printing */
        uint16_t height; /* of the tree below it, 0 for literals and names */
        uint32_t a;
        union {
                bool boolean;
                int64_t integer;
                double real;
                char text[8];
                int32_t kid[2];
                struct {
                        uint32_t n;
                        uint32_t
                                spelling; /* of names, of the attribute selected and of the function called */
                };
        };
};
_Static_assert(sizeof(struct node) == 16, "the size that the engine is made for");

/* An attribute: the distance of its root node from the base of the code that it stands in. */
struct entry {
        symbol name;
        int32_t at;
        uint32_t spelling; /* symbols_spelling() */
};
/* Bytes that n entries take, rounded up to the alignment of a node. */
static inline size_t entries_size(size_t n)
{
        return (n * sizeof(struct entry) + 7) & ~(size_t)7;
}

struct expr {
        struct node root;
};

static inline const struct node *node_at(const struct node *nd, int32_t distance)
{
        return (const struct node *)(const void *)((const char *)nd + distance);
}
static inline const struct node *node_kid(const struct node *nd, unsigned i)
{
        return node_at(nd, nd->kid[i]);
}
static inline const struct node *node_wide_kid(const struct node *nd, unsigned i)
{
        return node_at(nd, ((const int32_t *)(const void *)(nd + 1))[i]);
}
static inline const struct entry *node_entries(const struct node *nd)
{
        return (const struct entry *)(const void *)(nd + 1);
}
static inline bool node_is_literal(const struct node *nd)
{
        return nd->op <= OP_LITERAL_LAST;
}
static inline struct str node_text(const struct node *nd)
{
        return str_make(nd->op == OP_TEXT ? (const char *)nd + nd->kid[0] : nd->text, nd->a);
}
/* The root that evaluation starts from. */
static inline const struct node *expr_root(const struct expr *e)
{
        const struct node *nd = &e->root;

        return nd->op == OP_ENTRY ? node_kid(nd, 0) : nd;
}
static inline void node_literal(const struct node *nd, struct value *ret)
{
        ret->offset = 0;
        switch (nd->op) {
        case OP_UNDEFINED: ret->type = VALUE_UNDEFINED; break;
        case OP_BOOLEAN:
                ret->type = VALUE_BOOLEAN;
                ret->boolean = nd->boolean;
                break;
        case OP_INTEGER:
                ret->type = VALUE_INTEGER;
                ret->integer = nd->integer;
                break;
        case OP_REAL:
                ret->type = VALUE_REAL;
                ret->real = nd->real;
                break;
        case OP_TEXT_SHORT:
        case OP_TEXT:
                ret->type = VALUE_STRING;
                ret->string = node_text(nd);
                break;
        default: ret->type = VALUE_ERROR; break;
        }
}

/* A list: either made by evaluation (items), or a literal list (nd), whose members are evaluated lazily in
 * the scope where it stands. */
struct value_list {
        uint32_t n;
        const struct value *items;
        const struct node *nd;
        const struct ad *my, *target;
        const struct symbols *symbols;
};

#define AD_MAGIC     0x61644144u
#define AD_INDEX_MIN 9 /* attributes from which an ad has a hash index */

struct ad {
        uint32_t magic;
        uint32_t count;
        struct entry *entries; /* in the order they were set */
        char *code;            /* base of the entries' distances */
        uint32_t *index;       /* entry number + 1, or 0; NULL for small ads */
        uint32_t index_mask;
        uint32_t entries_cap;
        uint32_t code_n, code_cap;
        uint32_t waste;          /* bytes of code that no entry uses any more */
        bool packed;             /* entries, code and index stand in the same block as the ad */
        const struct ad *parent; /* chained ad */
        const struct ad
                *enclosing; /* the ad that this one is written in; set for the time of an evaluation */
        struct symbols *symbols;
};

static inline uint32_t symbol_hash(symbol name)
{
        return (name * 0x9e3779b1u) >> 7;
}

/* The root node of an attribute of the ad itself, or NULL. */
static inline const struct node *ad_get_own(const struct ad *ad, symbol name)
{
        if (ad->index) {
                uint32_t at = symbol_hash(name) & ad->index_mask, i;

                while ((i = ad->index[at]) != 0) {
                        const struct entry *e = &ad->entries[i - 1];

                        if (e->name == name)
                                return (const struct node *)(const void *)(ad->code + e->at);
                        at = (at + 1) & ad->index_mask;
                }
                return NULL;
        }
        for (uint32_t i = 0; i < ad->count; i++)
                if (ad->entries[i].name == name)
                        return (const struct node *)(const void *)(ad->code + ad->entries[i].at);
        return NULL;
}
static inline const struct node *ad_get(const struct ad *ad,
                                        symbol name) /* ad_get_own, then in the parents */
{
        do {
                const struct node *nd = ad_get_own(ad, name);

                if (nd)
                        return nd;
                ad = ad->parent;
        } while (ad);
        return NULL;
}

/* Symbols of the names that every table has, in this order. The functions follow. */
enum known_symbol {
        SYM_REQUIREMENTS = 1,
        SYM_RANK,
        SYM_CURRENT_TIME,
        SYM_MY,
        SYM_SELF,
        SYM_TARGET,
        SYM_OTHER,
        SYM_PARENT,
        SYM_ROOT,
        SYM_TOPLEVEL,
        SYM_TRUE,
        SYM_FALSE,
        SYM_UNDEFINED,
        SYM_ERROR,
        SYM_IS,
        SYM_ISNT,
        SYM_FIRST_FUNCTION
};
