/* column: what one key is for COLUMN_FILES neighbouring files (private to catalog/).
 *
 * A column has each value that occurs once, and for each file the value's number; 0 says that the file has
 * none. So a condition is tried on the values, which are few, and each file costs the look at a small number.
 */
#pragma once
#include "base/map.h"
#include "catalog/catalog.h"

#define COLUMN_FILES 4096u

struct column {
        struct str *values; /* [1] on; borrowed from bytes, or from `added` */
        size_t count, cap;  /* the last value's number, and room */
        uint16_t codes[COLUMN_FILES];
        struct buf bytes; /* as read */
        /* of one that is written */
        struct map *numbers; /* value -> number */
        char **added;
        size_t added_count, added_cap;
        bool changed;
};

/* {0} has no values. Reads one from its stored form; -EBADMSG: it is damaged. */
int column_read(struct column *c, struct str stored);
void column_deinit(struct column *c);
void column_set(struct column *c, unsigned file, struct str value); /* copied */
void column_unset(struct column *c, unsigned file);
/* Appends the stored form, without the values that no file has any more. False: no file has any. */
bool column_write(const struct column *c, struct buf *out);

/* A value as it stands in a column, and back: borrowed from `stored`; false: it is none. */
void column_value_pack(struct buf *out, const struct catalog_value *v);
bool column_value_unpack(struct str stored, struct catalog_value *ret);
