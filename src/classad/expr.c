/* Expressions that stand alone are one block: a node that leads to the root, the table of symbols, the code.
 */
#include "classad/expr.h"

#include "base/mem.h"
#include "classad/expr_private.h"
#include "classad/functions.h"
#include "classad/parse.h"

int expr_parse_as(struct symbols *symbols, struct str text, bool fold, struct expr **ret, struct err *err)
{
        uint32_t root;
        struct expr_alone *e;
        int r = parse_expression(symbols, text, fold, &root, err);

        if (r)
                return r;
        e = mem_alloc(sizeof(*e) + symbols->code.n);
        memcpy(e->code, symbols->code.p, symbols->code.n);
        e->symbols = symbols;
        e->entry = (struct node){.op = OP_ENTRY, .a = symbols->code.n};
        e->entry.kid[0] = (int32_t)(offsetof(struct expr_alone, code) + root);
        *ret = (struct expr *)e;
        return 0;
}

int expr_parse(struct symbols *symbols, struct str text, struct expr **ret, struct err *err)
{
        return expr_parse_as(symbols, text, true, ret, err);
}

void expr_text_from_old(struct str text, struct buf *out)
{
        for (size_t i = 0; i < text.n; i++) {
                char next = i + 1 < text.n ? text.p[i + 1] : '\0',
                     after = i + 2 < text.n ? text.p[i + 2] : '\0';
                bool quote = next == '"' && after != '\0' && after != '\n' && after != '\r';

                buf_char(out, text.p[i]);
                if (text.p[i] == '\\')
                        buf_char(out, quote ? text.p[++i] : '\\');
        }
}

/* Reads the escape that begins at text[0], as print_string writes it. Returns its length. */
static size_t read_escape(struct str text, char *ret)
{
        static const char letters[] = "btnfr", meant[] = "\b\t\n\f\r";
        char c = text.n > 1 ? text.p[1] : '\\';
        const char *at = strchr(letters, c);

        if (c >= '0' && c <= '3' && text.n > 3) {
                *ret = (char)((c - '0') * 64 + (text.p[2] - '0') * 8 + (text.p[3] - '0'));
                return 4;
        }
        *ret = at && *at ? meant[at - letters] : c;
        return text.n > 1 ? 2 : 1;
}

void expr_text_to_old(struct str text, struct buf *out)
{
        char within = '\0'; /* the quote that ends the string or the name */

        for (size_t i = 0, n; i < text.n; i += n) {
                char c = text.p[i];

                n = 1;
                if (within && c == '\\') {
                        n = read_escape(str_skip(text, i), &c);
                        if (c == '"' && within == '"')
                                buf_char(out, '\\');
                } else if (within ? c == within : c == '"' || c == '\'') {
                        within = within ? '\0' : c;
                }
                buf_char(out, c == '\n' ? ' ' : c);
        }
}

void expr_free(struct expr *e)
{
        assert(!e || e->root.op == OP_ENTRY);
        free(e);
}

bool expr_literal(const struct expr *e, struct value *ret)
{
        const struct node *nd = expr_root(e);

        if (nd->op == OP_FOLD)
                nd = node_kid(nd, 1);
        if (!node_is_literal(nd))
                return false;
        node_literal(nd, ret);
        return true;
}

unsigned expr_clause_count(const struct expr *e)
{
        const struct node *nd = expr_root(e);

        return nd->op == OP_AND ? nd->n : 1;
}

/* State of a walk along references, which reports each name once. */
struct walk {
        const struct ad *my;
        const struct symbols *symbols;
        /* By symbol: the scope in which an ad around hides it. A scope is the expression of one attribute,
         * with a number of its own: in another attribute's, nothing is hidden by the ads around this one. */
        uint32_t *hidden;
        uint32_t scope, scopes;
        uint32_t nodes; /* that may still be looked at */
        expr_reference_fn *fn;
        void *arg;
        struct expr_uses uses;
        struct told {
                symbol name;
                bool target;
        } * told;
        uint32_t told_n, told_mask; /* an open table; name 0 is free */
};

