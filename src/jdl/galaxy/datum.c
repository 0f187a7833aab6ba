#include "jdl/galaxy/datum.h"

#include <math.h>

struct datum *datum_new(struct arena *a, enum datum_kind kind)
{
        struct datum *v = arena_alloc(a, sizeof(*v));

        *v = (struct datum){.kind = kind};
        return v;
}

struct datum *datum_none(struct arena *a)
{
        struct datum *v = datum_new(a, DATUM_NONE);

        v->written = true;
        v->text = STR("None");
        return v;
}

struct datum *datum_text(struct arena *a, struct str text)
{
        struct datum *v = datum_new(a, DATUM_TEXT);

        v->text = str_make(arena_dup(a, text.p ? text.p : "", text.n), text.n);
        return v;
}

struct datum *datum_int(struct arena *a, int64_t n)
{
        struct datum *v = datum_new(a, DATUM_INT);

        v->integer = n;
        return v;
}

struct datum *datum_float(struct arena *a, double d)
{
        struct datum *v = datum_new(a, DATUM_FLOAT);

        v->number = d;
        return v;
}

struct datum *datum_of_number(struct arena *a, double d, bool whole)
{
        return whole && fabs(d) < 9e15 ? datum_int(a, (int64_t)d) : datum_float(a, d);
}

struct datum *datum_function(struct arena *a, struct str name)
{
        struct datum *v = datum_text(a, name);

        v->kind = DATUM_FUNCTION;
        return v;
}

struct datum *datum_section(struct arena *a)
{
        struct datum *v = datum_new(a, DATUM_MAP);

        v->section = true;
        return v;
}

struct datum *datum_collection(struct arena *a)
{
        struct datum *v = datum_new(a, DATUM_LIST);

        v->collection = true;
        return v;
}

struct datum *datum_bool(struct arena *a, bool b)
{
        struct datum *v = datum_new(a, DATUM_BOOL);

        v->integer = b;
        return v;
}

bool datum_add(struct arena *a, struct datum *list, struct datum *item)
{
        if (list->n == DATUM_ITEMS_MAX)
                return false;
        if (list->n == list->cap) { /* the old array stays in the arena */
                size_t cap = list->cap ? list->cap * 2 : 8;
                struct datum **items = arena_alloc(a, cap * sizeof(*items));
                struct str *keys = arena_alloc(a, cap * sizeof(*keys));

                if (list->n) {
                        memcpy(items, list->items, list->n * sizeof(*items));
                        memcpy(keys, list->keys, list->n * sizeof(*keys));
                }
                list->items = items;
                list->keys = keys;
                list->cap = cap;
        }
        list->keys[list->n] = STR_NONE;
        list->items[list->n++] = item;
        return true;
}

bool datum_put(struct arena *a, struct datum *map, struct str key, struct datum *item)
{
        for (size_t i = 0; i < map->n; i++)
                if (str_eq(map->keys[i], key)) {
                        map->items[i] = item;
                        return true;
                }
        if (!datum_add(a, map, item))
                return false;
        map->keys[map->n - 1] = arena_str(a, key);
        return true;
}

struct datum *datum_get(const struct datum *map, struct str key)
{
        bool has_keys = map && (map->kind == DATUM_MAP || map->collection);

        for (size_t i = 0; has_keys && i < map->n; i++)
                if (str_eq(map->keys[i], key))
                        return map->items[i];
        return NULL;
}

static struct datum *find_within(const struct datum *map, struct str key, unsigned depth)
{
        struct datum *found = datum_get(map, key);

        if (!map || map->kind != DATUM_MAP || depth == DATUM_DEPTH_MAX)
                return NULL;
        for (size_t i = 0; !found && i < map->n; i++)
                if (map->items[i]->section)
                        found = find_within(map->items[i], key, depth + 1);
        return found;
}

struct datum *datum_find(const struct datum *map, struct str key)
{
        return find_within(map, key, 0);
}

struct datum *datum_attribute(const struct datum *v, struct str name)
{
        struct datum *found = datum_get(v->attributes, name);

        if (!found)
                found = v->collection ? datum_get(v, name) : datum_find(v, name);
        return found;
}

void datum_set_attribute(struct arena *a, struct datum *v, const char *name, struct datum *value)
{
        if (!v->attributes)
                v->attributes = datum_new(a, DATUM_MAP);
        datum_put(a, v->attributes, str_of(name), value);
}

