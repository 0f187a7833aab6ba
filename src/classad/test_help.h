/* test_help: shared by the tests of this folder: expressions evaluated to text. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "classad/match.h"
#include "classad/print.h"

#define TEST_NOW 1700000000

/* A small world: a table of symbols and two ads from text (either may be NULL). */
struct world {
        struct symbols *symbols;
        struct ad *my, *target;
        struct eval ev;
        struct buf out;
};

static inline struct ad *test_ad(struct symbols *symbols, const char *text)
{
        struct ad *ad = NULL;
        struct err err = {{0}};

        if (ad_parse(symbols, str_of(text), CLASSAD_ANY, &ad, &err) != 0)
                fail_msg("%s: %s", text, err.text);
        return ad;
}

static inline void world_init(struct world *w, const char *my, const char *target)
{
        *w = (struct world){.symbols = symbols_new()};
        if (my)
                w->my = test_ad(w->symbols, my);
        if (target)
                w->target = test_ad(w->symbols, target);
        eval_init(&w->ev, TEST_NOW, 1);
}

static inline void world_deinit(struct world *w)
{
        ad_free(w->my);
        ad_free(w->target);
        eval_deinit(&w->ev);
        buf_deinit(&w->out);
        symbols_free(w->symbols);
}

static inline symbol world_symbol(struct world *w, const char *name)
{
        return symbols_intern(w->symbols, str_of(name));
}

/* The value of the expression as text; "syntax" when it does not parse. Valid until the next call. */
static inline const char *world_eval(struct world *w, const char *text)
{
        struct expr *e;
        struct value v;

        buf_reset(&w->out);
        if (expr_parse(w->symbols, str_of(text), &e, NULL) != 0)
                return "syntax";
        eval_expr(&w->ev, e, w->my, w->target, &v);
        value_print(&w->out, &v);
        expr_free(e);
        eval_reset(&w->ev);
        return buf_z(&w->out);
}

static inline void world_check(struct world *w, const char *text, const char *expect)
{
        const char *got = world_eval(w, text);

        if (strcmp(got, expect) != 0)
                fail_msg("%s is %s, not %s", text, got, expect);
}

struct row {
        const char *text, *expect;
};
static inline void check_rows(const struct row *rows, const char *my, const char *target)
{
        struct world w;

        world_init(&w, my, target);
        for (; rows->text; rows++)
                world_check(&w, rows->text, rows->expect);
        world_deinit(&w);
}
#define ROWS(...) ((const struct row[]){__VA_ARGS__, {0}})
