/* expr_private: expressions that stand alone, from inside; and parsing without folding, which tests compare
 * with. */
#pragma once
#include <stddef.h>

#include "classad/code.h"

struct expr_alone {
        struct node entry; /* OP_ENTRY */
        struct symbols *symbols;
        char code[];
};

int expr_parse_as(struct symbols *symbols, struct str text, bool fold, struct expr **ret, struct err *err);

static inline const struct symbols *expr_symbols(const struct expr *e) /* NULL when it stands in an ad */
{
        return e->root.op == OP_ENTRY ? ((const struct expr_alone *)(const void *)e)->symbols : NULL;
}
