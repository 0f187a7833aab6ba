/* datum: what a variable of a Galaxy tool's template is: Python's None, bool, int, float, str, list and dict,
 * as far as templates use them. A value of a parameter also has the text that it is written as ("--fast" of a
 * boolean), whatever its kind. Values live in an arena, and end with it. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum datum_kind { DATUM_NONE, DATUM_BOOL, DATUM_INT, DATUM_FLOAT, DATUM_TEXT, DATUM_LIST, DATUM_MAP };

struct datum {
        enum datum_kind kind;
        bool written;         /* text says how it is written, for kinds other than DATUM_TEXT */
        int64_t integer;      /* of BOOL and INT */
        double number;        /* of FLOAT */
        struct str text;      /* of TEXT, or as written */
        struct datum **items; /* of LIST and MAP */
        struct str *keys;     /* of MAP */
        size_t n, cap;
};

#define DATUM_ITEMS_MAX 100000u
#define DATUM_DEPTH_MAX 32u

struct datum *datum_new(struct arena *a, enum datum_kind kind);
struct datum *datum_text(struct arena *a, struct str text); /* copied */
struct datum *datum_int(struct arena *a, int64_t n);
struct datum *datum_float(struct arena *a, double d);
/* whole: an INT, unless it is too large for one. */
struct datum *datum_of_number(struct arena *a, double d, bool whole);
struct datum *datum_bool(struct arena *a, bool b);
/* To a list, or to a map with a key (copied; replaces). False: DATUM_ITEMS_MAX is reached. */
bool datum_add(struct arena *a, struct datum *list, struct datum *item);
bool datum_put(struct arena *a, struct datum *map, struct str key, struct datum *item);
struct datum *datum_get(const struct datum *map, struct str key); /* NULL: no map, or none */

bool datum_true(const struct datum *v);
/* As str() in Python writes it. False: it is a map without a text, or nested too deep. */
bool datum_write(const struct datum *v, struct buf *out);
bool datum_equal(const struct datum *a, const struct datum *b);
/* <0, 0, >0 in *ret; false: these two have no order. */
bool datum_compare(const struct datum *a, const struct datum *b, int *ret);
bool datum_number(const struct datum *v, double *ret); /* of INT, FLOAT, BOOL */
const char *datum_kind_name(const struct datum *v);
