/* XML as HTCondor's library writes and reads it. The text of strings, and names, have the escapes of the
 * language first (without its quotes), and those of XML over them, so that every byte can be written: what is
 * no character of XML is an octal escape. An instant or a duration is written as one when its text is what
 * the value prints as; else, as any call, it is an expression. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "classad/eval.h"
#include "classad/print_private.h"

struct xml {
        struct buf *out;
        const struct symbols *symbols;
};

static void escaped(struct buf *out, struct str text)
{
        for (size_t i = 0; i < text.n; i++) {
                switch (text.p[i]) {
                case '&': buf_addz(out, "&amp;"); break;
                case '<': buf_addz(out, "&lt;"); break;
                case '>': buf_addz(out, "&gt;"); break;
                default: buf_char(out, text.p[i]); break;
                }
        }
}

/* Prints text as print_string() does, without the quotes; in an attribute a quote is an entity. */
static void content(struct buf *out, struct str s, const char *quote)
{
        struct buf text BUF_CLEANUP = {.max = out->max}, clean BUF_CLEANUP = {.max = out->max};
        struct str rest;

        print_string(&text, s);
        if (text.overflow)
                out->overflow = true;
        else
                print_utf8(&clean, str_make(text.p + 1, text.n - 2));
        rest = buf_view(&clean);
        while (rest.n) {
                size_t n = 0;

                if (rest.p[0] == '\\' && rest.n > 1 && rest.p[1] == '"') {
                        buf_addz(out, quote);
                        rest = str_skip(rest, 2);
                        continue;
                }
                n = rest.p[0] == '\\' ? 2 : 1;
                escaped(out, str_head(rest, n));
                rest = str_skip(rest, n);
        }
}

static void real(struct buf *out, double v)
{
        char text[40];

        if (isnan(v)) {
                buf_addz(out, "NaN");
        } else if (isinf(v)) {
                buf_addz(out, v < 0 ? "-INF" : "INF");
        } else if (v == 0) {
                buf_addz(out, signbit(v) ? "-0.0" : "0.0");
        } else {
                snprintf(text, sizeof(text), "%1.15E", v);
                if (strtod(text, NULL) != v)
                        snprintf(text, sizeof(text), "%1.16E", v);
                buf_addz(out, text);
        }
}

static void literal(struct buf *out, const struct node *nd)
{
        struct value v;

        node_literal(nd, &v);
        switch (v.type) {
        case VALUE_UNDEFINED: buf_addz(out, "<un/>"); break;
        case VALUE_BOOLEAN: buf_addz(out, v.boolean ? "<b v=\"t\"/>" : "<b v=\"f\"/>"); break;
        case VALUE_INTEGER: buf_printf(out, "<i>%lld</i>", (long long)v.integer); break;
        case VALUE_REAL:
                buf_addz(out, "<r>");
                real(out, v.real);
                buf_addz(out, "</r>");
                break;
        case VALUE_STRING:
                buf_addz(out, "<s>");
                content(out, v.string, "\"");
                buf_addz(out, "</s>");
                break;
        default: buf_addz(out, "<er/>"); break;
        }
}

/* absTime("...") and relTime("...") whose text is the one that their value prints as. */
static bool time_literal(const struct xml *x, const struct node *nd)
{
        struct str name = symbols_name(x->symbols, nd->a);
        bool absolute = str_ieqz(name, "absTime");
        struct buf text BUF_CLEANUP = {0};
        const struct node *kid;
        struct eval ev;
        struct value v;
        bool same;

        if ((!absolute && !str_ieqz(name, "relTime")) || nd->n != 1)
                return false;
        kid = node_wide_kid(nd, 0);
        if ((kid->op != OP_TEXT && kid->op != OP_TEXT_SHORT) || kid->parens || kid->a > 64)
                return false;
        eval_init(&ev, 0, 0);
        eval_expr(&ev, (const struct expr *)nd, NULL, NULL, &v);
        if (v.type == VALUE_ABSTIME)
                value_time_text(&text, &v);
        else if (v.type == VALUE_RELTIME)
                value_interval_text(&text, v.real);
        eval_deinit(&ev);
        same = text.n > 0 && str_eq(buf_view(&text), node_text(kid));
        if (same)
                buf_printf(x->out, absolute ? "<at>%s</at>" : "<rt>%s</rt>", buf_z(&text));
        return same;
}

static void node(const struct xml *x, const struct node *nd, unsigned indent);

static void xml_print_attribute(const struct xml *x, symbol name, uint32_t spelling, const struct node *nd,
                                unsigned indent)
{
        struct buf text BUF_CLEANUP = {0};

        symbols_print(x->symbols, name, spelling, &text);
        buf_printf(x->out, "%*s<a n=\"", (int)indent, "");
        content(x->out, buf_view(&text), "&quot;");
        buf_addz(x->out, "\">");
        node(x, nd, indent);
        buf_addz(x->out, "</a>\n");
}

static void nested(const struct xml *x, const struct node *nd, unsigned indent)
{
        buf_addz(x->out, "<c>\n");
        for (uint32_t i = 0; i < nd->n; i++) {
                const struct entry *e = &node_entries(nd)[i];

                xml_print_attribute(x, e->name, e->spelling, node_at(nd, e->at), indent + 4);
        }
        buf_printf(x->out, "%*s</c>", (int)indent, "");
}

static void node(const struct xml *x, const struct node *nd, unsigned indent)
{
        struct buf text BUF_CLEANUP = {.max = x->out->max}, clean BUF_CLEANUP = {.max = x->out->max};

        if (!nd->parens && node_is_literal(nd)) {
                literal(x->out, nd);
        } else if (!nd->parens && nd->op == OP_LIST) {
                buf_addz(x->out, "<l>");
                for (uint32_t i = 0; i < nd->n; i++)
                        node(x, node_wide_kid(nd, i), indent);
                buf_addz(x->out, "</l>");
        } else if (!nd->parens && nd->op == OP_AD) {
                nested(x, nd, indent);
        } else if (nd->parens || nd->op != OP_CALL || !time_literal(x, nd)) {
                print_node(&text, nd, x->symbols);
                print_utf8(&clean, buf_view(&text));
                buf_addz(x->out, "<e>");
                escaped(x->out, buf_view(&clean));
                buf_addz(x->out, "</e>");
                x->out->overflow = x->out->overflow || text.overflow || clean.overflow;
        }
}

void ad_print_xml(struct buf *out, const struct ad *ad, bool with_parents)
{
        struct xml x = {.out = out, .symbols = ad->symbols};
        size_t n;
        struct listed *all = print_listed(ad, with_parents, &n);

        buf_addz(out, "<c>\n");
        for (size_t i = 0; i < n; i++)
                xml_print_attribute(&x, all[i].name, all[i].spelling, all[i].nd, 4);
        buf_addz(out, "</c>\n");
        free(all);
}
