/* Functions on time. The time is what the evaluation was told; there is no clock here. */
#include <stdio.h>

#include "classad/functions.h"

void function_time(const struct call *c, struct value *ret)
{
        *ret = value_integer(c->run->ev->now_s);
}

void function_interval(const struct call *c, struct value *ret)
{
        char text[64];
        uint64_t s, days;
        unsigned h, m;
        int64_t n;
        int length;

        if (call_strict(c, ret) || !value_convert_integer(&c->args[0], &n))
                return;
        s = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        days = s / 86400;
        h = (unsigned)(s / 3600 % 24);
        m = (unsigned)(s / 60 % 60);
        if (days)
                length = snprintf(text, sizeof(text), "%llu+%u:%02u:%02u", (unsigned long long)days, h, m,
                                  (unsigned)(s % 60));
        else if (h)
                length = snprintf(text, sizeof(text), "%u:%02u:%02u", h, m, (unsigned)(s % 60));
        else
                length = snprintf(text, sizeof(text), "%u:%02u", m, (unsigned)(s % 60));
        if (n < 0) {
                char minus[66];

                length = snprintf(minus, sizeof(minus), "-%s", text);
                run_text(c->run, str_make(minus, (size_t)length), ret);
                return;
        }
        run_text(c->run, str_make(text, (size_t)length), ret);
}
