/* view: reads JSON in place, without building a tree.
 *
 * A view is a piece of JSON text that holds one value. Nothing is allocated: a listing of 100,000 jobs is 30
 * MB of text of which a table needs ten short fields a row, and a tree of it (jansson's) costs ten times
 * what the whole command may. The drawback is that fields are found by walking the text, so those of a row
 * should be read together (view_fields).
 *
 * The reader is made for the answers of Drover's own server, which base/format/json.h writes. Text that is
 * not JSON is never read past its end; it gives VIEW_NONE from the point where it is malformed. Views are
 * borrowed from the text.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

enum view_type { VIEW_NONE, VIEW_NULL, VIEW_BOOLEAN, VIEW_NUMBER, VIEW_STRING, VIEW_ARRAY, VIEW_OBJECT };

#define VIEW_DEPTH_MAX 100 /* values nested deeper are VIEW_NONE */

struct view {
        struct str text; /* text of exactly one value, without white space around it; empty: no value */
};

struct view view_of(struct str text); /* returns the first value in the text */
/* Returns a view of a text that is known to be one value, without walking it. Of malformed text, the
 * well-formed beginning can be read. */
struct view view_open(struct str text);
enum view_type view_type(struct view v);
/* Returns the value under a key (as written, without escapes) of an object; VIEW_NONE if there is none, or v
 * is none. */
struct view view_get(struct view v, const char *key);
/* Reads several members of an object in one walk: the value under a key goes to the struct view at `offset`
 * of ret, which has VIEW_NONE there before; of a key that is there twice, the last. It is quickest if the
 * fields are in the order in which the object has them. */
struct view_field {
        struct str key; /* as written, without escapes */
        size_t offset;
};
void view_fields(struct view v, const struct view_field *fields, size_t count, void *ret);
/* Walks an array: size_t at = 0; while (view_next(v, &at, &item)). */
bool view_next(struct view v, size_t *at, struct view *ret_item);
/* Walks an object in the order written. *ret_key is raw, as it stands between the quotes. */
bool view_member(struct view v, size_t *at, struct str *ret_key, struct view *ret_value);

/* Walking a long array without first measuring it: view_enter returns the array under a key together with
 * the text after it, for view_next only; view_leave returns the position at which view_member continues in v
 * after view_next has ended at `at`. */
struct view view_enter(struct view v, const char *key);
size_t view_leave(struct view v, struct view array, size_t at);

static inline bool view_there(struct view v) /* true for a value that is not null */
{
        return view_type(v) > VIEW_NULL;
}
bool view_true(struct view v);
/* Returns a whole number; a fraction is cut off. `otherwise` if the value is no number or out of range. */
int64_t view_integer(struct view v, int64_t otherwise);
double view_real(struct view v); /* a number, also one that is written in a string; 0 for anything else */
bool view_is(struct view v, const char *text); /* true for a string equal to text, which needs no escapes */
/* Appends a string's text, unescaped; the JSON of any other value; nothing for none and null. */
void view_text(struct view v, struct buf *out);
/* Like view_text, made safe for a terminal (human_safe), for text that other users may have written. */
void view_safe(struct view v, struct buf *out);
/* Appends an attribute's value as an ad in JSON has it: an expression, "/Expr(a + 1)/", as it was written and
 * made safe, and a literal as it is. */
void view_expression(struct view v, struct buf *out);
