/* order: which of two waiting things goes first. For the files of core/ only.
 *
 * By priority, the higher first; then as they were submitted. Who changes what an order looks at tells the
 * heaps and trees that are kept by it: class_bucket_moved for a bucket, index_class_changed for a class.
 */
#pragma once
#include "core/state.h"

bool order_bucket_before(const struct bucket *a, const struct bucket *b);
/* Of classes that have idle members: by the bucket of each that goes first. */
bool order_class_before(const struct class *a, const struct class *b);
/* Does the order leave it to the offer which of these two ready classes it takes? */
bool order_class_level(const struct class *a, const struct class *b);
