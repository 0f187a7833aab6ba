#include "base/format/quantity.h"

#include <ctype.h>
#include <errno.h>

struct unit {
        const char *name;
        double factor;
};
#define UNITS_END                                                                                            \
        {                                                                                                    \
                NULL, 0                                                                                      \
        }
static const struct unit sizes[] = {{"", 1},
                                    {"B", 1},
                                    {"K", 1024},
                                    {"KB", 1024},
                                    {"KiB", 1024},
                                    {"M", 1 << 20},
                                    {"MB", 1 << 20},
                                    {"MiB", 1 << 20},
                                    {"G", 1 << 30},
                                    {"GB", 1 << 30},
                                    {"GiB", 1 << 30},
                                    {"T", 1099511627776.0},
                                    {"TB", 1099511627776.0},
                                    {"TiB", 1099511627776.0},
                                    UNITS_END};
static const struct unit times[] = {{"", 1000},     {"ms", 1},       {"s", 1000}, {"m", 60000},
                                    {"h", 3600000}, {"d", 86400000}, UNITS_END};
static const struct unit thousandths[] = {{"", 1000}, UNITS_END};
static const struct unit ones[] = {{"", 1}, UNITS_END};

static int read_quantity(struct str text, const struct unit *units, uint64_t *ret)
{
        size_t n = 0;
        double v;

        while (n < text.n && (isdigit((unsigned char)text.p[n]) || text.p[n] == '.'))
                n++;
        if (n == 0 || str_to_double(str_head(text, n), &v) < 0)
                return -EINVAL;
        for (const struct unit *u = units; u->name; u++)
                if (str_ieqz(str_trim(str_skip(text, n)), u->name)) {
                        if (v * u->factor > 9e18)
                                return -ERANGE;
                        *ret = (uint64_t)(v * u->factor);
                        return 0;
                }
        return -EINVAL;
}

int quantity_size(struct str text, uint64_t *ret_bytes)
{
        return read_quantity(text, sizes, ret_bytes);
}

int quantity_duration(struct str text, uint64_t *ret_ms)
{
        return read_quantity(text, times, ret_ms);
}

int quantity_count(struct str text, uint64_t *ret)
{
        return read_quantity(text, ones, ret);
}

int quantity_thousandths(struct str text, uint64_t *ret)
{
        return read_quantity(text, thousandths, ret);
}
