/* An ad that was parsed is one block of memory: itself, its entries, their code, and a hash index when there
 * are enough of them to need one. The first change takes it apart into pieces that can grow. Replaced code is
 * waste until there is more of it than of the rest; then the code is written anew. A number that replaces a
 * number is written in its place. */
#include "classad/ad.h"

#include "base/mem.h"
#include "classad/build.h"
#include "classad/parse.h"

struct ad *ad_new(struct symbols *symbols)
{
        struct ad *ad = mem_new(struct ad);

        ad->magic = AD_MAGIC;
        ad->symbols = symbols;
        return ad;
}

void ad_free(struct ad *ad)
{
        if (!ad)
                return;
        assert(ad->magic == AD_MAGIC);
        ad->magic = 0;
        if (!ad->packed) {
                free(ad->entries);
                free(ad->code);
                free(ad->index);
        }
        free(ad);
}

struct symbols *ad_symbols(const struct ad *ad)
{
        return ad->symbols;
}

/* Allocates an ad in one block with its entries, code and index; the caller fills entries and code. */
static struct ad *packed_new(struct symbols *symbols, uint32_t count, uint32_t code_n, uint32_t index_n)
{
        size_t room = entries_size(count), index_size = (size_t)index_n * sizeof(uint32_t);
        struct ad *ad = mem_alloc(sizeof(*ad) + room + code_n + index_size);
        char *p = (char *)(ad + 1);

        *ad = (struct ad){.magic = AD_MAGIC, .count = count, .packed = true, .symbols = symbols};
        ad->entries = (struct entry *)(void *)p;
        ad->entries_cap = count;
        ad->code = p + room;
        ad->code_n = ad->code_cap = code_n;
        if (index_n) {
                ad->index = (uint32_t *)(void *)(ad->code + code_n);
                ad->index_mask = index_n - 1;
        }
        return ad;
}

struct ad *ad_pack(struct symbols *symbols, const struct entry *entries, size_t entries_n,
                   const struct code *code)
{
        uint32_t n = (uint32_t)entries_n, index_n = 0;
        struct ad *ad;

        if (n >= AD_INDEX_MIN)
                index_n = entries_index_mask(n) + 1;
        ad = packed_new(symbols, n, code->n, index_n);
        if (n)
                memcpy(ad->entries, entries, n * sizeof(struct entry));
        if (code->n)
                memcpy(ad->code, code->p, code->n);
        if (index_n)
                memset(ad->index, 0, index_n * sizeof(uint32_t));
        ad->count = entries_unique(ad->entries, n, ad->index, ad->index_mask);
        return ad;
}

/* Makes an ad of the attributes that parse_ad() left in the table's buffers. */
static struct ad *parsed(struct symbols *symbols)
{
        return ad_pack(symbols, symbols->entries, symbols->entries_n, &symbols->code);
}

int ad_parse(struct symbols *symbols, struct str text, enum classad_syntax syntax, struct ad **ret_ad,
             struct err *err)
{
        int r = parse_ad(symbols, text, syntax, err);

        if (r == 0)
                *ret_ad = parsed(symbols);
        return r;
}

int ad_parse_part(struct symbols *symbols, struct str text, size_t *at, enum classad_syntax syntax,
                  struct ad **ret_ad, struct err *err)
{
        int r = parse_ad_part(symbols, text, at, syntax, err);

        if (r == 0)
                *ret_ad = parsed(symbols);
        return r;
}

struct ad *ad_dup(const struct ad *ad)
{
        uint32_t index_n = ad->index ? ad->index_mask + 1 : 0;
        struct ad *to = packed_new(ad->symbols, ad->count, ad->code_n, index_n);

        if (ad->count)
                memcpy(to->entries, ad->entries, ad->count * sizeof(struct entry));
        if (ad->code_n)
                memcpy(to->code, ad->code, ad->code_n);
        if (index_n)
                memcpy(to->index, ad->index, index_n * sizeof(uint32_t));
        to->waste = ad->waste;
        to->parent = ad->parent;
        return to;
}

static void compact(struct ad *ad);

struct ad *ad_trim(struct ad *ad)
{
        struct ad *to;

        if (ad->packed)
                return ad;
        if (ad->waste)
                compact(ad);
        to = ad_dup(ad);
        ad_free(ad);
        return to;
}

void ad_set_parent(struct ad *ad, const struct ad *parent)
{
        for (const struct ad *a = parent; a; a = a->parent)
                assert(a != ad);
        ad->parent = parent;
}

const struct ad *ad_parent(const struct ad *ad)
{
        return ad->parent;
}

