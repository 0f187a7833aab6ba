#include "jdl/galaxy/operators.h"

#include <errno.h>
#include <math.h>

static int arithmetic(struct expressions *x, const char *op, const struct datum *a, const struct datum *b,
                      struct datum **ret, struct err *err)
{
        bool whole = a->kind != DATUM_FLOAT && b->kind != DATUM_FLOAT;
        double p, q, d;

        if (!datum_number(a, &p) || !datum_number(b, &q))
                return err_set(err, -EINVAL, "a %s %s a %s", datum_kind_name(a), op, datum_kind_name(b));
        if (strchr("/%", *op) && !(q < 0 || q > 0))
                return err_set(err, -EINVAL, "division by zero");
        if (*op == '+')
                d = p + q;
        else if (*op == '-')
                d = p - q;
        else if (*op == '*')
                d = p * q;
        else if (*op == '%')
                d = p - q * floor(p / q);
        else
                d = op[1] == '/' ? floor(p / q) : p / q;
        *ret = datum_of_number(x->arena, d, whole && (*op != '/' || op[1] == '/'));
        return 0;
}

static bool is_text(const struct datum *v)
{
        return v->kind == DATUM_TEXT || v->written;
}

static int join_two(struct expressions *x, struct datum *a, struct datum *b, struct datum **ret,
                    struct err *err)
{
        BUF_CLEANUP struct buf t = {.max = EXPRESSION_TEXT_MAX};

        if (a->kind == DATUM_LIST) {
                struct datum *list = datum_new(x->arena, DATUM_LIST);

                list->tuple = a->tuple;
                for (size_t i = 0; i < a->n + b->n; i++)
                        if (!datum_add(x->arena, list, i < a->n ? a->items[i] : b->items[i - a->n]))
                                return err_set(err, -E2BIG, "a list has more than %u items", DATUM_ITEMS_MAX);
                *ret = list;
                return 0;
        }
        datum_write(a, &t);
        datum_write(b, &t);
        return expression_text(x, &t, ret, err);
}

/* Implements "%s-%d" % value, or % (list), with the conversions s, d, i and f without options. */
static int format(struct expressions *x, struct str f, const struct datum *with, struct datum **ret,
                  struct err *err)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        size_t used = 0;

        for (size_t i = 0; i < f.n; i++) {
                const struct datum *v = with;
                double d;

                if (f.p[i] != '%') {
                        buf_char(&b, f.p[i]);
                        continue;
                }
                if (++i < f.n && f.p[i] == '%') {
                        buf_char(&b, '%');
                        continue;
                }
                if (i == f.n || !strchr("sdif", f.p[i]))
                        return err_set(err, -EINVAL,
                                       "only %%s, %%d, %%i and %%f are supported in a text with %%");
                if (with->kind == DATUM_LIST && used >= with->n)
                        return err_set(err, -EINVAL, "too few values for '" STR_FMT "'", STR_ARG(f));
                if (with->kind == DATUM_LIST)
                        v = with->items[used];
                used++;
                if (f.p[i] == 's' && !datum_write(v, &b))
                        return err_set(err, -EINVAL, "a %s has no text", datum_kind_name(v));
                if (f.p[i] == 's')
                        continue;
                if (!datum_number(v, &d))
                        return err_set(err, -EINVAL, "%%%c of a %s", f.p[i], datum_kind_name(v));
                else
                        buf_printf(&b, f.p[i] == 'f' ? "%f" : "%.0f", f.p[i] == 'f' ? d : trunc(d));
        }
        return expression_text(x, &b, ret, err);
}

static int contains(const struct datum *in, const struct datum *what, bool *ret, struct err *err)
{
        BUF_CLEANUP struct buf a = {.max = EXPRESSION_TEXT_MAX}, b = {.max = EXPRESSION_TEXT_MAX};

        *ret = false;
        if (in->kind == DATUM_LIST) {
                for (size_t i = 0; i < in->n && !*ret; i++)
                        *ret = datum_equal(in->items[i], what);
                return 0;
        }
        if (!datum_write(what, &b))
                return err_set(err, -EINVAL, "'in' of a %s", datum_kind_name(what));
        if (in->kind == DATUM_MAP && !in->written) {
                *ret = datum_get(in, buf_view(&b)) != NULL;
                return 0;
        }
        if (!is_text(in) || !datum_write(in, &a))
                return err_set(err, -EINVAL, "'in' a %s", datum_kind_name(in));
        *ret = b.n == 0 || str_search(buf_view(&a), buf_view(&b)) >= 0;
        return 0;
}

static int compare_data(struct expressions *x, const char *op, const struct datum *a, const struct datum *b,
                        struct datum **ret, struct err *err)
{
        bool is;
        int order;

        if (strcmp(op, "is") == 0 || strcmp(op, "is not") == 0) {
                /* a missing parameter equals None, but is another object */
                is = (datum_equal(a, b) &&
                      (a->kind != DATUM_NONE || a->written == b->written || x->filter)) == !op[2];
        } else if (strcmp(op, "==") == 0 || strcmp(op, "!=") == 0) {
                is = datum_equal(a, b) == (*op == '=');
        } else if (strcmp(op, "in") == 0 || strcmp(op, "not in") == 0) {
                int rc = contains(b, a, &is, err);

                if (rc != 0)
                        return rc;
                is = is == (*op == 'i');
        } else {
                if (!datum_compare(a, b, &order))
                        return err_set(err, -EINVAL, "a %s and a %s have no order", datum_kind_name(a),
                                       datum_kind_name(b));
                is = *op == '<' ? (op[1] ? order <= 0 : order < 0) : (op[1] ? order >= 0 : order > 0);
        }
        *ret = datum_bool(x->arena, is);
        return 0;
}

int operator_apply(struct expressions *x, const char *op, struct datum *a, struct datum *b,
                   struct datum **ret, struct err *err)
{
        if (strchr("=!<>in", *op))
                return compare_data(x, op, a, b, ret, err);
        if (*op == '+' && ((a->kind == DATUM_LIST && b->kind == DATUM_LIST) || (is_text(a) && is_text(b))))
                return join_two(x, a, b, ret, err);
        if (*op == '%' && a->kind == DATUM_TEXT)
                return format(x, a->text, b, ret, err);
        return arithmetic(x, op, a, b, ret, err);
}
