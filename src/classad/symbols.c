/* An open-addressing table of symbol numbers, at most half full, over an array of records. The hash folds
 * case by setting bit 5 of every byte, which makes some different characters alike; the comparison is exact.
 * It is keyed with the process's hash key, so that nobody can choose names that collide. Names stand in an
 * arena.
 *
 * The table also lends its parser the buffers that it works in, so that parsing a small ad is one allocation.
 */
#include "classad/symbols_private.h"

#include "base/map.h"
#include "base/mem.h"
#include "classad/functions.h"

static const char *const known[] = {
        [SYM_REQUIREMENTS] = "Requirements",
        [SYM_RANK] = "Rank",
        [SYM_CURRENT_TIME] = "CurrentTime",
        [SYM_MY] = "MY",
        [SYM_SELF] = "self",
        [SYM_TARGET] = "TARGET",
        [SYM_OTHER] = "other",
        [SYM_PARENT] = "parent",
        [SYM_ROOT] = "root",
        [SYM_TOPLEVEL] = "toplevel",
        [SYM_TRUE] = "true",
        [SYM_FALSE] = "false",
        [SYM_UNDEFINED] = "undefined",
        [SYM_ERROR] = "error",
        [SYM_IS] = "is",
        [SYM_ISNT] = "isnt",
};

static inline uint64_t mix(uint64_t a, uint64_t b)
{
        __uint128_t m = (__uint128_t)a * b;

        return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t load(const char *p, size_t n) /* n is 4 or 8 */
{
        uint64_t w = 0;

        memcpy(&w, p, n);
        return w;
}

/* The last word of a longer name overlaps the one before it, and those of a short name overlap each other. */
static inline uint32_t hash_name(const struct symbols *s, const char *p, size_t n)
{
        const uint64_t fold = 0x2020202020202020u, m = 0x9fb21c651e98df25u;
        uint64_t h = s->key ^ n, w;

        if (n >= 8) {
                for (size_t i = 0; i + 8 < n; i += 8)
                        h = mix(h ^ (load(p + i, 8) | fold), m);
                w = load(p + n - 8, 8);
        } else if (n >= 4) {
                w = load(p, 4) | load(p + n - 4, 4) << 32;
        } else {
                w = 0;
                for (size_t i = 0; i < n; i++)
                        w = w << 8 | (unsigned char)p[i];
        }
        h = mix(h ^ (w | fold), 0xd6e8feb86659fd93u);
        return (uint32_t)(h ^ h >> 32);
}

static inline bool same_name(struct str a, struct str b)
{
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0 || str_ieq(a, b));
}

static inline uint32_t probe(const struct symbols *s, struct str name, uint32_t hash)
{
        uint32_t at = hash & s->mask;

        while (s->slots[at].sym) {
                if (s->slots[at].hash == hash && same_name(s->names[s->slots[at].sym], name))
                        break;
                at = (at + 1) & s->mask;
        }
        return at;
}

static void grow(struct symbols *s)
{
        struct symbol_slot *old = s->slots;
        uint32_t old_mask = s->mask;

        s->mask = old_mask * 2 + 1;
        s->slots = mem_zalloc(((size_t)s->mask + 1) * sizeof(*s->slots));
        for (uint32_t i = 0; i <= old_mask; i++) {
                if (!old[i].sym)
                        continue;
                uint32_t at = old[i].hash & s->mask;
                while (s->slots[at].sym)
                        at = (at + 1) & s->mask;
                s->slots[at] = old[i];
        }
        free(old);
}

/* The names that every table begins with take the spelling of the first who uses them. */
static void take_spelling(struct symbols *s, symbol sym, struct str name)
{
        s->spelled[sym] = true;
        if (!str_eq(s->names[sym], name))
                s->names[sym] = arena_str(&s->arena, name);
}

symbol symbols_intern(struct symbols *s, struct str name)
{
        uint32_t hash = hash_name(s, name.p, name.n), at = probe(s, name, hash);
        symbol sym = s->slots[at].sym;

        if (sym) {
                if (sym <= s->known && !s->spelled[sym])
                        take_spelling(s, sym, name);
                return sym;
        }
        MEM_GROW(s->names, s->names_cap, s->count + 2);
        s->count++;
        s->names[s->count] = arena_str(&s->arena, name);
        s->slots[at] = (struct symbol_slot){hash, s->count};
        if (s->count * 2 > s->mask)
                grow(s);
        return s->count;
}

symbol symbols_find(const struct symbols *s, struct str name)
{
        return s->slots[probe(s, name, hash_name(s, name.p, name.n))].sym;
}

struct str symbols_name(const struct symbols *s, symbol sym)
{
        assert(sym > 0 && sym <= s->count);
        return s->names[sym];
}

uint32_t symbols_count(const struct symbols *s)
{
        return s->count;
}

struct symbols *symbols_new(void)
{
        struct symbols *s = mem_new(struct symbols);

        s->key = map_hash("symbols", 7);
        s->mask = 1023;
        s->slots = mem_zalloc(((size_t)s->mask + 1) * sizeof(*s->slots));
        s->code.symbols = s;
        MEM_GROW(s->kids, s->kids_cap, 64);
        MEM_GROW(s->entries, s->entries_cap, 64);
        for (symbol sym = 1; sym < SYM_FIRST_FUNCTION; sym++) {
                symbol got = symbols_intern(s, str_of(known[sym]));
                assert(got == sym);
        }
        for (unsigned i = 0; i < functions_count; i++) {
                symbol got = symbols_intern(s, str_of(functions[i].name));
                assert(got == SYM_FIRST_FUNCTION + i);
        }
        s->known = s->count;
        s->spelled = mem_zalloc(s->known + 1u);
        return s;
}

void symbols_free(struct symbols *s)
{
        if (!s)
                return;
        arena_deinit(&s->arena);
        code_deinit(&s->code);
        buf_deinit(&s->text);
        free(s->entries);
        free(s->kids);
        free(s->names);
        free(s->spelled);
        free(s->slots);
        free(s);
}
