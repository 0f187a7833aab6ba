/* arith: the arithmetic that $INT() and $REAL() do.
 *
 * Whole numbers (64 bits) and reals with + - * / % ( ) and signs, with C's precedence; between whole numbers
 * / gives a whole number. Overflow and division by zero are errors. Pure.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define ARITH_DEPTH_MAX 50 /* nested parentheses and signs */

struct arith {
        bool is_real;
        int64_t integer; /* set if !is_real */
        double real;     /* always set */
};

/* 0, or -EINVAL with err and *ret unchanged. */
int arith_eval(struct str text, struct arith *ret, struct err *err);
