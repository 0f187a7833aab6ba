/* Values are printed as literals, so that the text reads back. Times print as the calls that
 * make them. */
#include "classad/value.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "classad/code.h"
#include "classad/print_private.h"

bool value_is_true(const struct value *v)
{
        double d;

        return value_to_double(v, &d) && d != 0;
}

bool value_to_double(const struct value *v, double *ret)
{
        switch (v->type) {
        case VALUE_BOOLEAN: *ret = v->boolean; return true;
        case VALUE_INTEGER: *ret = (double)v->integer; return true;
        case VALUE_REAL: *ret = v->real; return true;
        default: return false;
        }
}

bool value_to_integer(const struct value *v, int64_t *ret)
{
        switch (v->type) {
        case VALUE_BOOLEAN: *ret = v->boolean; return true;
        case VALUE_INTEGER: *ret = v->integer; return true;
        case VALUE_RELTIME: /* a number of seconds, to those that ask */
        case VALUE_REAL:
                if (!(v->real >= -9223372036854775808.0 && v->real < 9223372036854775808.0))
                        return false;
                *ret = (int64_t)v->real;
                return true;
        default: return false;
        }
}

static void print_real(struct buf *out, double v)
{
        if (isnan(v))
                buf_addz(out, "real(\"NaN\")");
        else if (isinf(v))
                buf_addz(out, v < 0 ? "real(\"-INF\")" : "real(\"INF\")");
        else if (v == 0)
                buf_addz(out, signbit(v) ? "-0.0" : "0.0");
        else
                buf_printf(out, "%1.15E", v);
}

void value_time_text(struct buf *out, const struct value *v)
{
        int64_t local = (int64_t)((uint64_t)v->integer + (uint64_t)(int64_t)v->offset);
        int offset = v->offset < 0 ? -v->offset : v->offset;
        time_t t = (time_t)local;
        struct tm tm;

        if (!gmtime_r(&t, &tm))
                return;
        buf_printf(out, "%04lld-%02d-%02dT%02d:%02d:%02d%c%02d:%02d", tm.tm_year + 1900LL, tm.tm_mon + 1,
                   tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, v->offset > 0 ? '+' : '-', offset / 3600,
                   offset / 60 % 60);
}

void value_interval_text(struct buf *out, double seconds)
{
        double rest = fabs(seconds), whole;
        unsigned ms = (unsigned)(modf(rest, &whole) * 1000 + 0.5);
        unsigned long long s;

        if (!(whole < 9e15)) {
                buf_printf(out, "%.0f", seconds);
                return;
        }
        s = (unsigned long long)whole + ms / 1000;
        ms %= 1000;
        buf_addz(out, seconds < 0 ? "-" : "");
        if (s >= 86400)
                buf_printf(out, "%llu+", s / 86400);
        if (s >= 3600)
                buf_printf(out, "%02llu:", s / 3600 % 24);
        if (s >= 60)
                buf_printf(out, "%02llu:", s / 60 % 60);
        buf_printf(out, "%02llu", s % 60);
        if (ms)
                buf_printf(out, ".%03u", ms);
}

static void print_list(struct buf *out, const struct value_list *list)
{
        if (!list->items) {
                print_bare_node(out, list->nd, list->symbols);
                return;
        }
        buf_addz(out, "{ ");
        for (uint32_t i = 0; i < list->n && !out->overflow; i++) {
                buf_addz(out, i ? "," : "");
                value_print(out, &list->items[i]);
        }
        buf_addz(out, " }");
}

void value_print(struct buf *out, const struct value *v)
{
        switch (v->type) {
        case VALUE_UNDEFINED: buf_addz(out, "undefined"); break;
        case VALUE_ERROR: buf_addz(out, "error"); break;
        case VALUE_BOOLEAN: buf_addz(out, v->boolean ? "true" : "false"); break;
        case VALUE_INTEGER: buf_printf(out, "%lld", (long long)v->integer); break;
        case VALUE_REAL: print_real(out, v->real); break;
        case VALUE_STRING: print_string(out, v->string); break;
        case VALUE_ABSTIME:
                buf_addz(out, "absTime(\"");
                value_time_text(out, v);
                buf_addz(out, "\")");
                break;
        case VALUE_RELTIME:
                buf_addz(out, "relTime(\"");
                value_interval_text(out, v->real);
                buf_addz(out, "\")");
                break;
        case VALUE_LIST: print_list(out, v->list); break;
        case VALUE_AD: ad_print(out, v->ad, CLASSAD_NEW, true); break;
        }
}
