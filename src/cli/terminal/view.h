/* view: reading a JSON answer where it lies.
 *
 * A view is a piece of JSON text that holds one value. Nothing is built and nothing allocated: a listing of
 * 100,000 jobs is 30 MB of text of which a table needs ten short fields a row, and a tree of it (jansson's)
 * costs ten times what the whole command may. The price: fields are found by walking, so take each once.
 *
 * Reads the answers of our own server, which base/json.h writes. Text that is not JSON is never read past its
 * end; it gives VIEW_NONE where it stops making sense. Views are borrowed from the text.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

enum view_type { VIEW_NONE, VIEW_NULL, VIEW_BOOLEAN, VIEW_NUMBER, VIEW_STRING, VIEW_ARRAY, VIEW_OBJECT };

#define VIEW_DEPTH_MAX 100 /* nested deeper is VIEW_NONE */

struct view {
        struct str text; /* of exactly one value, without white space around it; empty: there is none */
};

struct view view_of(struct str text); /* the first value in the text */
/* The same for a text known to be one value: nothing is walked yet. Of a text that isn't, what makes sense is
 * found. */
struct view view_open(struct str text);
enum view_type view_type(struct view v);
/* The value under a key (as written, without escapes) of an object; VIEW_NONE when there is none, or v is
 * none. */
struct view view_get(struct view v, const char *key);
/* Walks an array: size_t at = 0; while (view_next(v, &at, &item)). */
bool view_next(struct view v, size_t *at, struct view *ret_item);
/* Walks an object in the order written. *ret_key is raw, as it stands between the quotes. */
bool view_member(struct view v, size_t *at, struct str *ret_key, struct view *ret_value);

/* A long array is better not measured before it is walked. view_enter gives the array under a key with all
 * that stands behind it, for view_next alone; view_leave tells from where view_member goes on in v when
 * view_next has ended at `at`. */
struct view view_enter(struct view v, const char *key);
size_t view_leave(struct view v, struct view array, size_t at);

static inline bool view_there(struct view v) /* a value, and not null */
{
        return view_type(v) > VIEW_NULL;
}
bool view_true(struct view v);
/* Whole numbers; a number with a fraction is cut. `otherwise` when it is no number or out of range. */
int64_t view_integer(struct view v, int64_t otherwise);
bool view_is(struct view v, const char *text); /* a string that reads exactly so and needs no escapes */
/* Appends a string's text, unescaped; of any other value its JSON; of none and null nothing. */
void view_text(struct view v, struct buf *out);
/* The same for a terminal, as human_safe has it: for whatever people see that others may have written. */
void view_safe(struct view v, struct buf *out);
