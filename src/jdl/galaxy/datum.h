/* datum: a value in a Galaxy tool's template: Python's None, bool, int, float, str, list and dict, as far
 * as templates use them. A parameter's value also has a written form ("--fast" for a boolean), whatever
 * its kind. Values are allocated in an arena. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum datum_kind {
        DATUM_NONE,
        DATUM_BOOL,
        DATUM_INT,
        DATUM_FLOAT,
        DATUM_TEXT,
        DATUM_LIST,
        DATUM_MAP,
        DATUM_FUNCTION
};

struct datum {
        enum datum_kind kind;
        bool section;         /* MAP: made by datum_section */
        bool collection;      /* LIST: made by datum_collection */
        bool tuple;           /* LIST: written as (a, b) */
        bool written;         /* text is the written form, for kinds other than DATUM_TEXT */
        int64_t integer;      /* BOOL and INT */
        double number;        /* FLOAT */
        struct str text;      /* TEXT, or the written form; FUNCTION: its full name, or a module's */
        struct datum **items; /* LIST and MAP */
        struct str *keys;     /* MAP and collection */
        size_t n, cap;
        struct datum *attributes;                     /* a MAP, or NULL: see datum_attribute */
        const struct template_definition *definition; /* FUNCTION: of a template's #def; NULL: any other */
};

#define DATUM_ITEMS_MAX 100000u
#define DATUM_DEPTH_MAX 32u

struct datum *datum_new(struct arena *a, enum datum_kind kind);
/* Makes the value of a missing parameter or output, which is written as None. Python's own None in a
 * template, made by datum_new, is written as nothing. */
struct datum *datum_none(struct arena *a);
struct datum *datum_text(struct arena *a, struct str text); /* copies the text */
struct datum *datum_int(struct arena *a, int64_t n);
struct datum *datum_float(struct arena *a, double d);
/* Makes a number; whole: an INT, unless it is too large for one. */
struct datum *datum_of_number(struct arena *a, double d, bool whole);
struct datum *datum_bool(struct arena *a, bool b);
/* Add an item to a list, or to a map under a key (copied; replaces an older value). Return false if
 * DATUM_ITEMS_MAX is reached. */
bool datum_add(struct arena *a, struct datum *list, struct datum *item);
bool datum_put(struct arena *a, struct datum *map, struct str key, struct datum *item);
/* Makes a MAP whose names are also found from outside: a section or a conditional. */
struct datum *datum_section(struct arena *a);
/* Makes a LIST whose items have names, given with datum_put: a collection of datasets. It has no text. */
struct datum *datum_collection(struct arena *a);
struct datum *datum_function(struct arena *a, struct str name);
/* Returns an item of a map or collection. NULL: the value is neither, or has no such key. */
struct datum *datum_get(const struct datum *map, struct str key);
/* Like datum_get, then searches the sections and conditionals within; the first match counts. */
struct datum *datum_find(const struct datum *map, struct str key);
/* Returns what a template gets with `value.name`: an attribute of the value, or for a map or collection
 * also the result of datum_find or datum_get. NULL: there is none. */
struct datum *datum_attribute(const struct datum *v, struct str name);
void datum_set_attribute(struct arena *a, struct datum *v, const char *name, struct datum *value);

bool datum_true(const struct datum *v);
/* Appends the value as Python's str() does. Returns false for a map without a text, or values nested too
 * deep. */
bool datum_write(const struct datum *v, struct buf *out);
bool datum_equal(const struct datum *a, const struct datum *b);
/* Compares two values: *ret is <0, 0 or >0. Returns false if they have no order. */
bool datum_compare(const struct datum *a, const struct datum *b, int *ret);
bool datum_number(const struct datum *v, double *ret); /* converts INT, FLOAT, BOOL */
const char *datum_kind_name(const struct datum *v);
