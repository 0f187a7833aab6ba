/* Functions on numbers. */
#include <math.h>

#include "classad/functions.h"
#include "classad/operators.h"

/* A real that a rounding function made, as an integer. */
static struct value whole(double d)
{
        if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0))
                return value_error();
        return value_integer((int64_t)d);
}

static void rounded(const struct call *c, double (*fn)(double), struct value *ret)
{
        double d;

        if (c->args[0].type == VALUE_INTEGER)
                *ret = c->args[0];
        else if (value_convert_real(&c->args[0], &d))
                *ret = whole(fn(d));
}

void function_floor(const struct call *c, struct value *ret)
{
        rounded(c, floor, ret);
}

void function_ceil(const struct call *c, struct value *ret)
{
        rounded(c, ceil, ret);
}

void function_ceiling(const struct call *c, struct value *ret)
{
        rounded(c, ceil, ret);
}

void function_round(const struct call *c, struct value *ret)
{
        rounded(c, rint, ret); /* to even at the middle: the default rounding mode */
}

void function_pow(const struct call *c, struct value *ret)
{
        double base, exponent;
        int64_t n, square, result = 1;

        if (!value_convert_real(&c->args[0], &base) || !value_convert_real(&c->args[1], &exponent))
                return;
        if (c->args[0].type == VALUE_INTEGER && c->args[1].type == VALUE_INTEGER) {
                value_to_integer(&c->args[0], &square);
                value_to_integer(&c->args[1], &n);
                bool overflow = false;

                for (int64_t left = n; left > 0 && !overflow; left >>= 1) {
                        if (left & 1)
                                overflow = __builtin_mul_overflow(result, square, &result);
                        if (left > 1 && !overflow)
                                overflow = __builtin_mul_overflow(square, square, &square);
                }
                if (n >= 0) {
                        *ret = overflow ? value_error() : value_integer(result);
                        return;
                }
        }
        *ret = value_real(pow(base, exponent));
}

void function_log(const struct call *c, struct value *ret)
{
        double x, base = 0, r;

        if (!value_to_double(&c->args[0], &x) || (c->argc == 2 && !value_to_double(&c->args[1], &base)))
                return;
        r = c->argc == 2 ? log(x) / log(base) : log(x);
        *ret = isfinite(r) ? value_real(r) : value_error();
}

/* The smallest multiple of b that is at least a. */
static struct value multiple(const struct value *a, const struct value *b)
{
        double x, step;

        if (!value_convert_real(a, &x) || !value_convert_real(b, &step))
                return value_error();
        if (a->type == VALUE_INTEGER && b->type == VALUE_INTEGER) {
                int64_t i, k, rest, up;

                value_to_integer(a, &i);
                value_to_integer(b, &k);
                if (k == 0)
                        return *a;
                rest = k == -1 ? 0 : i % k;
                if (rest == 0)
                        return value_integer(i);
                /* truncation rounds towards zero; one step more when the quotient is positive */
                up = (i < 0) == (k < 0) ? k : 0;
                if (__builtin_add_overflow(i - rest, up, &i))
                        return value_error();
                return value_integer(i);
        }
        if (step == 0)
                return *a;
        return value_real(ceil(x / step) * step);
}

void function_quantize(const struct call *c, struct value *ret)
{
        const struct value *a = &c->args[0], *b = &c->args[1];
        struct value member = value_undefined();
        double x, y;

        if (!value_convert_real(a, &x))
                return;
        if (b->type != VALUE_LIST) {
                *ret = multiple(a, b);
                return;
        }
        for (uint32_t i = 0; i < b->list->n; i++) {
                run_item(c->run, b->list, i, &member);
                if (!value_convert_real(&member, &y))
                        return;
                if (x <= y) {
                        *ret = member;
                        return;
                }
        }
        *ret = b->list->n ? multiple(a, &member) : *a;
}

static uint64_t next_random(struct eval *ev) /* splitmix64 */
{
        uint64_t z = (ev->random += 0x9e3779b97f4a7c15u);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

void function_random(const struct call *c, struct value *ret)
{
        uint64_t r = next_random(c->run->ev);
        double unit = (double)(r >> 11) * 0x1p-53;

        if (c->argc == 0)
                *ret = value_real(unit);
        else if (c->args[0].type == VALUE_INTEGER && c->args[0].integer > 0)
                *ret = value_integer((int64_t)(((__uint128_t)r * (uint64_t)c->args[0].integer) >> 64));
        else if (c->args[0].type == VALUE_REAL)
                *ret = value_real(unit * c->args[0].real);
}
