/* compile: writes the compact form of expressions (private to classad/; see code.h).
 *
 * The parser calls one function for each construct, operands first, and gets the place of the node written.
 * Constant parts are folded on the way, unless folding is switched off (tests compare both).
 */
#pragma once
#include "classad/code.h"

struct code {
        char *p;
        uint32_t n, cap;
        uint32_t again; /* of n: bytes of operands that were written once more when nested && and || became
                           one */
        bool no_fold;
        struct symbols *symbols;
};
#define CODE_MAX (1u << 30) /* bytes: distances between nodes have 32 bits */

void code_deinit(struct code *c);
static inline struct node *code_node(const struct code *c, uint32_t at)
{
        return (struct node *)(void *)(c->p + at);
}
char *code_room(struct code *c, size_t n); /* n bytes, rounded up to 8, at the end */

uint32_t code_scalar(struct code *c, enum op op, int64_t bits); /* undefined error boolean integer */
uint32_t code_real(struct code *c, double v);
uint32_t code_text(struct code *c, struct str s);
uint32_t code_name(struct code *c, enum op op, symbol name); /* OP_NAME and its kind */
uint32_t code_select(struct code *c, uint32_t from, symbol name);
uint32_t code_unary(struct code *c, enum op op, uint32_t x);
uint32_t code_binary(struct code *c, enum op op, uint32_t x, uint32_t y);
uint32_t code_wide(struct code *c, enum op op, symbol name, const uint32_t *kids, uint32_t n);
uint32_t code_ad(struct code *c, const struct entry *entries, uint32_t n); /* their `at` is a place in c */
uint32_t code_copy(struct code *c, const struct node *nd); /* a copy of an expression from elsewhere */
/* Writes a literal with this value. False, with nothing written: the value has no literal form (lists, ads,
 * times). Places are never 0: the first bytes of a code are left unused. */
bool code_value(struct code *c, const struct value *v, uint32_t *ret_at);
size_t node_bytes(const struct node *nd); /* bytes of an expression with all its operands */
