/* Writing code is appending to a buffer; operands are places in it, and become distances when the node that
 * uses them is written. Folding evaluates a node whose operands are all literals with the same functions as
 * evaluation does, so both agree by construction (and a test compares them).
 *
 * && and || are kept flat: `a && (b && c) && d` is one node of four clauses. It means the same, because what
 * stands left decides in both, and it is how conditions are explained clause by clause. The operands of the
 * inner node are written again for that, which may take as much as all other code and AGAIN_FREE; past that
 * an inner node stays as it is, or hundreds of parentheses around a long condition would be hundreds of
 * copies. */
#include "classad/compile.h"

#include "base/mem.h"
#include "classad/operators.h"

void code_deinit(struct code *c)
{
        free(c->p);
        c->p = NULL;
        c->n = c->cap = c->again = 0;
}

char *code_room(struct code *c, size_t n)
{
        char *p;
        size_t need;

        if (c->n == 0)
                c->n = 8;
        n = (n + 7) & ~(size_t)7;
        need = c->n + n;
        if (need > c->cap) {
                size_t cap = c->cap * 2 < 1024 ? 1024 : (size_t)c->cap * 2;

                if (cap < need)
                        cap = need;
                assert(cap < UINT32_MAX);
                c->p = mem_realloc(c->p, cap);
                c->cap = (uint32_t)cap;
        }
        p = c->p + c->n;
        c->n += (uint32_t)n;
        return p;
}

static inline struct node *add_node(struct code *c, enum op op, uint32_t a, uint32_t *ret_at)
{
        struct node *nd = (struct node *)(void *)code_room(c, sizeof(*nd));

        *ret_at = (uint32_t)((char *)nd - c->p);
        nd->op = (uint8_t)op;
        nd->parens = 0;
        nd->height = 0;
        nd->a = a;
        nd->integer = 0;
        return nd;
}

static inline void raise(struct node *nd, const struct node *kid)
{
        if (nd->height <= kid->height && kid->height < UINT16_MAX)
                nd->height = (uint16_t)(kid->height + 1);
}

uint32_t code_scalar(struct code *c, enum op op, int64_t bits)
{
        uint32_t at;
        struct node *nd = add_node(c, op, 0, &at);

        nd->integer = bits;
        return at;
}

uint32_t code_real(struct code *c, double v)
{
        uint32_t at;
        struct node *nd = add_node(c, OP_REAL, 0, &at);

        nd->real = v;
        return at;
}

uint32_t code_text(struct code *c, struct str s)
{
        uint32_t at, text = 0;
        struct node *nd;

        if (s.n > sizeof(nd->text)) {
                char *p = code_room(c, s.n);

                memcpy(p, s.p, s.n);
                text = (uint32_t)(p - c->p);
        }
        nd = add_node(c, s.n > sizeof(nd->text) ? OP_TEXT : OP_TEXT_SHORT, (uint32_t)s.n, &at);
        if (nd->op == OP_TEXT)
                nd->kid[0] = (int32_t)(text - at);
        else if (s.n)
                memcpy(nd->text, s.p, s.n);
        return at;
}

uint32_t code_name(struct code *c, enum op op, symbol name)
{
        uint32_t at;

        add_node(c, op, name, &at);
        return at;
}

bool code_value(struct code *c, const struct value *v, uint32_t *ret_at)
{
        switch (v->type) {
        case VALUE_UNDEFINED: *ret_at = code_scalar(c, OP_UNDEFINED, 0); return true;
        case VALUE_ERROR: *ret_at = code_scalar(c, OP_ERROR, 0); return true;
        case VALUE_BOOLEAN: *ret_at = code_scalar(c, OP_BOOLEAN, v->boolean); return true;
        case VALUE_INTEGER: *ret_at = code_scalar(c, OP_INTEGER, v->integer); return true;
        case VALUE_REAL: *ret_at = code_real(c, v->real); return true;
        case VALUE_STRING: *ret_at = code_text(c, v->string); return true;
        default: return false;
        }
}

/* The literal that stands for the operand in evaluation, or NULL. */
static const struct node *compile_constant(const struct code *c, uint32_t at)
{
        const struct node *nd = code_node(c, at);

        if (nd->op == OP_FOLD)
                nd = node_kid(nd, 1);
        return node_is_literal(nd) ? nd : NULL;
}

