#include "classad/sense.h"

#include <errno.h>

#include "base/job/macro.h"

#define ANY 9e18 /* no limit but that of the type */

struct range {
        const char *attribute;
        double max;
        const char *unit; /* said behind the range */
};
/* The times are limited as in core/estimate/estimate.c. */
static const struct range ranges[] = {
        {"RequestCpus", ANY, ""},     {"RequestMemory", ANY, " (MiB)"}, {"RequestDisk", ANY, " (KiB)"},
        {"RequestGPUs", ANY, ""},     {"ExpectedRunTime", 1e9, " (s)"}, {"BetterPlaceWait", 1e9, " (s)"},
        {"PriceWeight", ANY, " (s)"},
};

static const struct range *range_of(struct str attribute)
{
        for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
                if (str_ieqz(attribute, ranges[i].attribute))
                        return &ranges[i];
        return NULL;
}

int sense_check(struct str attribute, const struct expr *x, struct err *err)
{
        const struct range *range = range_of(attribute);
        BUF_CLEANUP struct buf shown = {0};
        struct value v;
        double n = 0;
        bool number;

        if ((!range && !str_istarts(attribute, STR("Request"))) || !expr_literal(x, &v) ||
            v.type == VALUE_UNDEFINED)
                return 0;
        number = value_to_double(&v, &n);
        if (range ? number && n >= 0 && n <= range->max : !number || n >= 0)
                return 0;
        value_print(&shown, &v);
        if (range && range->max < ANY)
                return err_set(err, -EINVAL, "%s is not a number from 0 to %.0f%s", buf_z(&shown), range->max,
                               range->unit);
        return err_set(err, -EINVAL, "%s is not a number of 0 or more%s", buf_z(&shown),
                       range ? range->unit : "");
}

int sense_check_sizes(struct str sizes, struct str inputs, struct err *err)
{
        unsigned inputs_n = 0, n = 0;
        struct str one;
        uint64_t bytes;

        while (inputs.n > 0 && macro_cut(&inputs, ',', &one))
                inputs_n++;
        while (macro_cut(&sizes, ',', &one)) {
                n++;
                if (one.n == 0)
                        continue;
                if (str_to_u64(one, &bytes) != 0)
                        return err_set(err, -EINVAL,
                                       "'" STR_FMT "' is not a number of bytes; leave out what is not known: "
                                       "\"100,,300\"",
                                       STR_ARG(str_head(one, 60)));
                if (n > inputs_n)
                        return err_set(err, -EINVAL, "there is a size %u, and the inputs are %u", n,
                                       inputs_n);
        }
        return 0;
}
