/* value: the result of evaluating an expression. A plain struct, passed by pointer, owns nothing: strings,
 * lists and ads are borrowed from the ad they stand in or from the evaluation's arena (see eval.h), until
 * that is reset. */
#pragma once
#include "base/buf.h"

enum value_type {
        VALUE_UNDEFINED,
        VALUE_ERROR,
        VALUE_BOOLEAN,
        VALUE_INTEGER,
        VALUE_REAL,
        VALUE_STRING,
        VALUE_ABSTIME,
        VALUE_RELTIME,
        VALUE_LIST,
        VALUE_AD,
};

struct ad;
struct value_list;

struct value {
        enum value_type type;
        int32_t offset; /* VALUE_ABSTIME: seconds east of Greenwich */
        union {
                bool boolean;
                int64_t integer; /* VALUE_INTEGER; VALUE_ABSTIME: Unix seconds */
                double real;     /* VALUE_REAL; VALUE_RELTIME: seconds */
                struct str string;
                const struct value_list *list;
                const struct ad *ad;
        };
};

static inline struct value value_undefined(void)
{
        return (struct value){.type = VALUE_UNDEFINED};
}
static inline struct value value_error(void)
{
        return (struct value){.type = VALUE_ERROR};
}
static inline struct value value_boolean(bool b)
{
        return (struct value){.type = VALUE_BOOLEAN, .boolean = b};
}
static inline struct value value_integer(int64_t i)
{
        return (struct value){.type = VALUE_INTEGER, .integer = i};
}
static inline struct value value_real(double r)
{
        return (struct value){.type = VALUE_REAL, .real = r};
}
static inline struct value value_string(struct str s)
{
        return (struct value){.type = VALUE_STRING, .string = s};
}

/* Returns whether the value makes a requirement hold: a true boolean or a nonzero number. */
bool value_is_true(const struct value *v);
/* Converts a number of any numeric type (booleans count as 0 and 1) to double; false: v is no number. */
bool value_to_double(const struct value *v, double *ret);
bool value_to_integer(const struct value *v,
                      int64_t *ret); /* reals are truncated; false when it is no number */
/* Writes the value as the language does: 3, 1.000000000000000E+00, "text", undefined, { 1,2 }, [ a = 1 ]. */
void value_print(struct buf *out, const struct value *v);
