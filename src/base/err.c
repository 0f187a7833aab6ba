#include "base/err.h"

#include <stdio.h>
#include <string.h>

int err_vset(struct err *err, int code, const char *fmt, va_list ap)
{
        if (err)
                vsnprintf(err->text, sizeof(err->text), fmt, ap);
        return code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        err_vset(err, code, fmt, ap);
        va_end(ap);
        return code;
}

int err_prefix(struct err *err, int code, const char *fmt, ...)
{
        struct err old;
        va_list ap;
        int n;

        if (!err)
                return code;
        old = *err;
        va_start(ap, fmt);
        n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof(err->text) - 3)
                snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", old.text);
        return code;
}
