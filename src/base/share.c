#include "base/share.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

struct share {
        size_t places, taken;
        struct map *holders; /* to the number that one has, never 0 */
};

struct share *share_new(size_t places)
{
        struct share *s = mem_new(struct share);

        s->places = places;
        s->holders = map_new();
        return s;
}

void share_free(struct share *s)
{
        if (!s)
                return;
        map_free_values(s->holders);
        free(s);
}

bool share_take(struct share *s, struct str holder)
{
        size_t *has = map_get(s->holders, holder);

        if (s->taken >= s->places || (has && *has >= s->places - s->taken))
                return false;
        if (!has) {
                has = mem_new(size_t);
                map_put(s->holders, holder, has);
        }
        (*has)++;
        s->taken++;
        return true;
}

void share_give(struct share *s, struct str holder)
{
        size_t *has = map_get(s->holders, holder);

        assert(has && s->taken);
        s->taken--;
        if (--*has == 0)
                free(map_take(s->holders, holder));
}

size_t share_taken(const struct share *s)
{
        return s->taken;
}
