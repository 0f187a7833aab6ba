#include "jdl/galaxy/formats.h"

struct format {
        const char *name, *of;
        bool alias; /* the name is an alias of `of`: each is a kind of the other */
};

/* Sorted by name; a format with several parents has several rows. */
static const struct format formats[] = {
#define FORMAT(name, of, alias) {name, of, alias},
#include "jdl/galaxy/formats.def"
#undef FORMAT
};

/* Returns the first row of a name; NULL: there is none. */
static const struct format *find(struct str name)
{
        size_t low = 0, high = sizeof(formats) / sizeof(*formats);

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (str_cmp(str_of(formats[middle].name), name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < sizeof(formats) / sizeof(*formats) && str_eqz(name, formats[low].name) ? &formats[low]
                                                                                            : NULL;
}

bool format_is(struct str format, struct str of)
{
        const struct format *f = find(format), *other = find(of);

        if (f && f->alias)
                return format_is(str_of(f->of), of);
        if (other && other->alias)
                return format_is(format, str_of(other->of));
        if (str_eq(format, of))
                return true;
        for (; f && f < formats + sizeof(formats) / sizeof(*formats) && str_eqz(format, f->name); f++)
                if (format_is(str_of(f->of), of))
                        return true;
        return false;
}