static uint32_t fold(struct code *c, uint32_t original, const struct value *v)
{
        uint32_t literal, at;
        struct node *nd;

        if (v->type > VALUE_REAL || !code_value(c, v, &literal))
                return original;
        nd = add_node(c, OP_FOLD, 0, &at);
        nd->kid[0] = (int32_t)(original - at);
        nd->kid[1] = (int32_t)(literal - at);
        nd->height = code_node(c, original)->height;
        return at;
}

uint32_t code_select(struct code *c, uint32_t from, symbol name)
{
        const struct node *f = code_node(c, from);
        uint32_t at;
        struct node *nd;

        if (f->op == OP_NAME && !f->parens && (f->a == SYM_MY || f->a == SYM_TARGET || f->a == SYM_OTHER)) {
                /* `from` was the last that was written: its node becomes the whole reference */
                struct node *own = code_node(c, from);

                own->op = f->a == SYM_MY ? OP_MY : OP_TARGET;
                own->a = name;
                own->spelling = 0;
                return from;
        }
        nd = add_node(c, OP_SELECT, name, &at);
        nd->kid[0] = (int32_t)(from - at);
        raise(nd, code_node(c, from));
        return at;
}

uint32_t code_unary(struct code *c, enum op op, uint32_t x)
{
        const struct node *k = compile_constant(c, x);
        struct value v, result;
        uint32_t at;
        struct node *nd;

        if (op == OP_MINUS && !code_node(c, x)->parens) {
                struct node *number = code_node(c, x);

                /* a negative number is a literal */
                if (number->op == OP_INTEGER) {
                        if (number->integer > 0 || number->integer == INT64_MIN) {
                                number->integer = (int64_t)(0 - (uint64_t)number->integer);
                                return x;
                        }
                } else if (number->op == OP_REAL && !(number->real < 0)) {
                        number->real = -number->real;
                        return x;
                }
        }
        nd = add_node(c, op, 0, &at);
        nd->kid[0] = (int32_t)(x - at);
        raise(nd, code_node(c, x));
        if (!k || c->no_fold)
                return at;
        node_literal(compile_constant(c, x), &v);
        operator_unary(op, &v, &result);
        return fold(c, at, &result);
}

uint32_t code_binary(struct code *c, enum op op, uint32_t x, uint32_t y)
{
        const struct node *kx, *ky;
        struct value vx, vy, result;
        uint32_t at;
        struct node *nd = add_node(c, op, 0, &at);

        nd->kid[0] = (int32_t)(x - at);
        nd->kid[1] = (int32_t)(y - at);
        raise(nd, code_node(c, x));
        raise(nd, code_node(c, y));
        if (op <= OP_ELVIS || c->no_fold || !(kx = compile_constant(c, x)) || !(ky = compile_constant(c, y)))
                return at;
        node_literal(kx, &vx);
        node_literal(ky, &vy);
        operator_binary(op, &vx, &vy, &result);
        return fold(c, at, &result);
}

#define AGAIN_FREE 4096u /* bytes */

/* Number of operands when nodes of the same && or || among them are taken apart; *flatten becomes false when
 * they stay as they are. */
static uint32_t flat_count(struct code *c, enum op op, const uint32_t *kids, uint32_t n, bool *flatten)
{
        uint64_t count = 0, again = 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct node *nd = code_node(c, kids[i]);

                count += nd->op == op ? nd->n : 1;
                again += nd->op == op ? nd->n * sizeof(int32_t) : 0;
        }
        if (c->again + again > AGAIN_FREE + (uint64_t)(c->n - c->again)) {
                *flatten = false;
                return n;
        }
        c->again += (uint32_t)again;
        return (uint32_t)count;
}

uint32_t code_wide(struct code *c, enum op op, symbol name, const uint32_t *kids, uint32_t n)
{
        bool flatten = op == OP_AND || op == OP_OR;
        uint32_t count = flatten ? flat_count(c, op, kids, n, &flatten) : n, at, out = 0;
        struct node *nd = (struct node *)(void *)code_room(c, sizeof(*nd) + (size_t)count * sizeof(int32_t));
        int32_t *to = (int32_t *)(void *)(nd + 1);

        at = (uint32_t)((char *)nd - c->p);
        *nd = (struct node){.op = (uint8_t)op, .a = name, .n = count, .spelling = 0};
        if (count & 1)
                to[count] = 0; /* the padding */
        for (uint32_t i = 0; i < n; i++) {
                const struct node *k = code_node(c, kids[i]);

                if (flatten && k->op == op)
                        nd->height = k->height > nd->height ? k->height : nd->height;
                else
                        raise(nd, k);
                if (flatten && k->op == op) {
                        for (uint32_t j = 0; j < k->n; j++)
                                to[out++] = (int32_t)((const char *)node_wide_kid(k, j) - (const char *)nd);
                } else {
                        to[out++] = (int32_t)(kids[i] - at);
                }
        }
        assert(out == count);
        return at;
}

