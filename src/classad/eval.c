/* A walk over the nodes. What is hot is a comparison of an attribute with a literal or another attribute:
 * operand() finds those without recursion. References to attributes that are no literals are kept in a chain
 * on the stack: an attribute that is met again in the same chain is a cycle, and undefined there. A reference
 * into the other ad swaps `my` and `target` for the time of its evaluation.
 *
 * When a limit is reached, ev->limit_hit is set and every node from then on gives error at once, so that the
 * walk ends soon; the calls of eval.h then give error. */
#include "classad/eval.h"

#include "classad/expr_private.h"
#include "classad/functions.h"
#include "classad/operators.h"
#include "classad/run.h"

#define EVAL_STEPS_MAX   1000000u
#define EVAL_BYTES_MAX   (16u << 20)
#define EVAL_TIME_MAX_NS 50000000u
#define EVAL_LOOK        1024u /* steps between two looks at the clock */

void eval_init(struct eval *ev, int64_t now_s, uint64_t seed)
{
        *ev = (struct eval){.now_s = now_s,
                            .random = seed,
                            .steps_max = EVAL_STEPS_MAX,
                            .bytes_max = EVAL_BYTES_MAX,
                            .time_max_ns = EVAL_TIME_MAX_NS};
}

void eval_deinit(struct eval *ev)
{
        arena_deinit(&ev->arena);
}

void eval_share(struct eval *ev)
{
        ev->steps_alone = ev->steps_max;
}

void eval_share_end(struct eval *ev)
{
        ev->steps_max = ev->steps_alone;
        ev->steps_alone = 0;
}

void eval_reset(struct eval *ev)
{
        arena_reset(&ev->arena);
}

void run_limit(struct run *r, const char *which)
{
        if (!r->ev->limit_hit)
                r->ev->limit_hit = which;
        r->ev->steps = r->ev->steps_look = r->ev->steps_max;
}

/* More steps were taken than the last look allowed. False: a limit is reached. */
static __attribute__((noinline)) bool look(struct run *r)
{
        struct eval *ev = r->ev;
        uint64_t now;

        if (ev->steps > ev->steps_max || ev->limit_hit) {
                run_limit(r, "steps");
                return false;
        }
        now = ev->clock_ns();
        if (ev->began_ns == 0) {
                ev->began_ns = now;
        } else if (now - ev->began_ns > ev->time_max_ns) {
                run_limit(r, "time");
                return false;
        }
        ev->steps_look = ev->steps_max - ev->steps > EVAL_LOOK ? ev->steps + EVAL_LOOK : ev->steps_max;
        return true;
}

bool run_steps(struct run *r, size_t n)
{
        if (r->ev->limit_hit || n > r->ev->steps_max - r->ev->steps) {
                run_limit(r, "steps");
                return false;
        }
        r->ev->steps += (uint32_t)n;
        return r->ev->steps <= r->ev->steps_look || look(r);
}

void *run_alloc(struct run *r, size_t n)
{
        void *p = r->ev->limit_hit ? NULL : arena_alloc(&r->ev->arena, n);

        if (!p)
                run_limit(r, "memory");
        return p;
}

bool run_text(struct run *r, struct str s, struct value *ret)
{
        char *p = run_bytes(r, s.n) ? run_alloc(r, s.n + 1) : NULL;

        *ret = value_error();
        if (!p)
                return false;
        if (s.n)
                memcpy(p, s.p, s.n);
        p[s.n] = '\0';
        *ret = value_string(str_make(p, s.n));
        return true;
}

size_t run_print_max(const struct run *r)
{
        size_t most = (size_t)(r->ev->steps_max - r->ev->steps) * RUN_PRINT;

        if (r->ev->limit_hit || most == 0)
                return 1;
        return most < r->ev->bytes_max ? most : r->ev->bytes_max;
}

