/* A recursive descent over sum, product and factor, which computes as it reads. */
#include "base/job/arith.h"

#include <errno.h>

struct reader {
        struct str rest;
        unsigned depth;
        const char *wrong; /* the first thing that went wrong, or NULL */
};

static struct arith from_integer(int64_t v)
{
        return (struct arith){.integer = v, .real = (double)v};
}

static struct arith from_real(double v)
{
        return (struct arith){.is_real = true, .real = v};
}

static struct arith fail_reading(struct reader *r, const char *what)
{
        if (!r->wrong)
                r->wrong = what;
        r->rest = STR_NONE;
        return from_integer(0);
}

static char peek(struct reader *r)
{
        r->rest = str_trim_left(r->rest);
        return r->rest.n ? r->rest.p[0] : '\0';
}

static bool digit(char c)
{
        return c >= '0' && c <= '9';
}

static struct arith arith_number(struct reader *r)
{
        struct str s = r->rest;
        bool real = false;
        size_t n = 0;
        struct arith v;

        while (n < s.n && digit(s.p[n]))
                n++;
        if (n < s.n && s.p[n] == '.') {
                real = true;
                for (n++; n < s.n && digit(s.p[n]); n++)
                        ;
        }
        if (n < s.n && (s.p[n] == 'e' || s.p[n] == 'E')) {
                real = true;
                n++;
                if (n < s.n && (s.p[n] == '+' || s.p[n] == '-'))
                        n++;
                while (n < s.n && digit(s.p[n]))
                        n++;
        }
        r->rest = str_skip(s, n);
        v = from_integer(0);
        if (real) {
                v.is_real = true;
                if (str_to_double(str_head(s, n), &v.real))
                        return fail_reading(r, "it holds something that is not a number");
                return v;
        }
        if (str_to_i64(str_head(s, n), &v.integer))
                return fail_reading(r, n ? "a number in it is too large"
                                         : "it holds something that is not a number");
        return from_integer(v.integer);
}

static struct arith sum(struct reader *r);

static struct arith factor(struct reader *r)
{
        struct arith v;
        char c = peek(r);

        if (r->depth >= ARITH_DEPTH_MAX)
                return fail_reading(r, "it is nested too deep");
        if (c != '(' && c != '-' && c != '+')
                return arith_number(r);
        r->rest = str_skip(r->rest, 1);
        r->depth++;
        if (c == '(') {
                v = sum(r);
                if (peek(r) == ')')
                        r->rest = str_skip(r->rest, 1);
                else
                        v = fail_reading(r, "a ')' is missing");
        } else {
                v = factor(r);
                if (c == '-' && v.is_real)
                        v = from_real(-v.real);
                else if (c == '-' && v.integer == INT64_MIN)
                        v = fail_reading(r, "the result is too large");
                else if (c == '-')
                        v = from_integer(-v.integer);
        }
        r->depth--;
        return v;
}

static struct arith apply(struct reader *r, char op, struct arith a, struct arith b)
{
        int64_t v = 0;
        bool over = false;

        if ((op == '/' || op == '%') && b.real == 0)
                return fail_reading(r, "it divides by zero");
        if (a.is_real || b.is_real) {
                switch (op) {
                case '+': return from_real(a.real + b.real);
                case '-': return from_real(a.real - b.real);
                case '*': return from_real(a.real * b.real);
                case '/': return from_real(a.real / b.real);
                default: return fail_reading(r, "% is for whole numbers");
                }
        }
        switch (op) {
        case '+': over = __builtin_add_overflow(a.integer, b.integer, &v); break;
        case '-': over = __builtin_sub_overflow(a.integer, b.integer, &v); break;
        case '*': over = __builtin_mul_overflow(a.integer, b.integer, &v); break;
        default:
                over = a.integer == INT64_MIN && b.integer == -1;
                if (!over)
                        v = op == '/' ? a.integer / b.integer : a.integer % b.integer;
        }
        return over ? fail_reading(r, "the result is too large") : from_integer(v);
}

static struct arith product(struct reader *r)
{
        struct arith v = factor(r);
        char op;

        while ((op = peek(r)) == '*' || op == '/' || op == '%') {
                r->rest = str_skip(r->rest, 1);
                v = apply(r, op, v, factor(r));
        }
        return v;
}

static struct arith sum(struct reader *r)
{
        struct arith v = product(r);
        char op;

        while ((op = peek(r)) == '+' || op == '-') {
                r->rest = str_skip(r->rest, 1);
                v = apply(r, op, v, product(r));
        }
        return v;
}

int arith_eval(struct str text, struct arith *ret, struct err *err)
{
        struct reader r = {.rest = text};
        struct arith v;

        if (str_trim(text).n == 0)
                return err_set(err, -EINVAL, "it is empty, where a number is needed");
        v = sum(&r);
        if (!r.wrong && peek(&r) != '\0')
                r.wrong = "it holds something that is not a number";
        if (r.wrong)
                return err_set(err, -EINVAL, "'" STR_FMT "' is no arithmetic: %s",
                               STR_ARG(str_head(str_trim(text), 80)), r.wrong);
        *ret = v;
        return 0;
}
