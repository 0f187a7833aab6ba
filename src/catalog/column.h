/* column: the values of one key for COLUMN_FILES consecutive files (private to catalog/).
 *
 * A column has each different value once, and for each file the number of its value; 0: the file has none.
 * A condition is therefore evaluated once for each value, and each file costs the lookup of a small
 * number. */
#pragma once
#include "base/map.h"
#include "catalog/catalog.h"

#define COLUMN_FILES 4096u

struct column {
        struct str *values; /* from [1] on; borrowed from `bytes` or `added` */
        size_t count, cap;  /* number of the last value, and capacity */
        uint16_t codes[COLUMN_FILES];
        struct buf bytes; /* the stored form */
        /* for writing */
        struct map *numbers; /* value -> number */
        char **added;
        size_t added_count, added_cap;
        bool changed;
};

/* A column {0} has no values. Reads one from its stored form. Returns 0, or -EBADMSG: it is damaged. */
int column_read(struct column *c, struct str stored);
void column_deinit(struct column *c);
void column_set(struct column *c, unsigned file, struct str value); /* copies the value */
void column_unset(struct column *c, unsigned file);
/* Appends the stored form, without values that no file has any more. Returns false if no file has a value. */
bool column_write(const struct column *c, struct buf *out);

/* Converts a value to its form in a column, and back, where it borrows from `stored`; returns false if
 * that is malformed. */
void column_value_pack(struct buf *out, const struct catalog_value *v);
bool column_value_unpack(struct str stored, struct catalog_value *ret);
