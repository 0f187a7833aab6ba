#include "run/drover/remote_number.h"

static double real_of(const json_t *o, const char *name)
{
        const json_t *v = json_object_get(o, name);

        return json_is_number(v) ? json_number_value(v) : 0;
}

int64_t remote_number_within(const json_t *o, const char *name, int64_t least, int64_t most)
{
        const json_t *v = json_object_get(o, name);
        double d = real_of(o, name);
        int64_t n = json_integer_value(v);

        if (json_is_real(v)) /* 2^63 does not fit into int64_t; comparisons with NaN are false */
                n = d >= 0x1p63 ? INT64_MAX : d >= -0x1p63 ? (int64_t)d : d < 0 ? INT64_MIN : 0;
        return n < least ? least : n > most ? most : n;
}

uint64_t remote_number_time(const json_t *o, const char *name, unsigned unit_ms)
{
        double ms = real_of(o, name) * unit_ms;

        return ms > 0 ? ms < (double)REMOTE_TIME_MAX ? (uint64_t)ms : REMOTE_TIME_MAX : 0;
}
