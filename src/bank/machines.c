/* Machines are in a map by name, for orders, and in a sorted list, so that snapshots and listings have one
 * order. */
#include "bank/machines.h"

#include <stdlib.h>
#include <string.h>

#include "bank/bank.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"

struct machines {
        struct map *by_name;
        struct machine *first;
};

struct machines *machines_new(void)
{
        struct machines *m = mem_new(struct machines);

        m->by_name = map_new();
        return m;
}

static void machine_free(struct machine *x)
{
        free(x->name);
        free(x->text);
        free(x->arch);
        free(x->opsys);
        free(x);
}

void machines_free(struct machines *m)
{
        if (!m)
                return;
        while (m->first)
                machines_remove(m, m->first);
        map_free(m->by_name);
        free(m);
}

/* Names stand in lists with commas, and a slash separates the queue. */
bool machines_name_ok(struct str name)
{
        ptrdiff_t slash = str_find(name, '/');

        if (name.n == 0 || name.n > BANK_NAME_MAX || slash == 0 || slash == (ptrdiff_t)name.n - 1 ||
            (slash > 0 && str_find(str_skip(name, (size_t)slash + 1), '/') >= 0))
                return false;
        for (size_t i = 0; i < name.n; i++)
                if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f || name.p[i] == ',' ||
                    name.p[i] == '*')
                        return false;
        return true;
}

size_t machines_count(const struct machines *m)
{
        return map_count(m->by_name);
}

const struct machine *machines_first(const struct machines *m)
{
        return m->first;
}

struct machine *machines_get(const struct machines *m, struct str name)
{
        return name.n ? map_get(m->by_name, name) : NULL;
}

enum machines_answer machines_ask(const struct machines *m, struct str place)
{
        ptrdiff_t slash = str_find(place, '/');
        const struct machine *whole = machines_get(m, place),
                             *agent = slash > 0 ? machines_get(m, str_head(place, (size_t)slash)) : NULL;

        if (!m->first)
                return MACHINES_ACTIVE;
        if (!whole && !agent)
                return MACHINES_UNKNOWN;
        return (whole && whole->inactive) || (agent && agent->inactive) ? MACHINES_INACTIVE : MACHINES_ACTIVE;
}

struct machine *machines_add(struct machines *m, struct str name)
{
        struct machine *x = mem_new(struct machine), **at = &m->first;

        x->name = str_dupz(name);
        while (*at && strcmp((*at)->name, x->name) < 0)
                at = &(*at)->next;
        x->next = *at;
        *at = x;
        map_put(m->by_name, name, x);
        return x;
}

void machines_remove(struct machines *m, struct machine *x)
{
        struct machine **at = &m->first;

        while (*at != x)
                at = &(*at)->next;
        *at = x->next;
        map_take(m->by_name, str_of(x->name));
        machine_free(x);
}

void machines_pack(const struct machines *m, struct buf *out)
{
        pack_u64(out, machines_count(m));
        for (const struct machine *x = m->first; x; x = x->next) {
                const char *const texts[] = {x->name, x->text, x->arch, x->opsys};

                for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                        pack_str(out, str_of(texts[i]));
                pack_u64(out, x->inactive);
        }
}

void machines_unpack(struct machines *m, struct unpack *in)
{
        for (uint64_t n = unpack_max(in, MACHINES_MAX); n > 0 && !in->bad; n--) {
                struct str name = unpack_str(in), texts[3];
                bool inactive;
                struct machine *x;

                for (size_t i = 0; i < 3; i++)
                        texts[i] = unpack_str(in);
                inactive = unpack_max(in, 1);
                in->bad |= !machines_name_ok(name) || machines_get(m, name);
                if (in->bad)
                        return;
                x = machines_add(m, name);
                x->text = texts[0].n ? str_dupz(texts[0]) : NULL;
                x->arch = texts[1].n ? str_dupz(texts[1]) : NULL;
                x->opsys = texts[2].n ? str_dupz(texts[2]) : NULL;
                x->inactive = inactive;
        }
}
