#include "jdl/form/placement_words.h"

#include <ctype.h>

const char *placement_type(struct str name)
{
        static const char *const names[] = {"transfer", "rm",      "mkdir",  "stage",
                                            "verify",   "reserve", "release"};

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (str_ieqz(name, names[i]))
                        return names[i];
        return NULL;
}

bool placement_seconds(struct str text, uint64_t *ret)
{
        static const struct {
                const char *name;
                uint64_t seconds;
        } units[] = {{"s", 1},        {"second", 1},   {"seconds", 1}, {"m", 60},
                     {"minute", 60},  {"minutes", 60}, {"h", 3600},    {"hour", 3600},
                     {"hours", 3600}, {"d", 86400},    {"day", 86400}, {"days", 86400}};
        size_t n = 0;
        uint64_t number;

        text = str_trim(text);
        while (n < text.n && isdigit((unsigned char)text.p[n]))
                n++;
        struct str unit = str_trim(str_skip(text, n));
        if (n == 0 || n > 12 || str_to_u64(str_head(text, n), &number) != 0)
                return false;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
                if (unit.n == 0 || str_ieqz(unit, units[i].name)) {
                        *ret = number * (unit.n ? units[i].seconds : 1);
                        return true;
                }
        return false;
}

bool placement_alternatives(struct str text)
{
        struct str one;

        if (!str_trim(text).n)
                return false;
        while (str_cut(&text, ',', &one)) {
                struct str to = str_trim(one), from;

                if (!str_cut(&to, '-', &from) || !str_trim(from).n || !str_trim(to).n ||
                    str_find(one, '/') >= 0)
                        return false;
        }
        return true;
}

bool placement_checksum(struct str text)
{
        static const struct {
                const char *name;
                size_t least, most;
        } types[] = {{"sha256", 64, 64}, {"adler32", 1, 8}, {"md5", 32, 32}};
        struct str hex = str_trim(text), name;

        if (!str_cut(&hex, ':', &name))
                return false;
        for (size_t i = 0; i < hex.n; i++)
                if (!isxdigit((unsigned char)hex.p[i]))
                        return false;
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
                if (str_ieqz(name, types[i].name))
                        return hex.n >= types[i].least && hex.n <= types[i].most;
        return false;
}
