/* Entries are in a map by name, for orders, and in a sorted list, so that snapshots and listings have one
 * order. */
#include "bank/registry.h"

#include <stdlib.h>
#include <string.h>

#include "bank/bank.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"

struct registry {
        enum registry_kind kind;
        struct map *by_name;
        struct registry_entry *first;
};

struct registry *registry_new(enum registry_kind kind)
{
        struct registry *r = mem_new(struct registry);

        r->kind = kind;
        r->by_name = map_new();
        return r;
}

static void entry_free(struct registry_entry *x)
{
        free(x->name);
        free(x->text);
        free(x->arch);
        free(x->opsys);
        free(x);
}

void registry_free(struct registry *r)
{
        if (!r)
                return;
        while (r->first)
                registry_remove(r, r->first);
        map_free(r->by_name);
        free(r);
}

const char *registry_word(const struct registry *r)
{
        return r->kind == REGISTRY_USERS ? "user" : "machine";
}

const char *registry_name_form(const struct registry *r)
{
        return r->kind == REGISTRY_USERS ? "NAME@DOMAIN" : "AGENT or AGENT/QUEUE";
}

/* Names stand in lists with commas; a slash separates the queue, and an @ the domain. */
bool registry_name_ok(const struct registry *r, struct str name)
{
        char separator = r->kind == REGISTRY_USERS ? '@' : '/';
        ptrdiff_t at = str_find(name, separator);

        if (name.n == 0 || name.n > BANK_NAME_MAX || at == 0 || at == (ptrdiff_t)name.n - 1 ||
            (at > 0 && str_find(str_skip(name, (size_t)at + 1), separator) >= 0) ||
            (at < 0 && r->kind == REGISTRY_USERS))
                return false;
        for (size_t i = 0; i < name.n; i++)
                if ((unsigned char)name.p[i] <= ' ' || name.p[i] == 0x7f || name.p[i] == ',' ||
                    name.p[i] == '*')
                        return false;
        return true;
}

bool registry_is_inactive(const struct registry *r, struct str name)
{
        const struct registry_entry *x = registry_get(r, name);

        return x && x->inactive;
}

size_t registry_count(const struct registry *r)
{
        return map_count(r->by_name);
}

const struct registry_entry *registry_first(const struct registry *r)
{
        return r->first;
}

struct registry_entry *registry_get(const struct registry *r, struct str name)
{
        return name.n ? map_get(r->by_name, name) : NULL;
}

enum registry_answer registry_ask_place(const struct registry *r, struct str place)
{
        ptrdiff_t slash = str_find(place, '/');
        const struct registry_entry *whole = registry_get(r, place),
                                    *agent = slash > 0 ? registry_get(r, str_head(place, (size_t)slash))
                                                       : NULL;

        if (!r->first)
                return REGISTRY_ACTIVE;
        if (!whole && !agent)
                return REGISTRY_UNKNOWN;
        return (whole && whole->inactive) || (agent && agent->inactive) ? REGISTRY_INACTIVE : REGISTRY_ACTIVE;
}

struct registry_entry *registry_add(struct registry *r, struct str name)
{
        struct registry_entry *x = mem_new(struct registry_entry), **at = &r->first;

        x->name = str_dupz(name);
        while (*at && strcmp((*at)->name, x->name) < 0)
                at = &(*at)->next;
        x->next = *at;
        *at = x;
        map_put(r->by_name, name, x);
        return x;
}

void registry_remove(struct registry *r, struct registry_entry *x)
{
        struct registry_entry **at = &r->first;

        while (*at != x)
                at = &(*at)->next;
        *at = x->next;
        map_take(r->by_name, str_of(x->name));
        entry_free(x);
}

void registry_pack(const struct registry *r, struct buf *out)
{
        pack_u64(out, registry_count(r));
        for (const struct registry_entry *x = r->first; x; x = x->next) {
                const char *const texts[] = {x->name, x->text, x->arch, x->opsys};

                for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                        pack_str(out, str_of(texts[i]));
                pack_u64(out, x->inactive);
        }
}

void registry_unpack(struct registry *r, struct unpack *in)
{
        for (uint64_t n = unpack_max(in, REGISTRY_MAX); n > 0 && !in->bad; n--) {
                struct str name = unpack_str(in), texts[3];
                bool inactive;
                struct registry_entry *x;

                for (size_t i = 0; i < 3; i++)
                        texts[i] = unpack_str(in);
                inactive = unpack_max(in, 1);
                in->bad |= !registry_name_ok(r, name) || registry_get(r, name);
                if (in->bad)
                        return;
                x = registry_add(r, name);
                x->text = texts[0].n ? str_dupz(texts[0]) : NULL;
                x->arch = texts[1].n ? str_dupz(texts[1]) : NULL;
                x->opsys = texts[2].n ? str_dupz(texts[2]) : NULL;
                x->inactive = inactive;
        }
}
