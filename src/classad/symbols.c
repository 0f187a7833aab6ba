/* An open-addressing table of symbol numbers, at most half full, over an array of records. The hash folds
 * case by setting bit 5 of every byte, which makes some different characters alike; the comparison is exact.
 * It is keyed with the process's hash key, so that nobody can choose names that collide. Names that are kept
 * for good stand in an arena, others have memory of their own.
 *
 * A long name whose letters are in other cases than those of the first spelling is a record too, so that it
 * is held, charged and forgotten as names are. It is found by its exact bytes, and only as a spelling of its
 * name.
 *
 * The number of a name that was forgotten is given again only after FREE_MIN others: what still has it by
 * mistake finds nothing, rather than another's name.
 *
 * The table also lends its parser the buffers that it works in, so that parsing a small ad is one allocation.
 */
#include "classad/symbols_private.h"

#include "base/mem.h"
#include "classad/functions.h"

#define FREE_MIN      65536u
#define SPELLING_BITS 32u /* letters of a name whose spelling is a number of bits */

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

static inline uint64_t word_load(const char *p, size_t n) /* n is 4 or 8 */
{
        uint64_t w = 0;

        memcpy(&w, p, n);
        return w;
}

/* The last word of a longer name overlaps the one before it, and those of a short name overlap each other.
 * of: the name that this is another spelling of; 0: a name. */