bool run_printed(struct run *r, const struct buf *out, struct value *ret)
{
        *ret = value_error();
        if (out->overflow) {
                run_limit(r, out->max < r->ev->bytes_max ? "steps" : "memory");
                return false;
        }
        return run_steps(r, out->n / RUN_PRINT) && run_text(r, buf_view(out), ret);
}

struct value_list *run_list(struct run *r, uint32_t n, struct value **ret_items)
{
        struct value_list *list = run_steps(r, n / 4) ? run_alloc(r, sizeof(*list)) : NULL;
        struct value *items = list ? run_alloc(r, (n + 1) * sizeof(*items)) : NULL;

        if (!items)
                return NULL;
        *list = (struct value_list){.n = n, .items = items, .symbols = r->symbols};
        *ret_items = items;
        return list;
}

/* Evaluates an attribute that was found; nd is no literal. */
static void enter(struct run *r, const struct node *nd, const struct ad *my, const struct ad *target,
                  struct value *ret)
{
        const struct ad *was_my = r->my, *was_target = r->target;
        struct active here = {nd, run_root(my), r->active};
        unsigned depth = 0;

        for (const struct active *a = r->active; a; a = a->below, depth++)
                if (a->nd == nd && a->root == here.root) {
                        *ret = value_undefined();
                        return;
                }
        if (depth >= CLASSAD_DEPTH_MAX) {
                run_limit(r, "depth");
                *ret = value_error();
                return;
        }
        if (!run_steps(r, 1 + depth / 8)) {
                *ret = value_error();
                return;
        }
        r->active = &here;
        r->my = my;
        r->target = target;
        run_node(r, nd, ret);
        r->my = was_my;
        r->target = was_target;
        r->active = here.below;
}

static inline void found(struct run *r, const struct node *nd, const struct ad *my, const struct ad *target,
                         struct value *ret)
{
        if (nd->op == OP_FOLD)
                nd = node_kid(nd, 1);
        if (node_is_literal(nd))
                node_literal(nd, ret);
        else
                enter(r, nd, my, target, ret);
}

void run_attribute(struct run *r, const struct node *nd, const struct ad *my, const struct ad *target,
                   struct value *ret)
{
        found(r, nd, my, target, ret);
}

/* The outermost ad of a match has neither side's attributes. */
static const struct ad *outermost(struct run *r, const struct ad *ad)
{
        return r->target ? NULL : run_root(ad);
}

static struct value ad_value(const struct ad *ad)
{
        return ad ? (struct value){.type = VALUE_AD, .ad = ad} : value_undefined();
}

/* Names that mean something when no ad has an attribute of that name. */
static bool special(struct run *r, symbol name, struct value *ret)
{
        switch (name) {
        case SYM_MY:
        case SYM_SELF: *ret = ad_value(r->my); return true;
        case SYM_TARGET:
        case SYM_OTHER: *ret = ad_value(r->target); return true;
        case SYM_PARENT: *ret = ad_value(r->my ? r->my->enclosing : NULL); return true;
        case SYM_ROOT:
        case SYM_TOPLEVEL: *ret = ad_value(outermost(r, r->my)); return true;
        case SYM_CURRENT_TIME: *ret = value_integer(r->ev->now_s); return true;
        default: return false;
        }
}

/* The other ad is looked into from one's own ad, but not from an ad within it, unless that is a context. */
static inline void own_name(struct run *r, symbol name, bool also_target, struct value *ret)
{
        const struct node *nd;

        for (const struct ad *ad = r->my; ad; ad = ad->enclosing) {
                if ((nd = ad_get(ad, name)) != NULL) {
                        found(r, nd, ad, r->target, ret);
                        return;
                }
                if (ad->enclosing && !run_steps(r, 1))
                        break;
        }
        if (also_target) {
                if (name < SYM_TRUE && special(r, name, ret))
                        return;
                if (r->target && (!r->my || !r->my->enclosing || r->my == r->context) &&
                    (nd = ad_get(r->target, name)) != NULL) {
                        found(r, nd, r->target, run_root(r->my), ret);
                        return;
                }
        }
        *ret = value_undefined();
}

