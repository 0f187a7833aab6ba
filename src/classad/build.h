/* build: ads put together by readers of other encodings (private to classad/).
 *
 * A reader passes operands first, as the parser does: each call writes a node and returns its place in the
 * code. Members of lists and attributes of ads wait on stacks until the list or ad around them ends; a mark
 * says where it began. Errors are a classad_error with a sentence that has no position: the reader knows
 * where it is.
 */
#pragma once
#include "classad/symbols_private.h"

struct build {
        struct symbols *symbols;
        struct code code;
        struct entry *entries;
        size_t entries_n, entries_cap;
        uint32_t *kids;
        size_t kids_n, kids_cap;
};

/* Limit on the compiled code of one ad, in bytes. */
#define BUILD_CODE_MAX (8 * CLASSAD_TEXT_MAX)

void build_init(struct build *b, struct symbols *symbols);
void build_deinit(struct build *b);

int build_value(struct build *b, const struct value *v, uint32_t *ret, struct err *err); /* a literal */
int build_expr(struct build *b, struct str text, uint32_t *ret, struct err *err); /* in the new syntax */
/* absTime("text") or relTime("text") */
int build_time(struct build *b, bool absolute, struct str text, uint32_t *ret, struct err *err);

static inline size_t build_list_begin(const struct build *b)
{
        return b->kids_n;
}
int build_member(struct build *b, uint32_t at, struct err *err);
int build_list_end(struct build *b, size_t mark, uint32_t *ret, struct err *err);

static inline size_t build_ad_begin(const struct build *b)
{
        return b->entries_n;
}
/* Makes an entry for a name, without a place; build_attribute adds it with the expression at `at`. */
int build_name(struct build *b, struct str name, struct entry *ret, struct err *err);
int build_attribute(struct build *b, size_t mark, const struct entry *name, uint32_t at, struct err *err);
int build_ad_end(struct build *b, size_t mark, uint32_t *ret, struct err *err);
/* Returns an ad of all attributes that are left on the stack, and resets the builder. */
struct ad *build_finish(struct build *b);

/* Makes an ad of n attributes, whose `at` are places in c. Defined in ad.c. */
struct ad *ad_pack(struct symbols *symbols, const struct entry *entries, size_t n, const struct code *c);