static void unpack(struct ad *ad)
{
        struct entry *entries;
        char *code;

        if (!ad->packed)
                return;
        entries = mem_array(NULL, ad->count + 4u, sizeof(*entries));
        code = mem_alloc(ad->code_n + 64u);
        if (ad->count)
                memcpy(entries, ad->entries, ad->count * sizeof(*entries));
        if (ad->code_n)
                memcpy(code, ad->code, ad->code_n);
        if (ad->index)
                ad->index = (uint32_t *)(void *)mem_dup(ad->index,
                                                        ((size_t)ad->index_mask + 1) * sizeof(uint32_t));
        ad->entries = entries;
        ad->entries_cap = ad->count + 4;
        ad->code = code;
        ad->code_cap = ad->code_n + 64;
        ad->packed = false;
}

static void reindex(struct ad *ad)
{
        if (ad->count < AD_INDEX_MIN) {
                free(ad->index);
                ad->index = NULL;
                return;
        }
        if (!ad->index || ad->index_mask < ad->count * 2) {
                free(ad->index);
                ad->index_mask = entries_index_mask(ad->count * 2);
                ad->index = mem_array(NULL, (size_t)ad->index_mask + 1, sizeof(uint32_t));
        }
        memset(ad->index, 0, ((size_t)ad->index_mask + 1) * sizeof(uint32_t));
        entries_unique(ad->entries, ad->count, ad->index, ad->index_mask);
}

/* Rewrites the code without the parts that no entry uses. */
static void compact(struct ad *ad)
{
        struct code c = {.symbols = ad->symbols};

        for (uint32_t i = 0; i < ad->count; i++) {
                const struct node *nd = (const struct node *)(void *)(ad->code + ad->entries[i].at);

                ad->entries[i].at = (int32_t)code_copy(&c, nd);
        }
        free(ad->code);
        ad->code = c.p;
        ad->code_n = c.n;
        ad->code_cap = c.cap;
        ad->waste = 0;
}

static struct entry *own_entry(const struct ad *ad, symbol name)
{
        if (ad->index) {
                uint32_t at = symbol_hash(name) & ad->index_mask, i;

                for (; (i = ad->index[at]) != 0; at = (at + 1) & ad->index_mask)
                        if (ad->entries[i - 1].name == name)
                                return &ad->entries[i - 1];
                return NULL;
        }
        for (uint32_t i = 0; i < ad->count; i++)
                if (ad->entries[i].name == name)
                        return &ad->entries[i];
        return NULL;
}

static struct node *own_node(const struct ad *ad, symbol name)
{
        /* the ad is ours to change when the caller says so: its code is not constant */
        const struct node *nd = ad_get_own(ad, name);

        return nd ? (struct node *)(void *)(ad->code + ((const char *)nd - ad->code)) : NULL;
}

/* Binds the name to the node at `at` of the ad's code. */
static void bind(struct ad *ad, symbol name, uint32_t at)
{
        const struct node *old = ad_get_own(ad, name);

        assert(name);
        if (old) {
                ad->waste += (uint32_t)node_bytes(old);
                own_entry(ad, name)->at = (int32_t)at;
                if (ad->waste > 1024 && ad->waste > ad->code_n / 2)
                        compact(ad);
                return;
        }
        assert(ad->count < CLASSAD_ATTRIBUTES_MAX * 2);
        MEM_GROW(ad->entries, ad->entries_cap, ad->count + 1);
        ad->entries[ad->count++] = (struct entry){name, (int32_t)at, 0};
        if (ad->index && ad->index_mask >= ad->count * 2) {
                uint32_t slot = symbol_hash(name) & ad->index_mask;

                while (ad->index[slot])
                        slot = (slot + 1) & ad->index_mask;
                ad->index[slot] = ad->count;
        } else {
                reindex(ad);
        }
}

/* The ad's code as a place to write to; give it back with end_write. */
static struct code begin_write(struct ad *ad)
{
        unpack(ad);
        return (struct code){.p = ad->code, .n = ad->code_n, .cap = ad->code_cap, .symbols = ad->symbols};
}

static void end_write(struct ad *ad, const struct code *c, symbol name, uint32_t at)
{
        ad->code = c->p;
        ad->code_n = c->n;
        ad->code_cap = c->cap;
        bind(ad, name, at);
}

static void set_scalar(struct ad *ad, symbol name, const struct value *v)
{
        struct node *nd = own_node(ad, name);
        struct code c;
        uint32_t at;

        assert(ad->magic == AD_MAGIC);
        if (nd && nd->op <= OP_REAL) {
                uint32_t tmp;
                char room[64];
                struct code one = {.p = room, .cap = sizeof(room)};

                code_value(&one, v, &tmp);
                *nd = *code_node(&one, tmp);
                return;
        }
        c = begin_write(ad);
        code_value(&c, v, &at);
        end_write(ad, &c, name, at);
}

