/* change: a writing call of a catalog as bytes, for a log of them. Private to catalog/.
 *
 * A change has its position, which is stored in the catalog together with what it changes. */
#pragma once
#include "base/pack.h"
#include "catalog/catalog.h"

void change_put(struct buf *to, const struct catalog_file *files, size_t count, bool replace);
void change_remove(struct buf *to, const struct str *names, size_t count, struct str url);
void change_dataset(struct buf *to, const struct catalog_dataset *d);
void change_dataset_removed(struct buf *to, struct str name);

/* Makes the call that the change is, at a catalog. Returns what the call returns; or CATALOG_CORRUPT with
 * err if the bytes are no change. */
int change_call(struct catalog *c, struct str change, struct err *err);
