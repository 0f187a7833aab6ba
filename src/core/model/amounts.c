#include "core/model/amounts.h"

#include <errno.h>
#include <inttypes.h>

struct str amounts_requested(struct str attribute)
{
        const struct str start = STR("Request");
        struct str name;

        if (attribute.n <= start.n || !str_istarts(attribute, start))
                return STR_NONE;
        name = str_skip(attribute, start.n);
        if (str_ieqz(name, "Cpus") || str_ieqz(name, "Memory") || str_ieqz(name, "Disk"))
                return STR_NONE;
        return name;
}

static bool amounts_has(const struct amounts *a, symbol request)
{
        for (unsigned i = 0; i < a->count; i++)
                if (a->v[i].request == request)
                        return true;
        return false;
}

bool amounts_names(struct symbols *symbols, const struct ad *ad, struct amounts *ret)
{
        ret->count = 0;
        for (; ad; ad = ad_parent(ad)) {
                const struct expr *e;
                uint32_t at = 0;
                symbol request;

                while (ad_next(ad, &at, &request, &e)) {
                        struct str name = amounts_requested(symbols_name(symbols, request));

                        if (!name.n || amounts_has(ret, request))
                                continue;
                        if (ret->count == AMOUNTS_MAX)
                                return false;
                        ret->v[ret->count++] =
                                (struct amount){.name = symbols_intern(symbols, name), .request = request};
                }
        }
        return true;
}

void amounts_print(struct buf *out, const struct symbols *symbols, const struct amounts *a)
{
        size_t start = out->n;

        for (unsigned i = 0; a && i < a->count; i++)
                if (a->v[i].n > 0)
                        buf_printf(out, "%s" STR_FMT "=%" PRId64, out->n > start ? " " : "",
                                   STR_ARG(symbols_name(symbols, a->v[i].name)), a->v[i].n);
}

int amounts_parse(struct symbols *symbols, struct str text, struct amounts *ret)
{
        struct str word, name;

        ret->count = 0;
        while (str_word(&text, &word)) {
                int64_t n;

                if (!str_cut(&word, '=', &name) || !name.n || str_to_i64(word, &n) || n < 0 ||
                    ret->count == AMOUNTS_MAX)
                        return -EBADMSG;
                ret->v[ret->count++] = (struct amount){.name = symbols_intern(symbols, name), .n = n};
        }
        return 0;
}
