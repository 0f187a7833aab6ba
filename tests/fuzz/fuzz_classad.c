/* ClassAds: the text is parsed in both syntaxes, evaluated, matched with itself, and printed; what is printed
 * must parse again, and print the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "classad/match.h"
#include "classad/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(struct symbols *symbols, const struct ad *ad, enum classad_syntax syntax)
{
        BUF_CLEANUP struct buf first = {0}, second = {0};
        struct err err;
        struct ad *again;
        int r;

        ad_print(&first, ad, syntax, false);
        r = ad_parse(symbols, buf_view(&first), syntax, &again, &err);
        if (r == CLASSAD_TOO_BIG || r == CLASSAD_TOO_DEEP)
                return;
        if (r) {
                fprintf(stderr, "printed, but not read: %s\n%s\n", err.text, buf_z(&first));
                abort();
        }
        ad_print(&second, again, syntax, false);
        if (!str_eq(buf_view(&first), buf_view(&second))) {
                fprintf(stderr, "printed once:  %s\nprinted again: %s\n", buf_z(&first), buf_z(&second));
                abort();
        }
        ad_free(again);
}

static void evaluate_all(const struct ad *ad)
{
        BUF_CLEANUP struct buf out = {.max = 1 << 20};
        const struct expr *e;
        struct value clause;
        struct eval ev;
        uint32_t at = 0;
        unsigned count;
        symbol name;

        eval_init(&ev, 1700000000, 1);
        ev.steps_max = 20000;
        ev.bytes_max = 1 << 20;
        while (ad_next(ad, &at, &name, &e)) {
                struct value v;

                eval_attr(&ev, ad, ad, name, &v);
                value_print(&out, &v);
                count = expr_clause_count(e);
                if (count > 0)
                        eval_clause(&ev, e, count - 1, ad, NULL, &v);
                eval_reset(&ev);
        }
        match_ads(&ev, ad, ad);
        match_rank(&ev, ad, ad);
        match_first_refusal(&ev, ad, ad, &count, &clause);
        eval_deinit(&ev);
        ad_print_json(&out, ad, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct symbols *symbols;
        struct str text = str_make((const char *)data, size);
        struct expr *e;
        struct err err;
        struct ad *ad;

        if (size > 20000)
                return 0;
        symbols = symbols_new();
        if (ad_parse(symbols, text, CLASSAD_ANY, &ad, &err) == 0) {
                same_again(symbols, ad, CLASSAD_NEW);
                evaluate_all(ad);
                ad_free(ad);
        }
        if (expr_parse(symbols, text, &e, &err) == 0)
                expr_free(e);
        symbols_free(symbols);
        return 0;
}
