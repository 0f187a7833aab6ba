/* Strictness comes first, the same for all: error wins, then undefined. Then the pair of types decides.
 * Booleans are promoted to integers (but not for bits), integers to reals. Integers wrap, as two's complement
 * does; shifts take the low six bits of the count, as the machine does; only a negative number goes right one
 * bit at a time, as often as the count says. */
#include "classad/operators.h"

#include <math.h>

static bool is_number(const struct value *v)
{
        return v->type == VALUE_INTEGER || v->type == VALUE_REAL || v->type == VALUE_BOOLEAN;
}

static int64_t as_integer(const struct value *v) /* of a boolean or an integer */
{
        return v->type == VALUE_BOOLEAN ? v->boolean : v->integer;
}

static double as_real(const struct value *v) /* of any number */
{
        return v->type == VALUE_REAL ? v->real : (double)as_integer(v);
}

static struct value reltime(double seconds)
{
        return (struct value){.type = VALUE_RELTIME, .real = seconds};
}

void operator_unary(enum op op, const struct value *x, struct value *ret)
{
        enum truth truth;

        if (x->type == VALUE_ERROR || x->type == VALUE_UNDEFINED) {
                *ret = *x;
                return;
        }
        *ret = value_error();
        switch (op) {
        case OP_NOT:
                truth = operator_truth(x);
                if (truth != TRUTH_ERROR)
                        *ret = value_boolean(truth == TRUTH_FALSE);
                break;
        case OP_BIT_NOT:
                if (x->type == VALUE_INTEGER)
                        *ret = value_integer(~x->integer);
                break;
        case OP_PLUS:
                if (x->type == VALUE_INTEGER || x->type == VALUE_REAL || x->type == VALUE_RELTIME)
                        *ret = *x;
                break;
        default: /* OP_MINUS */
                if (x->type == VALUE_INTEGER)
                        *ret = value_integer((int64_t)(0 - (uint64_t)x->integer));
                else if (x->type == VALUE_REAL)
                        *ret = value_real(-x->real);
                else if (x->type == VALUE_RELTIME)
                        *ret = reltime(-x->real);
                break;
        }
}

static struct value integers(enum op op, int64_t x, int64_t y)
{
        uint64_t a = (uint64_t)x, b = (uint64_t)y;

        switch (op) {
        case OP_ADD: return value_integer((int64_t)(a + b));
        case OP_SUBTRACT: return value_integer((int64_t)(a - b));
        case OP_MULTIPLY: return value_integer((int64_t)(a * b));
        case OP_DIVIDE:
                if (y == 0)
                        return value_error();
                if (y == -1)
                        return value_integer(x == INT64_MIN ? INT64_MAX : -x);
                return value_integer(x / y);
        default: /* OP_MODULUS */
                if (y == 0)
                        return value_error();
                return value_integer(y == -1 ? 0 : x % y);
        }
}

/* HTCondor's library does the same: of the results that are not finite only +infinity is an error. */
static struct value reals(enum op op, double x, double y)
{
        double r;

        switch (op) {
        case OP_ADD: r = x + y; break;
        case OP_SUBTRACT: r = x - y; break;
        case OP_MULTIPLY: r = x * y; break;
        case OP_DIVIDE: r = x / y; break;
        default: return value_error(); /* OP_MODULUS */
        }
        return isinf(r) && r > 0 ? value_error() : value_real(r);
}

/* Instants and durations. */
static struct value times(enum op op, const struct value *x, const struct value *y)
{
        enum value_type a = x->type, b = y->type;

        if (a == VALUE_ABSTIME && b == VALUE_ABSTIME && op == OP_SUBTRACT)
                return reltime((double)x->integer - (double)y->integer);
        if (a == VALUE_ABSTIME && b == VALUE_RELTIME && (op == OP_ADD || op == OP_SUBTRACT)) {
                struct value r = *x;
                struct value seconds = *y;
                int64_t n;

                if (!value_to_integer(&seconds, &n))
                        return value_error();
                r.integer = (int64_t)((uint64_t)r.integer + (op == OP_ADD ? (uint64_t)n : 0 - (uint64_t)n));
                return r;
        }
        if (a == VALUE_RELTIME && b == VALUE_ABSTIME && op == OP_ADD)
                return times(op, y, x);
        if (a == VALUE_RELTIME && b == VALUE_RELTIME && (op == OP_ADD || op == OP_SUBTRACT))
                return reltime(op == OP_ADD ? x->real + y->real : x->real - y->real);
        if (a == VALUE_BOOLEAN || b == VALUE_BOOLEAN)
                return value_error();
        if (a == VALUE_RELTIME && is_number(y) && op == OP_MULTIPLY)
                return reltime(x->real * as_real(y));
        if (a == VALUE_RELTIME && is_number(y) && op == OP_DIVIDE && as_real(y) != 0)
                return reltime(x->real / as_real(y));
        if (is_number(x) && b == VALUE_RELTIME && op == OP_MULTIPLY)
                return reltime(as_real(x) * y->real);
        return value_error();
}

