/* JSON as HTCondor's library writes and reads it, on one line. A slash that is escaped says that a string is
 * an expression; since many programs that pass JSON on drop such escapes, readers go by the text alone, and
 * so a string with that text must not be written as it is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "classad/print_private.h"

static void json_expr(struct json *j, struct str text)
{
        struct buf clean BUF_CLEANUP = {.max = j->out->max}, quoted BUF_CLEANUP = {.max = j->out->max};
        struct buf all BUF_CLEANUP = {.max = j->out->max};

        print_utf8(&clean, text);
        json_str(&(struct json){.out = &quoted}, buf_view(&clean));
        j->out->overflow = j->out->overflow || clean.overflow || quoted.overflow;
        if (j->out->overflow)
                return;
        buf_addz(&all, "\"\\/Expr(");
        buf_add(&all, quoted.p + 1, quoted.n - 2);
        buf_addz(&all, ")\\/\"");
        json_raw(j, buf_view(&all));
}

static bool is_plain(struct str s)
{
        if (str_istarts(s, STR("/Expr(")) && str_ends(s, STR(")/")))
                return false;
        while (s.n) {
                size_t n = str_utf8(s);

                if (n == 0)
                        return false;
                s = str_skip(s, n);
        }
        return true;
}

/* Always with a dot or an exponent: it is read back as a real. */
static void json_real(struct json *j, double v)
{
        char text[40];

        snprintf(text, sizeof(text), "%.15g", v);
        if (strtod(text, NULL) != v)
                snprintf(text, sizeof(text), "%.17g", v);
        if (!strpbrk(text, ".e"))
                memcpy(text + strlen(text), ".0", 3);
        json_raw(j, str_of(text));
}

static void json_node(struct json *j, const struct node *nd, const struct symbols *symbols);

/* False when the literal has no JSON of its own. */
static bool json_literal(struct json *j, const struct node *nd)
{
        struct value v;

        node_literal(nd, &v);
        switch (v.type) {
        case VALUE_BOOLEAN: json_bool(j, v.boolean); return true;
        case VALUE_INTEGER: json_int(j, v.integer); return true;
        case VALUE_UNDEFINED: json_null(j); return true;
        case VALUE_STRING:
                if (is_plain(v.string))
                        json_str(j, v.string);
                return is_plain(v.string);
        case VALUE_REAL:
                if (isfinite(v.real))
                        json_real(j, v.real);
                return isfinite(v.real);
        default: return false;
        }
}

static void json_list(struct json *j, const struct node *nd, const struct symbols *symbols)
{
        json_open(j, '[');
        for (uint32_t i = 0; i < nd->n; i++)
                json_node(j, node_wide_kid(nd, i), symbols);
        json_close(j, ']');
}

static void json_name(struct json *j, const struct symbols *symbols, symbol name, uint32_t spelling)
{
        struct buf text BUF_CLEANUP = {0};

        symbols_print(symbols, name, spelling, &text);
        json_keys(j, buf_view(&text));
}

static void json_ad(struct json *j, const struct node *nd, const struct symbols *symbols)
{
        json_open(j, '{');
        for (uint32_t i = 0; i < nd->n; i++) {
                json_name(j, symbols, node_entries(nd)[i].name, node_entries(nd)[i].spelling);
                json_node(j, node_at(nd, node_entries(nd)[i].at), symbols);
        }
        json_close(j, '}');
}

static void json_node(struct json *j, const struct node *nd, const struct symbols *symbols)
{
        struct buf text BUF_CLEANUP = {.max = j->out->max};

        if (nd->op == OP_LIST && !nd->parens) {
                json_list(j, nd, symbols);
        } else if (nd->op == OP_AD && !nd->parens) {
                json_ad(j, nd, symbols);
        } else if (!node_is_literal(nd) || nd->parens || !json_literal(j, nd)) {
                print_node(&text, nd, symbols);
                json_expr(j, buf_view(&text));
                j->out->overflow = j->out->overflow || text.overflow;
        }
}

void ad_print_json(struct buf *out, const struct ad *ad, bool with_parents)
{
        struct json j = {.out = out};
        size_t n;
        struct listed *all = print_listed(ad, with_parents, &n);

        json_open(&j, '{');
        for (size_t i = 0; i < n; i++) {
                json_name(&j, ad->symbols, all[i].name, all[i].spelling);
                json_node(&j, all[i].nd, ad->symbols);
        }
        json_close(&j, '}');
        free(all);
}

void ad_print_json_lines(struct buf *out, const struct ad *ad)
{
        size_t n;
        struct listed *all = print_listed(ad, false, &n);

        buf_char(out, '{');
        for (size_t i = 0; i < n; i++) {
                struct json j = {.out = out};
                struct buf name BUF_CLEANUP = {0};

                symbols_print(ad->symbols, all[i].name, all[i].spelling, &name);
                buf_addz(out, i ? ",\n  " : "\n  ");
                json_str(&j, buf_view(&name));
                buf_addz(out, ": ");
                json_node(&(struct json){.out = out}, all[i].nd, ad->symbols);
        }
        buf_addz(out, "\n}\n");
        free(all);
}