static inline void target_name(struct run *r, symbol name, struct value *ret)
{
        const struct node *nd = r->target ? ad_get(r->target, name) : NULL;

        if (nd)
                found(r, nd, r->target, run_root(r->my), ret);
        else
                *ret = value_undefined();
}

static void absolute_name(struct run *r, symbol name, struct value *ret)
{
        const struct ad *root = outermost(r, r->my);
        const struct node *nd = root ? ad_get(root, name) : NULL;

        if (nd)
                found(r, nd, root, r->target, ret);
        else
                *ret = value_undefined();
}

/* Evaluates an operand, the frequent kinds without recursion. */
static inline void operand(struct run *r, const struct node *nd, struct value *ret)
{
        if (node_is_literal(nd))
                node_literal(nd, ret);
        else if (nd->op == OP_TARGET)
                target_name(r, nd->a, ret);
        else if (nd->op == OP_NAME || nd->op == OP_MY)
                own_name(r, nd->a, nd->op == OP_NAME, ret);
        else
                run_node(r, nd, ret);
}

void run_node_in(struct run *r, const struct node *nd, const struct ad *my, const struct ad *target,
                 struct value *ret)
{
        const struct ad *was_my = r->my, *was_target = r->target;

        r->my = my;
        r->target = target;
        run_node(r, nd, ret);
        r->my = was_my;
        r->target = was_target;
}

void run_item(struct run *r, const struct value_list *list, uint32_t i, struct value *ret)
{
        if (list->items)
                *ret = run_steps(r, 1) ? list->items[i] : value_error();
        else
                run_node_in(r, node_wide_kid(list->nd, i), list->my, list->target, ret);
}

/* An ad's own self, parent and root, when it has no attribute of that name. */
static bool special_of(struct run *r, const struct ad *ad, symbol name, struct value *ret)
{
        switch (name) {
        case SYM_SELF: *ret = ad_value(ad); return true;
        case SYM_PARENT: *ret = ad_value(ad->enclosing); return true;
        case SYM_ROOT:
        case SYM_TOPLEVEL: *ret = ad_value(outermost(r, ad)); return true;
        default: return false;
        }
}

/* The attribute `name` of a value: of an ad, looked for from there outwards; of a list, of each member. */
void run_select(struct run *r, const struct value *from, symbol name, struct value *ret)
{
        struct value_list *list;
        struct value *items, member;
        const struct node *nd;

        switch (from->type) {
        case VALUE_UNDEFINED: *ret = value_undefined(); return;
        case VALUE_AD:
                for (const struct ad *ad = from->ad; ad; ad = ad->enclosing)
                        if ((nd = ad_get(ad, name)) != NULL) {
                                bool other = run_root(ad) == r->target;

                                found(r, nd, ad, other ? run_root(r->my) : r->target, ret);
                                return;
                        } else if (ad == from->ad && special_of(r, ad, name, ret)) {
                                return;
                        } else if (!run_steps(r, 1)) {
                                break;
                        }
                *ret = value_undefined();
                return;
        case VALUE_LIST:
                list = run_list(r, from->list->n, &items);
                *ret = value_error();
                if (!list)
                        return;
                for (uint32_t i = 0; i < list->n && !r->ev->limit_hit; i++) {
                        run_item(r, from->list, i, &member);
                        if (member.type == VALUE_LIST)
                                items[i] = value_error();
                        else
                                run_select(r, &member, name, &items[i]);
                }
                if (!r->ev->limit_hit)
                        *ret = (struct value){.type = VALUE_LIST, .list = list};
                return;
        default: *ret = value_error(); return;
        }
}

