/* err: the description of a failure, for people.
 *
 * Calls report by their return value: 0 is success, a positive number is the module's own enum and the caller
 * handles it, a negative number is -errno and is passed up. The last, optional argument of a call that can
 * say more is a `struct err *`: on failure it holds one sentence for a person, with file and line where there
 * are any. It is a plain value, owns nothing, and may be NULL wherever it is taken.
 */
#pragma once
#include <stdarg.h>

#define ERR_TEXT_MAX 512

struct err {
        char text[ERR_TEXT_MAX];
};

/* Writes the text, cut at ERR_TEXT_MAX - 1 bytes, and returns `code` unchanged, so that a failing call can
 * end in `return err_set(err, -EINVAL, "...")`. Does nothing to the text when err is NULL. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_vset(struct err *err, int code, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* Puts "prefix: " before the text that is there. Returns code. */
int err_prefix(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
