#include "server/config/expressions.h"

#include <errno.h>

#include "base/buf.h"
#include "classad/ad.h"
#include "classad/expr.h"

int config_attributes_check(const struct doc *d, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        struct symbols *symbols;
        struct err why = {""};
        struct ad *ad = NULL;
        struct str said;
        int r = doc_text(d, &said, err);

        if (r != 0)
                return r;
        buf_printf(&text, "[ " STR_FMT " ]", STR_ARG(said));
        symbols = symbols_new();
        if (ad_parse(symbols, buf_view(&text), CLASSAD_NEW, &ad, &why) != 0) {
                err_set(err, -EINVAL, STR_FMT " must be 'Name = expression; ...': %s", STR_ARG(d->key),
                        why.text);
                r = doc_where(err, -EINVAL, d);
        }
        ad_free(ad);
        symbols_free(symbols);
        return r;
}

int config_expression_check(const struct doc *d, struct err *err)
{
        struct symbols *symbols;
        struct err why = {""};
        struct expr *e = NULL;
        struct str said;
        int r = doc_text(d, &said, err);

        if (r != 0)
                return r;
        symbols = symbols_new();
        if (expr_parse(symbols, said, &e, &why) != 0) {
                err_set(err, -EINVAL, STR_FMT " must be an expression: %s", STR_ARG(d->key), why.text);
                r = doc_where(err, -EINVAL, d);
        }
        expr_free(e);
        symbols_free(symbols);
        return r;
}