static void subscript(struct run *r, const struct value *x, const struct value *y, struct value *ret)
{
        const struct node *nd;
        symbol name;

        *ret = value_error();
        if (x->type == VALUE_ERROR || y->type == VALUE_ERROR)
                return;
        if (x->type == VALUE_UNDEFINED || y->type == VALUE_UNDEFINED) {
                *ret = value_undefined();
        } else if (x->type == VALUE_LIST && y->type == VALUE_INTEGER) {
                if (y->integer >= 0 && y->integer < (int64_t)x->list->n)
                        run_item(r, x->list, (uint32_t)y->integer, ret);
        } else if (x->type == VALUE_AD && y->type == VALUE_STRING && run_bytes(r, y->string.n)) {
                name = symbols_find(x->ad->symbols, y->string);
                nd = name ? ad_get(x->ad, name) : NULL;
                *ret = value_undefined();
                if (nd)
                        found(r, nd, x->ad, run_root(x->ad) == r->target ? run_root(r->my) : r->target, ret);
        }
}

/* Operands that are literals and names take no steps of their own: many of them do. */
#define FREE_OPERANDS 16u

static inline bool many_operands(struct run *r, const struct node *nd, struct value *ret)
{
        if (nd->n <= FREE_OPERANDS || run_steps(r, nd->n / FREE_OPERANDS))
                return true;
        *ret = value_error();
        return false;
}

/* Evaluates && from the left: a false operand ends it, and so does an error; after an undefined operand only
 * a false one still matters. */
static void all_of(struct run *r, const struct node *nd, struct value *ret)
{
        const int32_t *kids = (const int32_t *)(const void *)(nd + 1);
        bool undefined = false;
        struct value v;

        if (!many_operands(r, nd, ret))
                return;
        for (uint32_t i = 0, n = nd->n; i < n; i++) {
                operand(r, node_at(nd, kids[i]), &v);
                if (v.type == VALUE_BOOLEAN ? v.boolean : operator_truth(&v) == TRUTH_TRUE)
                        continue;
                enum truth truth = operator_truth(&v);
                if (truth == TRUTH_UNDEFINED) {
                        undefined = true;
                        continue;
                }
                *ret = truth == TRUTH_FALSE ? value_boolean(false) : value_error();
                return;
        }
        *ret = undefined ? value_undefined() : value_boolean(true);
}

static void any_of(struct run *r, const struct node *nd, struct value *ret)
{
        bool undefined = false;
        struct value v;

        if (!many_operands(r, nd, ret))
                return;
        for (uint32_t i = 0; i < nd->n; i++) {
                operand(r, node_wide_kid(nd, i), &v);
                enum truth truth = operator_truth(&v);
                if (truth == TRUTH_FALSE)
                        continue;
                if (truth == TRUTH_UNDEFINED) {
                        undefined = true;
                        continue;
                }
                *ret = truth == TRUTH_TRUE ? value_boolean(true) : value_error();
                return;
        }
        *ret = undefined ? value_undefined() : value_boolean(false);
}

static void ternary(struct run *r, const struct node *nd, struct value *ret)
{
        struct value v;

        operand(r, node_wide_kid(nd, 0), &v);
        switch (operator_truth(&v)) {
        case TRUTH_TRUE: operand(r, node_wide_kid(nd, 1), ret); break;
        case TRUTH_FALSE: operand(r, node_wide_kid(nd, 2), ret); break;
        case TRUTH_UNDEFINED: *ret = value_undefined(); break;
        default: *ret = value_error(); break;
        }
}

static void list_literal(struct run *r, const struct node *nd, struct value *ret)
{
        struct value_list *list = run_alloc(r, sizeof(*list));

        *ret = value_error();
        if (!list)
                return;
        *list = (struct value_list){
                .n = nd->n, .nd = nd, .my = r->my, .target = r->target, .symbols = r->symbols};
        *ret = (struct value){.type = VALUE_LIST, .list = list};
}

