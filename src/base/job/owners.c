#include "base/job/owners.h"

#include "base/mem.h"

/* Returns whether the entry, which is no exception, covers this owner. */
static bool names(struct str entry, struct str owner)
{
        ptrdiff_t at;

        if (str_eq(entry, owner))
                return true;
        if (entry.n < 2 || entry.p[0] != '*')
                return false;
        at = str_rfind(owner, '@');
        return at > 0 && str_eq(str_skip(entry, 1), str_skip(owner, (size_t)at));
}

static bool is_exception(struct str entry)
{
        return entry.n && entry.p[0] == '!';
}

struct str owners_deny(const struct owners *l, struct str owner)
{
        for (size_t i = 0; i < l->count; i++) {
                struct str rest = l->items[i], who;

                if (!is_exception(rest))
                        continue;
                rest = str_skip(rest, 1);
                str_cut(&rest, ' ', &who);
                if (str_eq(who, owner))
                        return rest.p ? rest : STR("");
        }
        return STR_NONE;
}

bool owners_allow(const struct owners *l, struct str owner)
{
        if (l->count == 0)
                return true;
        if (owners_deny(l, owner).p)
                return false;
        for (size_t i = 0; i < l->count; i++)
                if (!is_exception(l->items[i]) && names(l->items[i], owner))
                        return true;
        return false;
}

bool owners_are_many(const struct owners *l)
{
        struct str one = STR_NONE;

        if (l->count == 0)
                return true;
        for (size_t i = 0; i < l->count; i++) {
                struct str entry = l->items[i];

                if (is_exception(entry))
                        continue;
                if (entry.n && entry.p[0] == '*')
                        return true;
                if (one.p && !str_eq(one, entry))
                        return true;
                one = entry;
        }
        return false;
}

void owners_add(struct owners *l, struct str entry)
{
        l->items = mem_array(l->items, l->count + 1, sizeof(*l->items));
        l->items[l->count++] = str_make(mem_dup(entry.p ? entry.p : "", entry.n), entry.n);
}

/* The smaller of two entries, when one holds the other. */
static bool meet(struct str a, struct str b, struct str *ret)
{
        if (names(b, a))
                *ret = a;
        else if (names(a, b))
                *ret = b;
        else
                return false;
        return true;
}

void owners_cut(const struct owners *l, const struct owners *ceiling, struct owners *ret)
{
        bool anybody = false;

        *ret = (struct owners){0};
        for (size_t i = 0; i < ceiling->count && l->count == 0; i++)
                owners_add(ret, ceiling->items[i]);
        for (size_t i = 0; i < l->count; i++) {
                struct str one;

                if (is_exception(l->items[i]) || ceiling->count == 0) {
                        owners_add(ret, l->items[i]);
                        anybody |= !is_exception(l->items[i]);
                        continue;
                }
                for (size_t k = 0; k < ceiling->count; k++) {
                        if (is_exception(ceiling->items[k]) || !meet(l->items[i], ceiling->items[k], &one))
                                continue;
                        owners_add(ret, one);
                        anybody = true;
                }
        }
        for (size_t i = 0; i < ceiling->count && l->count; i++)
                if (is_exception(ceiling->items[i]))
                        owners_add(ret, ceiling->items[i]);
        if (l->count && !anybody)
                owners_add(ret, OWNERS_NOBODY);
}

static bool is_owner(struct str entry)
{
        ptrdiff_t at = str_rfind(entry, '@');

        if (at <= 0 || (size_t)at + 1 == entry.n || entry.p[0] == '!')
                return false;
        return entry.p[0] != '*' || at == 1;
}

bool owners_parse(struct str text, struct owners *ret)
{
        bool any = false, good = true;

        *ret = (struct owners){0};
        while (text.n) {
                size_t n = 0;
                struct str one;

                while (n < text.n && text.p[n] != ',' && text.p[n] != ' ' && text.p[n] != '\n')
                        n++;
                one = str_head(text, n);
                text = str_skip(text, n + (n < text.n));
                if (one.n == 0)
                        continue;
                if (str_eq(one, STR("any")))
                        any = true;
                else if (is_owner(one))
                        owners_add(ret, one);
                else
                        good = false;
        }
        if (any)
                owners_deinit(ret);
        return good;
}

void owners_deinit(struct owners *l)
{
        for (size_t i = 0; i < l->count; i++)
                free((char *)l->items[i].p);
        free(l->items);
        *l = (struct owners){0};
}