uint32_t code_ad(struct code *c, const struct entry *entries, uint32_t n)
{
        struct node *nd = (struct node *)(void *)code_room(c, sizeof(*nd) + entries_size(n));
        struct entry *to = (struct entry *)(void *)(nd + 1);
        uint32_t at = (uint32_t)((char *)nd - c->p);

        *nd = (struct node){.op = OP_AD, .n = n, .spelling = 0};
        for (uint32_t i = 0; i < n; i++) {
                raise(nd, code_node(c, (uint32_t)entries[i].at));
                to[i] = (struct entry){entries[i].name, entries[i].at - (int32_t)at, entries[i].spelling};
        }
        return at;
}

static uint32_t copy_wide(struct code *c, const struct node *nd)
{
        uint32_t *kids = mem_array(NULL, nd->n + 1, sizeof(*kids)), at;

        for (uint32_t i = 0; i < nd->n; i++)
                kids[i] = code_copy(c, node_wide_kid(nd, i));
        at = code_wide(c, (enum op)nd->op, nd->a, kids, nd->n);
        code_node(c, at)->spelling = nd->spelling;
        free(kids);
        return at;
}

static uint32_t copy_ad(struct code *c, const struct node *nd)
{
        struct entry *entries = mem_array(NULL, nd->n + 1, sizeof(*entries));
        uint32_t at;

        for (uint32_t i = 0; i < nd->n; i++) {
                const struct entry *e = &node_entries(nd)[i];

                entries[i] = (struct entry){e->name, (int32_t)code_copy(c, node_at(nd, e->at)), e->spelling};
        }
        at = code_ad(c, entries, nd->n);
        free(entries);
        return at;
}

uint32_t code_copy(struct code *c, const struct node *nd)
{
        uint32_t at, kid[2] = {0, 0};
        struct node *to;

        if (nd->op == OP_ENTRY)
                nd = node_kid(nd, 0);
        switch (nd->op) {
        case OP_TEXT: at = code_text(c, node_text(nd)); break;
        case OP_AND:
        case OP_OR:
        case OP_TERNARY:
        case OP_LIST:
        case OP_CALL: at = copy_wide(c, nd); break;
        case OP_AD: at = copy_ad(c, nd); break;
        default:
                if (nd->op == OP_FOLD || nd->op >= OP_SELECT)
                        kid[0] = code_copy(c, node_kid(nd, 0));
                if (nd->op == OP_FOLD || nd->op >= OP_SUBSCRIPT)
                        kid[1] = code_copy(c, node_kid(nd, 1));
                to = add_node(c, (enum op)nd->op, nd->a, &at);
                to->integer = nd->integer;
                if (nd->op == OP_FOLD || nd->op >= OP_SELECT)
                        to->kid[0] = (int32_t)(kid[0] - at);
                if (nd->op == OP_FOLD || nd->op >= OP_SUBSCRIPT)
                        to->kid[1] = (int32_t)(kid[1] - at);
                break;
        }
        code_node(c, at)->parens = nd->parens;
        code_node(c, at)->height = nd->height;
        return at;
}

size_t node_bytes(const struct node *nd)
{
        size_t n = sizeof(*nd);

        switch (nd->op) {
        case OP_TEXT: return n + ((nd->a + 7u) & ~7u);
        case OP_AND:
        case OP_OR:
        case OP_TERNARY:
        case OP_LIST:
        case OP_CALL:
                for (uint32_t i = 0; i < nd->n; i++)
                        n += node_bytes(node_wide_kid(nd, i));
                return n + ((nd->n * sizeof(int32_t) + 7) & ~(size_t)7);
        case OP_AD:
                for (uint32_t i = 0; i < nd->n; i++)
                        n += node_bytes(node_at(nd, node_entries(nd)[i].at));
                return n + entries_size(nd->n);
        default:
                if (nd->op == OP_FOLD || nd->op >= OP_SELECT)
                        n += node_bytes(node_kid(nd, 0));
                if (nd->op == OP_FOLD || nd->op >= OP_SUBSCRIPT)
                        n += node_bytes(node_kid(nd, 1));
                return n;
        }
}