/* A view of an ad that is written in an expression, enclosed by the ad it stands in. */
static void ad_literal_value(struct run *r, const struct node *nd, struct value *ret)
{
        struct ad *ad = run_steps(r, nd->n / 4) ? run_alloc(r, sizeof(*ad)) : NULL;
        uint32_t mask;

        *ret = value_error();
        if (!ad)
                return;
        /* views are only read, through a pointer to const */
        *ad = (struct ad){.magic = AD_MAGIC, .count = nd->n, .enclosing = r->my};
        ad->symbols = (struct symbols *)r->symbols;
        ad->entries = (struct entry *)node_entries(nd);
        ad->code = (char *)nd;
        if (nd->n >= 32) {
                mask = 63;
                while (mask < nd->n * 2)
                        mask = mask * 2 + 1;
                uint32_t *index = run_alloc(r, ((size_t)mask + 1) * sizeof(*index));
                if (!index)
                        return;
                memset(index, 0, ((size_t)mask + 1) * sizeof(*index));
                for (uint32_t i = 0; i < nd->n; i++) {
                        uint32_t at = symbol_hash(ad->entries[i].name) & mask;

                        while (index[at])
                                at = (at + 1) & mask;
                        index[at] = i + 1;
                }
                ad->index = index;
                ad->index_mask = mask;
        }
        *ret = ad_value(ad);
}

void run_binary(struct run *r, enum op op, const struct value *x, const struct value *y, struct value *ret)
{
        *ret = value_error();
        if (x->type == VALUE_STRING && y->type == VALUE_STRING && !run_bytes(r, x->string.n))
                return;
        operator_binary(op, x, y, ret);
}

static inline void binary(struct run *r, const struct node *nd, struct value *ret)
{
        struct value x, y;

        operand(r, node_kid(nd, 0), &x);
        operand(r, node_kid(nd, 1), &y);
        if (x.type == VALUE_INTEGER && y.type == VALUE_INTEGER) {
                bool b;

                switch (nd->op) {
                case OP_LESS: b = x.integer < y.integer; break;
                case OP_LESS_EQUAL: b = x.integer <= y.integer; break;
                case OP_GREATER_EQUAL: b = x.integer >= y.integer; break;
                case OP_GREATER: b = x.integer > y.integer; break;
                case OP_EQUAL: b = x.integer == y.integer; break;
                default: run_binary(r, (enum op)nd->op, &x, &y, ret); return;
                }
                *ret = value_boolean(b);
                return;
        }
        run_binary(r, (enum op)nd->op, &x, &y, ret);
}

/* Kept apart, so that the frames of the common cases stay small. */
static __attribute__((noinline)) void rare(struct run *r, const struct node *nd, struct value *ret)
{
        struct value x, y;

        switch (nd->op) {
        case OP_FOLD: node_literal(node_kid(nd, 1), ret); break;
        case OP_ENTRY: run_node(r, node_kid(nd, 0), ret); break;
        case OP_NAME: own_name(r, nd->a, true, ret); break;
        case OP_MY: own_name(r, nd->a, false, ret); break;
        case OP_TARGET: target_name(r, nd->a, ret); break;
        case OP_ABSOLUTE: absolute_name(r, nd->a, ret); break;
        case OP_SELECT:
                operand(r, node_kid(nd, 0), &x);
                run_select(r, &x, nd->a, ret);
                break;
        case OP_NOT:
        case OP_BIT_NOT:
        case OP_PLUS:
        case OP_MINUS:
                operand(r, node_kid(nd, 0), &x);
                operator_unary((enum op)nd->op, &x, ret);
                break;
        case OP_SUBSCRIPT:
                operand(r, node_kid(nd, 0), &x);
                operand(r, node_kid(nd, 1), &y);
                subscript(r, &x, &y, ret);
                break;
        case OP_ELVIS:
                operand(r, node_kid(nd, 0), ret);
                if (ret->type == VALUE_UNDEFINED)
                        operand(r, node_kid(nd, 1), ret);
                break;
        case OP_LIST: list_literal(r, nd, ret); break;
        case OP_AD: ad_literal_value(r, nd, ret); break;
        default: node_literal(nd, ret); break;
        }
}

