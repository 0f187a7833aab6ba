/* Expressions and ads from anybody: read, printed, read again, evaluated under small limits. The first byte
 * chooses: 1 an expression, 2 and 3 an ad in the new and the old syntax, 4 two ads that meet, parted by a
 * line of dashes; any other is part of the text, which is tried as an ad of either syntax and as an
 * expression. */
#include <stdint.h>
#include <stdlib.h>

#include "classad/match.h"
#include "classad/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void limits(struct eval *ev)
{
        eval_init(ev, 1700000000, 1);
        ev->steps_max = 20000;
        ev->bytes_max = 1 << 20;
}

static void print_again(struct symbols *s, const struct expr *e)
{
        BUF_CLEANUP struct buf once = {0}, again = {0};
        struct expr *back;
        struct err err;
        int r;

        expr_print(&once, e, s);
        r = expr_parse(s, buf_view(&once), &back, &err);
        if (r == CLASSAD_TOO_DEEP)
                return;
        if (r != 0)
                abort();
        expr_print(&again, back, s);
        if (!str_eq(buf_view(&once), buf_view(&again)))
                abort();
        expr_free(back);
}

static void ignore(void *arg, symbol name, bool target)
{
        (void)target;
        *(uint32_t *)arg += name;
}

static void expression(struct symbols *s, struct str text)
{
        BUF_CLEANUP struct buf out = {.max = 1 << 20};
        struct expr_uses uses;
        struct expr *e;
        struct eval ev;
        struct value v;
        struct err err;
        uint32_t sum = 0;

        if (expr_parse(s, text, &e, &err) != 0)
                return;
        print_again(s, e);
        limits(&ev);
        eval_expr(&ev, e, NULL, NULL, &v);
        value_print(&out, &v);
        for (unsigned i = 0; i < expr_clause_count(e) && i < 8; i++)
                eval_clause(&ev, e, i, NULL, NULL, &v);
        expr_references(e, NULL, ignore, &sum, &uses);
        eval_deinit(&ev);
        expr_free(e);
}

/* Old lines lose line breaks and what a backslash before a quote meant, but what was read from them prints
 * alike. */
static void old_again(struct symbols *s, const struct ad *ad)
{
        BUF_CLEANUP struct buf first = {0}, once = {0}, again = {0};
        struct ad *back, *last;
        struct err err;

        ad_print(&first, ad, CLASSAD_OLD, false);
        if (ad_parse(s, buf_view(&first), CLASSAD_OLD, &back, &err) != 0)
                return;
        ad_print(&once, back, CLASSAD_OLD, false);
        if (ad_parse(s, buf_view(&once), CLASSAD_OLD, &last, &err) == 0) {
                ad_print(&again, last, CLASSAD_OLD, false);
                if (!str_eq(buf_view(&once), buf_view(&again)) && !memmem(once.p, once.n, "\\", 1))
                        abort();
                ad_free(last);
        }
        ad_free(back);
}

static void ad_all(struct symbols *s, struct str text, enum classad_syntax syntax)
{
        BUF_CLEANUP struct buf out = {0}, again = {0}, value = {.max = 1 << 20};
        struct ad *ad, *back;
        const struct expr *e;
        uint32_t at = 0;
        struct eval ev;
        struct value v;
        struct err err;
        symbol name;

        if (ad_parse(s, text, syntax, &ad, &err) != 0)
                return;
        ad_print(&out, ad, CLASSAD_NEW, false);
        if (ad_parse(s, buf_view(&out), CLASSAD_NEW, &back, &err) == 0) {
                ad_print(&again, back, CLASSAD_NEW, false);
                if (!str_eq(buf_view(&out), buf_view(&again)))
                        abort();
                ad_free(back);
        } else if (buf_view(&out).n <= CLASSAD_TEXT_MAX && !strstr(err.text, "deep")) {
                abort();
        }
        buf_reset(&out);
        ad_print(&out, ad, CLASSAD_OLD, true);
        ad_print_json(&out, ad, false);
        limits(&ev);
        while (ad_next(ad, &at, &name, &e)) {
                eval_attr(&ev, ad, ad, name, &v);
                value_print(&value, &v);
                eval_reset(&ev);
                buf_reset(&value);
        }
        eval_deinit(&ev);
        back = ad_dup(ad);
        while (ad_count(back) > 0) {
                at = 0;
                ad_next(back, &at, &name, &e);
                ad_set_integer(back, name, 1);
                ad_remove(back, name);
                if (ad_count(back) > 64)
                        break;
        }
        ad_free(back);
        old_again(s, ad);
        ad_free(ad);
}

static void meet(struct symbols *s, struct str text)
{
        ptrdiff_t at = str_search(text, STR("\n---\n"));
        struct ad *a, *b;
        struct eval ev;
        struct value v;
        struct err err;
        unsigned clauses;

        if (at < 0 || ad_parse(s, str_head(text, (size_t)at), CLASSAD_ANY, &a, &err) != 0)
                return;
        if (ad_parse(s, str_skip(text, (size_t)at + 5), CLASSAD_ANY, &b, &err) == 0) {
                limits(&ev);
                /* what explains a refusal agrees with the match itself */
                bool yes = match_one_way(&ev, a, b);
                bool limited = ev.limit_hit != NULL;
                int refusal = match_first_refusal(&ev, a, b, &clauses, &v);
                if (!limited && !ev.limit_hit && yes != (refusal < 0))
                        abort();
                match_ads(&ev, b, a);
                match_rank(&ev, a, b);
                eval_deinit(&ev);
                ad_free(b);
        }
        ad_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct symbols *s;
        struct str text;

        if (size == 0)
                return 0;
        s = symbols_new();
        text = str_make((const char *)data + 1, size - 1);
        switch (data[0]) {
        case '2': ad_all(s, text, CLASSAD_NEW); break;
        case '3': ad_all(s, text, CLASSAD_OLD); break;
        case '4': meet(s, text); break;
        case '1': expression(s, text); break;
        default:
                text = str_make((const char *)data, size);
                ad_all(s, text, CLASSAD_ANY);
                expression(s, text);
                break;
        }
        symbols_free(s);
        return 0;
}