static struct value arithmetic(enum op op, const struct value *x, const struct value *y)
{
        if (is_number(x) && is_number(y)) {
                if (x->type == VALUE_REAL || y->type == VALUE_REAL)
                        return reals(op, as_real(x), as_real(y));
                return integers(op, as_integer(x), as_integer(y));
        }
        return times(op, x, y);
}

static struct value bits(enum op op, const struct value *x, const struct value *y)
{
        uint64_t a = (uint64_t)x->integer, b = (uint64_t)y->integer;

        if (x->type != VALUE_INTEGER || y->type != VALUE_INTEGER)
                return value_error();
        switch (op) {
        case OP_BIT_AND: return value_integer((int64_t)(a & b));
        case OP_BIT_OR: return value_integer((int64_t)(a | b));
        case OP_BIT_XOR: return value_integer((int64_t)(a ^ b));
        case OP_SHIFT_LEFT: return value_integer((int64_t)(a << (b & 63)));
        case OP_SHIFT_RIGHT:
                if (x->integer < 0 && (y->integer < 0 || y->integer > 63))
                        return value_integer(y->integer < 0 ? x->integer : -1);
                return value_integer((int64_t)a >> (b & 63));
        default: return value_integer((int64_t)(a >> (b & 63))); /* OP_SHIFT_LOGICAL */
        }
}

static struct value relation(enum op op, bool less, bool equal, bool greater)
{
        switch (op) {
        case OP_LESS: return value_boolean(less);
        case OP_LESS_EQUAL: return value_boolean(less || equal);
        case OP_GREATER: return value_boolean(greater);
        case OP_GREATER_EQUAL: return value_boolean(greater || equal);
        case OP_EQUAL: return value_boolean(equal);
        default: return value_boolean(!equal); /* OP_NOT_EQUAL; also of NaN */
        }
}

static struct value compare_values(enum op op, const struct value *x, const struct value *y)
{
        if (x->type == VALUE_STRING && y->type == VALUE_STRING) {
                bool same = op == OP_EQUAL || op == OP_NOT_EQUAL;
                int c = same ? !str_ieq(x->string, y->string) : str_icmp(x->string, y->string);

                return relation(op, c<0, c == 0, c> 0);
        }
        if (is_number(x) && is_number(y)) {
                if (x->type == VALUE_REAL || y->type == VALUE_REAL) {
                        double a = as_real(x), b = as_real(y);

                        return relation(op, a<b, a == b, a> b);
                }
                int64_t a = as_integer(x), b = as_integer(y);
                return relation(op, a<b, a == b, a> b);
        }
        if (x->type == VALUE_ABSTIME && y->type == VALUE_ABSTIME)
                return relation(op, x->integer<y->integer, x->integer == y->integer, x->integer> y->integer);
        if (x->type == VALUE_RELTIME && y->type == VALUE_RELTIME)
                return relation(op, x->real<y->real, x->real == y->real, x->real> y->real);
        return value_error();
}

static struct value identical(bool negate, const struct value *x, const struct value *y)
{
        bool same = false;

        /* two lists are not compared, but a list is surely no number */
        if (x->type >= VALUE_LIST && x->type == y->type)
                return value_error();
        if (x->type == y->type) {
                switch (x->type) {
                case VALUE_BOOLEAN: same = x->boolean == y->boolean; break;
                case VALUE_INTEGER: same = x->integer == y->integer; break;
                case VALUE_REAL:
                case VALUE_RELTIME: same = x->real == y->real; break;
                case VALUE_STRING: same = str_eq(x->string, y->string); break;
                case VALUE_ABSTIME: same = x->integer == y->integer && x->offset == y->offset; break;
                default: same = true; break; /* undefined, error */
                }
        }
        return value_boolean(same != negate);
}

void operator_binary(enum op op, const struct value *x, const struct value *y, struct value *ret)
{
        if (op == OP_IS || op == OP_ISNT)
                *ret = identical(op == OP_ISNT, x, y);
        else if (x->type == VALUE_ERROR || y->type == VALUE_ERROR)
                *ret = value_error();
        else if (x->type == VALUE_UNDEFINED || y->type == VALUE_UNDEFINED)
                *ret = value_undefined();
        else if (op >= OP_LESS && op <= OP_NOT_EQUAL)
                *ret = compare_values(op, x, y);
        else if (op <= OP_SUBTRACT)
                *ret = arithmetic(op, x, y);
        else
                *ret = bits(op, x, y);
}