void run_node(struct run *r, const struct node *nd, struct value *ret)
{
        if (++r->ev->steps > r->ev->steps_look && !look(r)) {
                *ret = value_error();
                return;
        }
        if (++r->recursion > RUN_RECURSION_MAX) {
                run_limit(r, "depth");
                *ret = value_error();
        } else if (nd->op >= OP_MULTIPLY && nd->op <= OP_BIT_OR) {
                binary(r, nd, ret);
        } else {
                switch (nd->op) {
                case OP_AND: all_of(r, nd, ret); break;
                case OP_OR: any_of(r, nd, ret); break;
                case OP_TERNARY: ternary(r, nd, ret); break;
                case OP_CALL: function_call(r, nd, ret); break;
                default: rare(r, nd, ret); break;
                }
        }
        r->recursion--;
}

static inline void begin_evaluation(struct eval *ev)
{
        ev->steps = 0;
        ev->steps_look = ev->clock_ns && ev->steps_max > EVAL_LOOK ? EVAL_LOOK : ev->steps_max;
        ev->began_ns = 0;
        ev->limit_hit = NULL;
        ev->arena.max = ev->arena.used + ev->bytes_max;
}

static void evaluate(struct eval *ev, const struct node *nd, const struct ad *my, const struct ad *target,
                     const struct active *active, const struct symbols *symbols, struct value *ret)
{
        struct run r = {.ev = ev, .my = my, .target = target, .active = active};

        r.symbols = my ? my->symbols : target ? target->symbols : symbols;
        begin_evaluation(ev);
        run_node(&r, nd, ret);
        ev->steps_all += ev->steps;
        if (ev->limit_hit) {
                ev->overruns++;
                *ret = value_error();
        }
        if (ev->steps_alone)
                ev->steps_max -= ev->steps < ev->steps_max ? ev->steps : ev->steps_max;
}

void eval_expr(struct eval *ev, const struct expr *e, const struct ad *my, const struct ad *target,
               struct value *ret)
{
        const struct node *nd = expr_root(e);
        struct active here = {nd, my, NULL};

        if (nd->op == OP_FOLD)
                nd = node_kid(nd, 1);
        if (node_is_literal(nd))
                node_literal(nd, ret);
        else
                evaluate(ev, nd, my, target, &here, expr_symbols(e), ret);
}

void eval_attr(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, struct value *ret)
{
        const struct node *nd = ad_get(my, name);

        if (nd)
                eval_expr(ev, (const struct expr *)nd, my, target, ret);
        else
                *ret = value_undefined();
}

void eval_clause(struct eval *ev, const struct expr *e, unsigned n, const struct ad *my,
                 const struct ad *target, struct value *ret)
{
        const struct node *nd = expr_root(e);
        struct active here = {nd, my, NULL};

        assert(n < expr_clause_count(e));
        if (nd->op == OP_AND)
                nd = node_wide_kid(nd, n);
        evaluate(ev, nd, my, target, &here, expr_symbols(e), ret);
}

bool eval_boolean(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, bool *ret)
{
        struct value v;
        double d;

        eval_attr(ev, my, target, name, &v);
        if (!value_to_double(&v, &d))
                return false;
        *ret = d != 0;
        return true;
}

bool eval_integer(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, int64_t *ret)
{
        struct value v;

        eval_attr(ev, my, target, name, &v);
        return value_to_integer(&v, ret);
}

bool eval_real(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, double *ret)
{
        struct value v;

        eval_attr(ev, my, target, name, &v);
        return value_to_double(&v, ret);
}

bool eval_string(struct eval *ev, const struct ad *my, const struct ad *target, symbol name, struct str *ret)
{
        struct value v;

        eval_attr(ev, my, target, name, &v);
        if (v.type != VALUE_STRING)
                return false;
        *ret = v.string;
        return true;
}
