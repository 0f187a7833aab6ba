/* template_key: the text by which equal templates are found, and from which a part is made again to edit it.
 *
 * A whole key has all attributes and variables of a part. The key of a template that borrows from another
 * one (job_template.h) has only the texts that differ.
 */
#pragma once
#include "base/buf.h"
#include "core/model/submission.h"

/* A template with more own attributes than this borrows nothing. */
#define TEMPLATE_OWN_MAX 8u

struct template_own {
        size_t count, bytes;         /* bytes of their texts */
        size_t at[TEMPLATE_OWN_MAX]; /* their places among the part's attributes, ascending */
};

/* Appends the whole key of a part. */
void template_key_whole(struct buf *out, const struct submission_part *p);
/* Returns a hash of the owner and of everything in a part but the texts of its attributes. Only parts with
 * the same hash can borrow from each other. It differs from run to run. */
uint64_t template_key_shape(struct str owner, const struct submission_part *p);
/* Compares a part with a whole key. Returns false if more differs than the texts of TEMPLATE_OWN_MAX
 * attributes. */
bool template_key_compare(struct str whole, const struct submission_part *p, struct template_own *ret);
/* Appends the key of a part that borrows from the template `from`, whose address it has. */
void template_key_own(struct buf *out, const struct job_template *from, const struct submission_part *p,
                      const struct template_own *own);
/* Makes a part of a whole key and, unless it is empty, the key of a template that borrows from that one.
 * The part borrows from the keys. */
void template_key_read(struct str whole, struct str own, struct submission_part *p);
