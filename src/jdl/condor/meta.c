/* Meta jobs, which get the best of all places by a reservation (the core's Meta, MetaPrefer, CoAllocate). */
#include <errno.h>

#include "jdl/condor/reader.h"

static int prefer(struct reader *r, const struct entry *e)
{
        struct str text = entry_unquoted(e);
        double weight;

        if (str_ieqz(text, "time") || str_ieqz(text, "cost")) {
                attribute_default_string(r, "MetaPrefer", str_ieqz(text, "time") ? "time" : "cost");
                return 0;
        }
        if (e->late || str_to_double(text, &weight) || !(weight >= 0 && weight <= 1))
                return entry_fail(r, e, "'" STR_FMT "' is none of time, cost, and a number from 0 to 1",
                                  STR_ARG(str_head(text, 40)));
        return attribute_expression(r, "MetaPrefer", e, text);
}

int meta_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry meta = {0}, weight = {0}, parts = {0};
        int a = entry_get(r, "meta", &meta), b = entry_get(r, "prefer", &weight);
        int c = entry_get(r, "parts", &parts), rc = a < 0 ? a : b < 0 ? b : c < 0 ? c : 0;
        bool wanted = false;

        if (!rc && a)
                rc = entry_boolean(r, &meta, &wanted);
        if (!rc && c && !str_ieqz(entry_unquoted(&parts), "together"))
                return entry_fail(r, &parts,
                                  "parts can only be together: all jobs of the submit start at one time");
        if (!rc && b && !wanted && !c)
                return entry_fail(r, &weight, "prefer is for meta jobs: write meta = yes as well");
        if (!rc && wanted)
                attribute_default(r, "Meta", "true");
        if (!rc && c)
                attribute_default(r, "CoAllocate", "true");
        return !rc && b ? prefer(r, &weight) : rc;
}
