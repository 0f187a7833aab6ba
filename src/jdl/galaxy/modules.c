#include "jdl/galaxy/modules.h"

#include <errno.h>

#include "classad/eval.h"
#include "classad/expr.h"
#include "classad/symbols.h"

bool module_is_known(struct str name)
{
        return str_eqz(name, "os") || str_eqz(name, "os.path") || str_eqz(name, "re");
}

/* ---- os.path: works on texts only, and opens no files */

static struct str text_of(const struct datum *arguments, size_t i, struct buf *b)
{
        datum_write(arguments->items[i], b);
        return buf_view(b);
}

int module_basename(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct str path = text_of(arguments, 0, &b);

        (void)err;
        *ret = datum_text(x->arena, str_skip(path, (size_t)(str_rfind(path, '/') + 1)));
        return 0;
}

int module_dirname(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct str path = text_of(arguments, 0, &b);
        ptrdiff_t at = str_rfind(path, '/');

        (void)err;
        *ret = datum_text(x->arena, str_head(path, at < 0 ? 0 : at == 0 ? 1 : (size_t)at));
        return 0;
}

/* A dot at the beginning of a name does not separate an extension. */
int module_splitext(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct str path = text_of(arguments, 0, &b);
        ptrdiff_t name = str_rfind(path, '/') + 1, at = str_rfind(path, '.');
        size_t n = at > name ? (size_t)at : path.n;

        (void)err;
        *ret = datum_new(x->arena, DATUM_LIST);
        datum_add(x->arena, *ret, datum_text(x->arena, str_head(path, n)));
        datum_add(x->arena, *ret, datum_text(x->arena, str_skip(path, n)));
        return 0;
}

int module_join(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

        for (size_t i = 0; i < arguments->n; i++) {
                BUF_CLEANUP struct buf part = {.max = EXPRESSION_TEXT_MAX};

                if (str_starts(text_of(arguments, i, &part), STR("/")))
                        buf_reset(&b);
                else if (b.n && b.p[b.n - 1] != '/')
                        buf_char(&b, '/');
                buf_str(&b, buf_view(&part));
        }
        return expression_text(x, &b, ret, err);
}

/* ---- re: uses the functions of ClassAds, which have the same patterns and bounded matching */

static int evaluate(struct expressions *x, const char *expression, const char *before,
                    const struct datum *arguments, struct datum **ret, struct err *err)
{
        static const char *const names[] = {"p", "a", "b"};
        struct symbols *symbols = symbols_new();
        struct ad *ad = ad_new(symbols);
        struct expr *e = NULL;
        struct value v = {.type = VALUE_ERROR};
        struct eval ev;
        int rc = expr_parse(symbols, str_of(expression), &e, err);

        eval_init(&ev, 0, 0);
        for (size_t i = 0; i < arguments->n; i++) {
                BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};

                buf_addz(&b, i == 0 ? before : "");
                text_of(arguments, i, &b);
                ad_set_string(ad, symbols_intern(symbols, str_of(names[i])), buf_view(&b));
        }
        if (rc == 0)
                eval_expr(&ev, e, ad, NULL, &v);
        if (rc == 0 && v.type == VALUE_STRING)
                *ret = datum_text(x->arena, v.string);
        else if (rc == 0 && v.type == VALUE_BOOLEAN)
                *ret = datum_bool(x->arena, v.boolean);
        else
                rc = err_set(err, -EINVAL, "the pattern cannot be matched");
        eval_deinit(&ev);
        expr_free(e);
        ad_free(ad);
        symbols_free(symbols);
        return rc;
}

int module_sub(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        return evaluate(x, "replaceAll(p, b, a)", "", arguments, ret, err);
}

int module_search(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        return evaluate(x, "regexp(p, a)", "", arguments, ret, err);
}

int module_match(struct expressions *x, const struct datum *arguments, struct datum **ret, struct err *err)
{
        return evaluate(x, "regexp(p, a)", "\\A", arguments, ret, err);
}