void ad_set_boolean(struct ad *ad, symbol name, bool v)
{
        set_scalar(ad, name, &(struct value){.type = VALUE_BOOLEAN, .boolean = v});
}

void ad_set_integer(struct ad *ad, symbol name, int64_t v)
{
        set_scalar(ad, name, &(struct value){.type = VALUE_INTEGER, .integer = v});
}

void ad_set_real(struct ad *ad, symbol name, double v)
{
        set_scalar(ad, name, &(struct value){.type = VALUE_REAL, .real = v});
}

void ad_set_undefined(struct ad *ad, symbol name)
{
        set_scalar(ad, name, &(struct value){.type = VALUE_UNDEFINED});
}

void ad_set_string(struct ad *ad, symbol name, struct str v)
{
        /* the text may stand in this very ad, whose code is about to move */
        MEM_CLEANUP char *copy = mem_dup(v.p, v.n);
        struct code c = begin_write(ad);
        uint32_t at = code_text(&c, str_make(copy, v.n));

        end_write(ad, &c, name, at);
}

int ad_set_text(struct ad *ad, symbol name, struct str text, struct err *err)
{
        struct code *from = &ad->symbols->code;
        struct code c;
        uint32_t root, base;
        char *p;
        int r = parse_expression(ad->symbols, text, true, &root, err);

        if (r)
                return r;
        if (!ad_get_own(ad, name) && ad->count >= CLASSAD_ATTRIBUTES_MAX)
                return err_set(err, CLASSAD_TOO_BIG, "more than %d attributes", CLASSAD_ATTRIBUTES_MAX);
        if (ad->code_n + (size_t)from->n > CODE_MAX)
                return err_set(err, CLASSAD_TOO_BIG, "the ad is too big");
        c = begin_write(ad);
        p = code_room(&c, from->n);
        memcpy(p, from->p, from->n);
        base = (uint32_t)(p - c.p);
        end_write(ad, &c, name, base + root);
        return 0;
}

void ad_set_expr(struct ad *ad, symbol name, const struct expr *e)
{
        /* a copy of its own first: the expression may stand in this ad */
        struct code mine = {.symbols = ad->symbols};
        struct code c;
        uint32_t at = code_copy(&mine, &e->root);

        c = begin_write(ad);
        at = code_copy(&c, code_node(&mine, at));
        end_write(ad, &c, name, at);
        code_deinit(&mine);
}

void ad_set_spelling(struct ad *ad, symbol name, uint32_t spelling)
{
        struct entry *e = own_entry(ad, name);

        if (e)
                e->spelling = spelling;
}

uint32_t ad_spelling(const struct ad *ad, symbol name)
{
        const struct entry *e = NULL;

        for (; ad && !(e = own_entry(ad, name)); ad = ad->parent)
                ;
        return e ? e->spelling : 0;
}

void ad_remove(struct ad *ad, symbol name)
{
        struct entry *e;

        if (!ad_get_own(ad, name))
                return;
        unpack(ad);
        ad->waste += (uint32_t)node_bytes(ad_get_own(ad, name));
        e = own_entry(ad, name);
        memmove(e, e + 1, (size_t)(ad->entries + ad->count - (e + 1)) * sizeof(*e));
        ad->count--;
        reindex(ad);
}

const struct expr *ad_find(const struct ad *ad, symbol name)
{
        return (const struct expr *)ad_get(ad, name);
}

const struct expr *ad_find_own(const struct ad *ad, symbol name)
{
        return (const struct expr *)ad_get_own(ad, name);
}

bool ad_literal(const struct ad *ad, symbol name, struct value *ret)
{
        const struct node *nd = ad_get(ad, name);

        return nd && expr_literal((const struct expr *)nd, ret);
}

size_t ad_count(const struct ad *ad)
{
        return ad->count;
}

bool ad_next(const struct ad *ad, uint32_t *at, symbol *ret_name, const struct expr **ret_expr)
{
        if (*at >= ad->count)
                return false;
        *ret_name = ad->entries[*at].name;
        *ret_expr = (const struct expr *)(const void *)(ad->code + ad->entries[*at].at);
        ++*at;
        return true;
}

size_t ad_bytes(const struct ad *ad)
{
        return sizeof(*ad) + ad->entries_cap * sizeof(struct entry) + ad->code_cap +
               (ad->index ? ((size_t)ad->index_mask + 1) * sizeof(uint32_t) : 0);
}
