/* The builder writes the same nodes as the parser, into a buffer of its own: expressions given as text are
 * parsed into the table's buffer and copied. */
#include "classad/build.h"

#include "base/mem.h"
#include "classad/parse.h"

void build_init(struct build *b, struct symbols *symbols)
{
        *b = (struct build){.symbols = symbols, .code = {.symbols = symbols}};
}

void build_deinit(struct build *b)
{
        code_deinit(&b->code);
        free(b->entries);
        free(b->kids);
        b->entries = NULL;
        b->kids = NULL;
        b->entries_n = b->entries_cap = b->kids_n = b->kids_cap = 0;
}

static void build_reset(struct build *b)
{
        b->code.n = b->code.again = 0;
        b->entries_n = b->kids_n = 0;
}

static int build_done(struct build *b, uint32_t at, uint32_t *ret, struct err *err)
{
        if (code_node(&b->code, at)->height > CLASSAD_DEPTH_MAX)
                return err_set(err, CLASSAD_TOO_DEEP, "nested too deep (the limit is %d)", CLASSAD_DEPTH_MAX);
        if (b->code.n > BUILD_CODE_MAX)
                return err_set(err, CLASSAD_TOO_BIG, "the ad is too big");
        *ret = at;
        return 0;
}

static int build_fits(const struct build *b, size_t n, struct err *err)
{
        if (n > CLASSAD_TEXT_MAX || b->code.n + n > BUILD_CODE_MAX)
                return err_set(err, CLASSAD_TOO_BIG, "the text is longer than %u bytes", CLASSAD_TEXT_MAX);
        return 0;
}

int build_value(struct build *b, const struct value *v, uint32_t *ret, struct err *err)
{
        uint32_t at = 0;
        int r = build_fits(b, v->type == VALUE_STRING ? v->string.n : 0, err);
        bool literal;

        if (r)
                return r;
        literal = code_value(&b->code, v, &at);
        assert(literal);
        return build_done(b, at, ret, err);
}

int build_expr(struct build *b, struct str text, uint32_t *ret, struct err *err)
{
        struct code *from = &b->symbols->code;
        uint32_t root;
        int r = parse_expression(b->symbols, text, true, &root, err);

        if (r == 0)
                r = build_fits(b, from->n, err);
        if (r)
                return r;
        return build_done(b, code_copy(&b->code, code_node(from, root)), ret, err);
}

int build_time(struct build *b, bool absolute, struct str text, uint32_t *ret, struct err *err)
{
        uint32_t kid;
        int r = build_fits(b, text.n, err);
        symbol name = symbols_intern(b->symbols, absolute ? STR("absTime") : STR("relTime"));

        if (r)
                return r;
        kid = code_text(&b->code, text);
        return build_done(b, code_wide(&b->code, OP_CALL, name, &kid, 1), ret, err);
}

int build_member(struct build *b, uint32_t at, struct err *err)
{
        if (b->kids_n >= BUILD_CODE_MAX / sizeof(struct node))
                return err_set(err, CLASSAD_TOO_BIG, "the ad is too big");
        MEM_GROW(b->kids, b->kids_cap, b->kids_n + 1);
        b->kids[b->kids_n++] = at;
        return 0;
}

int build_list_end(struct build *b, size_t mark, uint32_t *ret, struct err *err)
{
        uint32_t at = code_wide(&b->code, OP_LIST, 0, b->kids + mark, (uint32_t)(b->kids_n - mark));

        b->kids_n = mark;
        return build_done(b, at, ret, err);
}

int build_name(struct build *b, struct str name, struct entry *ret, struct err *err)
{
        if (name.n == 0)
                return err_set(err, CLASSAD_SYNTAX, "an attribute without a name");
        if (memchr(name.p, '\0', name.n))
                return err_set(err, CLASSAD_SYNTAX, "a name with the character 0 in it");
        ret->name = symbols_intern(b->symbols, name);
        ret->spelling = symbols_spelling(b->symbols, ret->name, name);
        return 0;
}

int build_attribute(struct build *b, size_t mark, const struct entry *name, uint32_t at, struct err *err)
{
        if (b->entries_n - mark >= CLASSAD_ATTRIBUTES_MAX)
                return err_set(err, CLASSAD_TOO_BIG, "more than %d attributes", CLASSAD_ATTRIBUTES_MAX);
        MEM_GROW(b->entries, b->entries_cap, b->entries_n + 1);
        b->entries[b->entries_n++] = (struct entry){name->name, (int32_t)at, name->spelling};
        return 0;
}

int build_ad_end(struct build *b, size_t mark, uint32_t *ret, struct err *err)
{
        uint32_t n = (uint32_t)(b->entries_n - mark), mask = entries_index_mask(n), at;
        MEM_CLEANUP uint32_t *index = NULL;

        if (n >= AD_INDEX_MIN)
                index = mem_zalloc(((size_t)mask + 1) * sizeof(*index));
        if (n)
                n = entries_unique(b->entries + mark, n, index, mask);
        at = code_ad(&b->code, b->entries + mark, n);
        b->entries_n = mark;
        return build_done(b, at, ret, err);
}

struct ad *build_finish(struct build *b)
{
        struct ad *ad = ad_pack(b->symbols, b->entries, b->entries_n, &b->code);

        build_reset(b);
        return ad;
}