static bool tell_symbol(struct walk *w, symbol name, bool target)
{
        uint32_t at;

        if (w->told_n * 2 >= w->told_mask) {
                struct told *old = w->told;
                uint32_t old_n = old ? w->told_mask + 1 : 0;

                w->told_mask = old ? w->told_mask * 2 + 1 : 31;
                w->told = mem_zalloc(((size_t)w->told_mask + 1) * sizeof(*w->told));
                for (uint32_t i = 0; i < old_n; i++) {
                        for (at = symbol_hash(old[i].name) & w->told_mask; old[i].name && w->told[at].name;)
                                at = (at + 1) & w->told_mask;
                        if (old[i].name)
                                w->told[at] = old[i];
                }
                free(old);
        }
        for (at = symbol_hash(name) & w->told_mask; w->told[at].name; at = (at + 1) & w->told_mask)
                if (w->told[at].name == name && w->told[at].target == target)
                        return false;
        w->told[at] = (struct told){name, target};
        w->told_n++;
        w->fn(w->arg, name, target);
        return true;
}

/* Returns whether an ad written in the expression hides the name: a name that it binds is not looked up
 * outside. */
static bool is_hidden(const struct walk *w, symbol name)
{
        return w->hidden && w->hidden[name] == w->scope;
}

static void walk_node(struct walk *w, const struct node *nd, unsigned depth);

static bool names_an_ad(symbol name) /* where no attribute has that name */
{
        return name >= SYM_MY && name <= SYM_TOPLEVEL;
}

static void walk_name(struct walk *w, const struct node *nd, unsigned depth)
{
        const struct node *own;

        if (nd->op == OP_TARGET) {
                tell_symbol(w, nd->a, true);
                return;
        }
        if (nd->op != OP_ABSOLUTE && is_hidden(w, nd->a))
                return;
        own = w->my ? ad_get(w->my, nd->a) : NULL;
        if (!own && nd->op == OP_NAME && nd->a == SYM_CURRENT_TIME) {
                w->uses.uses_time = true;
                return;
        }
        if (!own && nd->op == OP_NAME && names_an_ad(nd->a)) {
                w->uses.uses_more = true;
                return;
        }
        if (tell_symbol(w, nd->a, false) && own) {
                /* it stands in the ad itself, where nothing is hidden */
                uint32_t scope = w->scope;

                w->scope = ++w->scopes;
                walk_node(w, own, depth);
                w->scope = scope;
        }
        if (!own && nd->op == OP_NAME)
                tell_symbol(w, nd->a, true);
}

static void walk_select(struct walk *w, const struct node *nd, unsigned depth)
{
        const struct node *from = node_kid(nd, 0);
        struct node name = {.a = nd->a, .op = OP_MY};

        if (from->op == OP_NAME && (from->a == SYM_TARGET || from->a == SYM_OTHER))
                tell_symbol(w, nd->a, true);
        else if (from->op == OP_NAME && names_an_ad(from->a))
                walk_name(w, &name, depth);
        if (from->op != OP_NAME || !names_an_ad(from->a) || (w->my && ad_get(w->my, from->a)))
                walk_node(w, from, depth);
}

/* Functions that look at more than their arguments' values. */
static bool looks_at_more(const struct function *f)
{
        return f->fn == function_eval || f->fn == function_unparse || f->fn == function_unresolved ||
               f->fn == function_evalInEachContext || f->fn == function_countMatches ||
               f->fn == function_debug;
}