static inline uint32_t hash_name(const struct symbols *s, const char *p, size_t n, symbol of)
{
        const uint64_t fold = of ? 0 : 0x2020202020202020u, m = 0x9fb21c651e98df25u;
        uint64_t h = s->key ^ n, w;

        if (n >= 8) {
                for (size_t i = 0; i + 8 < n; i += 8)
                        h = mix(h ^ (word_load(p + i, 8) | fold), m);
                w = word_load(p + n - 8, 8);
        } else if (n >= 4) {
                w = word_load(p, 4) | word_load(p + n - 4, 4) << 32;
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

static inline uint32_t probe(const struct symbols *s, struct str name, uint32_t hash, symbol of)
{
        uint32_t at = hash & s->mask;

        for (; s->slots[at].sym; at = (at + 1) & s->mask) {
                const struct symbol_record *r = &s->records[s->slots[at].sym];

                if (s->slots[at].hash == hash && r->of == of &&
                    (of ? str_eq(r->name, name) : same_name(r->name, name)))
                        break;
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

/* Gives a name that every table begins with the spelling of its first use. */
static void take_spelling(struct symbols *s, symbol sym, struct str name)
{
        s->spelled[sym] = true;
        if (!str_eq(s->records[sym].name, name))
                s->records[sym].name = arena_str(&s->arena, name);
}

/* ---- holders of names */

static void account_drop(struct symbols *s, struct symbols_account *a)
{
        if (a->uses || a->names)
                return;
        map_take(s->accounts, str_of(a->name));
        free(a);
}

void symbols_keep(struct symbols *s, symbol sym)
{
        struct symbol_record *r = &s->records[sym];
        struct str own = r->name;

        assert(sym > 0 && sym <= s->count && r->refs);
        if (r->refs == SYMBOL_KEPT)
                return;
        r->refs = SYMBOL_KEPT;
        r->account->names--;
        account_drop(s, r->account);
        r->account = NULL;
        r->name = arena_str(&s->arena, own);
        free((char *)own.p);
}

/* Makes the current use a holder of the name. */
static void hold(struct symbols *s, symbol sym)
{
        struct symbol_record *r = &s->records[sym];
        struct symbols_use *u = s->use;

        if (!u || r->refs == SYMBOL_KEPT || r->last == u)
                return;
        if (!u->account) {
                symbols_keep(s, sym);
                return;
        }
        r->last = u;
        if (set_add(&u->names, sym))
                r->refs++;
}

static symbol number_new(struct symbols *s)
{
        symbol sym = s->first_free;

        if (s->free_count <= FREE_MIN) {
                MEM_GROW(s->records, s->records_cap, s->count + 2u);
                sym = ++s->count;
        } else {
                s->first_free = s->records[sym].next_free;
                s->free_count--;
        }
        s->records[sym] = (struct symbol_record){0};
        return sym;
}

/* Frees a slot; slots behind it that would not be found over the gap move up. */
static void slot_free(struct symbols *s, uint32_t at)
{
        uint32_t next = at;

        for (;;) {
                next = (next + 1) & s->mask;
                if (!s->slots[next].sym)
                        break;
                if (((next - s->slots[next].hash) & s->mask) < ((next - at) & s->mask))
                        continue;
                s->slots[at] = s->slots[next];
                at = next;
        }
        s->slots[at] = (struct symbol_slot){0};
}

static void forget(struct symbols *s, symbol sym)
{
        struct symbol_record *r = &s->records[sym];

        slot_free(s, probe(s, r->name, hash_name(s, r->name.p, r->name.n, r->of), r->of));
        free((char *)r->name.p);
        r->account->names--;
        *r = (struct symbol_record){0};
        if (s->free_count)
                s->records[s->last_free].next_free = sym;
        else
                s->first_free = sym;
        s->last_free = sym;
        s->free_count++;
        s->used--;
}

/* ---- uses */

struct symbols_use *symbols_use_new(struct symbols *s, struct str account)
{
        struct symbols_use *u = mem_new(struct symbols_use);
        struct symbols_account *a = map_get(s->accounts, account);

        if (!a) {
                a = mem_zalloc(sizeof(*a) + account.n + 1);
                if (account.n)
                        memcpy(a->name, account.p, account.n);
                map_put(s->accounts, account, a);
        }
        a->uses++;
        u->symbols = s;
        u->account = a;
        u->max = UINT32_MAX;
        return u;
}

void symbols_use_limit(struct symbols_use *u, uint32_t max)
{
        u->max = max;
}

void symbols_use_free(struct symbols_use *u)
{
        struct symbols *s;

        if (!u)
                return;
        s = u->symbols;
        assert(s->use != u && u->account);
        SET_FOREACH (&u->names, sym) {
                struct symbol_record *r = &s->records[sym];
                struct symbols_account *paid = r->account;

                if (r->last == u)
                        r->last = NULL;
                if (r->refs == SYMBOL_KEPT || --r->refs)
                        continue;
                forget(s, (symbol)sym);
                if (paid != u->account)
                        account_drop(s, paid);
        }
        u->account->uses--;
        account_drop(s, u->account);
        set_deinit(&u->names);
        free(u);
}

struct symbols_use *symbols_use_set(struct symbols *s, struct symbols_use *u)
{
        struct symbols_use *was = s->use;

        s->use = u;
        return was;
}

bool symbols_use_full(const struct symbols_use *u)
{
        return u && u->account && u->account->names >= u->max;
}

struct symbols_use *symbols_use_keep(struct symbols *s)
{
        return &s->keep;
}

/* ---- names */

/* Adds a record to the free slot at `at`. */
static symbol add(struct symbols *s, struct str name, uint32_t hash, uint32_t at, symbol of)
{
        symbol sym = number_new(s);

        s->records[sym].of = of;
        if (s->use && s->use->account) {
                s->records[sym].name = str_make(mem_dup(name.p, name.n), name.n);
                s->records[sym].account = s->use->account;
                s->use->account->names++;
                hold(s, sym);
        } else {
                s->records[sym].name = arena_str(&s->arena, name);
                s->records[sym].refs = SYMBOL_KEPT;
        }
        s->slots[at] = (struct symbol_slot){hash, sym};
        s->used++;
        if (s->used * 2 > s->mask)
                grow(s);
        return sym;
}

symbol symbols_intern(struct symbols *s, struct str name)
{
        uint32_t hash = hash_name(s, name.p, name.n, 0), at = probe(s, name, hash, 0);
        symbol sym = s->slots[at].sym;

        if (!sym)
                return add(s, name, hash, at, 0);
        if (sym <= s->known && !s->spelled[sym])
                take_spelling(s, sym, name);
        hold(s, sym);
        return sym;
}

symbol symbols_find(const struct symbols *s, struct str name)
{
        return s->slots[probe(s, name, hash_name(s, name.p, name.n, 0), 0)].sym;
}

struct str symbols_name(const struct symbols *s, symbol sym)
{
        assert(sym > 0 && sym <= s->count);
        return s->records[sym].name;
}

uint32_t symbols_spelling(struct symbols *s, symbol sym, struct str written)
{
        struct str first = symbols_name(s, sym);
        uint32_t spelling = 0, hash, at;

        if (written.n != first.n || !memcmp(written.p, first.p, first.n)) /* most are alike */
                return 0;
        if (written.n > SPELLING_BITS) {
                hash = hash_name(s, written.p, written.n, sym);
                at = probe(s, written, hash, sym);
                spelling = s->slots[at].sym;
                if (spelling)
                        hold(s, spelling);
                else if (!s->frozen)
                        spelling = add(s, written, hash, at, sym);
                return spelling;
        }
        for (size_t i = 0; i < written.n; i++)
                if (first.p[i] != written.p[i])
                        spelling |= 1u << i;
        return spelling;
}

bool symbols_known(const struct symbols *s, struct str written)
{
        symbol sym = symbols_find(s, written);
        uint32_t hash;

        if (!sym || s->frozen || written.n <= SPELLING_BITS || str_eq(s->records[sym].name, written))
                return sym != 0;
        hash = hash_name(s, written.p, written.n, sym);
        return s->slots[probe(s, written, hash, sym)].sym != 0;
}

void symbols_print(const struct symbols *s, symbol sym, uint32_t spelling, struct buf *out)
{
        struct str first = symbols_name(s, sym);
        size_t i = 0;

        if (first.n > SPELLING_BITS && spelling) {
                buf_str(out, symbols_name(s, spelling));
                return;
        }
        for (; spelling && i < first.n; i++, spelling >>= 1)
                buf_char(out, (char)(first.p[i] ^ (spelling & 1 ? 0x20 : 0)));
        buf_str(out, str_skip(first, i));
}

uint32_t symbols_used(const struct symbols *s)
{
        return s->used;
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
        s->accounts = map_new();
        s->keep.symbols = s;
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
        for (symbol sym = 1; sym <= s->count; sym++)
                if (s->records[sym].account)
                        free((char *)s->records[sym].name.p);
        map_free_values(s->accounts);
        arena_deinit(&s->arena);
        code_deinit(&s->code);
        buf_deinit(&s->text);
        free(s->entries);
        free(s->kids);
        free(s->records);
        free(s->spelled);
        free(s->slots);
        free(s);
}
