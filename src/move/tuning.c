/* See tuning.h. */
#include "move/tuning.h"

#include <limits.h>

#include "base/format/quantity.h"
#include "base/mem.h"

#define BLOCK_MIN 1024u
#define BLOCK_MAX (2u << 20) /* what libcurl takes for sending */

static bool read_word(struct str word, struct tuning *t)
{
        struct str value = word, name;
        uint64_t n = 0;

        if (!str_cut(&value, '=', &name) || quantity_size(value, &n) != 0 || n == 0)
                return false;
        if (str_eqz(name, "streams") && n <= TUNING_STREAMS_MAX)
                t->streams = (unsigned)n;
        else if (str_eqz(name, "buffer") && n <= INT_MAX)
                t->buffer = n;
        else if (str_eqz(name, "block") && n >= BLOCK_MIN && n <= BLOCK_MAX)
                t->block = n;
        else
                return false;
        return true;
}

bool tuning_parse(struct str text, struct tuning *ret)
{
        struct tuning t = {0};
        struct str prefix, word;

        if (!str_word(&text, &prefix) || str_search(prefix, STR("://")) <= 0)
                return false;
        while (str_word(&text, &word))
                if (!read_word(word, &t))
                        return false;
        t.prefix = str_dupz(prefix);
        *ret = t;
        return true;
}

const struct tuning *tuning_of(const struct tuning *list, size_t count, struct str url)
{
        const struct tuning *best = NULL;

        for (size_t i = 0; i < count; i++)
                if (str_istarts(url, str_of(list[i].prefix)) &&
                    (!best || strlen(list[i].prefix) > strlen(best->prefix)))
                        best = &list[i];
        return best;
}