static void walk_wide(struct walk *w, const struct node *nd, unsigned depth)
{
        const struct function *f = nd->op == OP_CALL ? function_find(nd->a) : NULL;

        if (f && (f->uses == FUNCTION_USES_TIME || (f->uses == FUNCTION_USES_TIME_ALONE && nd->n == 0)))
                w->uses.uses_time = true;
        if (f && f->uses == FUNCTION_USES_RANDOM)
                w->uses.uses_random = true;
        if (f && looks_at_more(f))
                w->uses.uses_more = true;
        for (uint32_t i = 0; i < nd->n; i++)
                walk_node(w, node_wide_kid(nd, i), depth);
}

static void walk_ad(struct walk *w, const struct node *nd, unsigned depth)
{
        const struct entry *e = node_entries(nd);
        uint32_t *before = NULL;

        if (!w->hidden && w->symbols)
                w->hidden = mem_zalloc((symbols_count(w->symbols) + 1u) * sizeof(*w->hidden));
        if (w->hidden)
                before = mem_array(NULL, nd->n + 1u, sizeof(*before));
        for (uint32_t i = 0; before && i < nd->n; i++) {
                before[i] = w->hidden[e[i].name];
                w->hidden[e[i].name] = w->scope;
        }
        for (uint32_t i = 0; i < nd->n; i++)
                walk_node(w, node_at(nd, e[i].at), depth);
        for (uint32_t i = nd->n; before && i > 0; i--)
                w->hidden[e[i - 1].name] = before[i - 1];
        free(before);
}

static void walk_node(struct walk *w, const struct node *nd, unsigned depth)
{
        if (w->nodes == 0 || depth == RUN_RECURSION_MAX) {
                w->uses.uses_more = true; /* names behind this are not told */
                return;
        }
        w->nodes--;
        depth++;
        if (nd->op <= OP_FOLD)
                return;
        switch (nd->op) {
        case OP_ENTRY: walk_node(w, node_kid(nd, 0), depth); break;
        case OP_NAME:
        case OP_ABSOLUTE:
        case OP_MY:
        case OP_TARGET: walk_name(w, nd, depth); break;
        case OP_SELECT: walk_select(w, nd, depth); break;
        case OP_AND:
        case OP_OR:
        case OP_TERNARY:
        case OP_LIST:
        case OP_CALL: walk_wide(w, nd, depth); break;
        case OP_AD: walk_ad(w, nd, depth); break;
        default:
                walk_node(w, node_kid(nd, 0), depth);
                if (nd->op >= OP_SUBSCRIPT)
                        walk_node(w, node_kid(nd, 1), depth);
                break;
        }
}

static void references(const struct expr *e, const struct node *from, const struct ad *my,
                       expr_reference_fn *fn, void *arg, struct expr_uses *ret_uses, uint32_t *nodes)
{
        struct walk w = {.my = my, .fn = fn, .arg = arg, .scope = 1, .scopes = 1, .nodes = *nodes};

        w.symbols = my ? my->symbols : expr_symbols(e);
        walk_node(&w, from, 0);
        free(w.told);
        free(w.hidden);
        *ret_uses = w.uses;
        *nodes = w.nodes;
}

void expr_references_within(const struct expr *e, const struct ad *my, expr_reference_fn *fn, void *arg,
                            struct expr_uses *ret_uses, uint32_t *nodes)
{
        references(e, &e->root, my, fn, arg, ret_uses, nodes);
}

void expr_references(const struct expr *e, const struct ad *my, expr_reference_fn *fn, void *arg,
                     struct expr_uses *ret_uses)
{
        uint32_t nodes = UINT32_MAX;

        expr_references_within(e, my, fn, arg, ret_uses, &nodes);
}

void expr_clause_references(const struct expr *e, unsigned n, const struct ad *my, expr_reference_fn *fn,
                            void *arg, struct expr_uses *ret_uses)
{
        const struct node *root = expr_root(e);
        uint32_t nodes = UINT32_MAX;

        references(e, root->op == OP_AND ? node_wide_kid(root, n) : root, my, fn, arg, ret_uses, &nodes);
}
