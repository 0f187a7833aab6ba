/* Matching is two evaluations. The clauses of a condition are nodes of their own, so the first one that is
 * not true ends it; see eval.c. */
#include "classad/match.h"

#include "classad/code.h"

bool match_one_way(struct eval *ev, const struct ad *my, const struct ad *target)
{
        struct value v;

        eval_attr(ev, my, target, SYM_REQUIREMENTS, &v);
        return v.type == VALUE_BOOLEAN ? v.boolean : value_is_true(&v);
}

enum match match_ads(struct eval *ev, const struct ad *left, const struct ad *right)
{
        assert(left->symbols == right->symbols);
        if (!match_one_way(ev, left, right))
                return MATCH_LEFT_REFUSES;
        return match_one_way(ev, right, left) ? MATCH_YES : MATCH_RIGHT_REFUSES;
}

double match_rank(struct eval *ev, const struct ad *my, const struct ad *target)
{
        struct value v;
        double d = 0;

        eval_attr(ev, my, target, SYM_RANK, &v);
        if (!value_to_double(&v, &d) || d != d)
                return 0;
        return d;
}

int match_first_refusal(struct eval *ev, const struct ad *my, const struct ad *target, unsigned *ret_clauses,
                        struct value *ret_value)
{
        const struct expr *e = ad_find(my, SYM_REQUIREMENTS);

        if (!e) {
                *ret_clauses = 0;
                *ret_value = value_undefined();
                return 0;
        }
        *ret_clauses = expr_clause_count(e);
        for (unsigned i = 0; i < *ret_clauses; i++) {
                eval_clause(ev, e, i, my, target, ret_value);
                if (!value_is_true(ret_value))
                        return (int)i;
        }
        return -1;
}