bool datum_true(const struct datum *v)
{
        switch (v->kind) {
        case DATUM_NONE: return false;
        case DATUM_BOOL:
        case DATUM_INT: return v->integer != 0;
        case DATUM_FLOAT: return v->number < 0 || v->number > 0;
        case DATUM_TEXT: return v->text.n > 0;
        case DATUM_FUNCTION: return true;
        default: return v->n > 0;
        }
}

/* Writes a float similarly to Python's repr: the shortest %g that reads back as the same value. */
static void write_float(double d, struct buf *out)
{
        BUF_CLEANUP struct buf b = {0};
        double back = 0;

        if (fabs(d) < 1e16 &&
            !(d < floor(d) || d > floor(d))) { /* %g switches to exponents earlier than Python */
                buf_printf(out, "%.1f", d);
                return;
        }
        for (int digits = 6; digits <= 17; digits++) {
                buf_reset(&b);
                buf_printf(&b, "%.*g", digits, d);
                if (str_to_double(buf_view(&b), &back) == 0 && !(back < d || back > d))
                        break;
        }
        buf_str(out, buf_view(&b));
        if (str_find(buf_view(&b), '.') < 0 && str_find(buf_view(&b), 'e') < 0 && isfinite(d))
                buf_addz(out, ".0");
}

static bool write_at(const struct datum *v, struct buf *out, bool quoted, unsigned depth)
{
        if (depth > DATUM_DEPTH_MAX)
                return false;
        if (v->written || v->kind == DATUM_TEXT) {
                buf_addz(out, quoted ? "'" : "");
                buf_str(out, v->text);
                buf_addz(out, quoted ? "'" : "");
                return true;
        }
        switch (v->kind) {
        case DATUM_NONE: buf_addz(out, "None"); return true;
        case DATUM_BOOL: buf_addz(out, v->integer ? "True" : "False"); return true;
        case DATUM_INT: buf_printf(out, "%lld", (long long)v->integer); return true;
        case DATUM_FLOAT: write_float(v->number, out); return true;
        case DATUM_LIST:
                if (v->collection)
                        return false;
                buf_char(out, v->tuple ? '(' : '[');
                for (size_t i = 0; i < v->n; i++) {
                        buf_addz(out, i ? ", " : "");
                        if (!write_at(v->items[i], out, true, depth + 1))
                                return false;
                }
                buf_addz(out, v->tuple ? v->n == 1 ? ",)" : ")" : "]");
                return true;
        default: return false;
        }
}

bool datum_write(const struct datum *v, struct buf *out)
{
        return write_at(v, out, false, 0);
}

bool datum_number(const struct datum *v, double *ret)
{
        if (v->kind == DATUM_INT || v->kind == DATUM_BOOL)
                *ret = (double)v->integer;
        else if (v->kind == DATUM_FLOAT)
                *ret = v->number;
        else
                return false;
        return true;
}

/* A parameter of Galaxy equals a text if its written form does, and anything else by its value. */
static bool equal_at(const struct datum *a, const struct datum *b, unsigned depth)
{
        BUF_CLEANUP struct buf x = {.max = 1u << 20}, y = {.max = 1u << 20};
        double p, q;

        if (a->kind == DATUM_TEXT || b->kind == DATUM_TEXT) {
                bool plain = (a->kind == DATUM_TEXT || a->written || a->kind == DATUM_INT ||
                              a->kind == DATUM_FLOAT) &&
                             (b->kind == DATUM_TEXT || b->written || b->kind == DATUM_INT ||
                              b->kind == DATUM_FLOAT);

                return plain && datum_write(a, &x) && datum_write(b, &y) &&
                       str_eq(buf_view(&x), buf_view(&y));
        }
        if (datum_number(a, &p) && datum_number(b, &q))
                return !(p < q || p > q);
        if (a->kind != b->kind || a->n != b->n || depth > DATUM_DEPTH_MAX)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!equal_at(a->items[i], b->items[i], depth + 1) || !str_eq(a->keys[i], b->keys[i]))
                        return false;
        return true;
}

bool datum_equal(const struct datum *a, const struct datum *b)
{
        return equal_at(a, b, 0);
}

bool datum_compare(const struct datum *a, const struct datum *b, int *ret)
{
        double p, q;

        if (datum_number(a, &p) && datum_number(b, &q))
                *ret = p < q ? -1 : p > q;
        else if (a->kind == DATUM_TEXT && b->kind == DATUM_TEXT)
                *ret = str_cmp(a->text, b->text);
        else
                return false;
        return true;
}

const char *datum_kind_name(const struct datum *v)
{
        static const char *const names[] = {"None", "bool", "int",  "float",
                                            "str",  "list", "dict", "function"};

        return names[v->kind];
}
