/* file_identity: as whom the jobs of a part ask for their files (base/file_key.h).
 *
 * It is made when files are numbered, and gone when they are: what owners' credentials are for is the world's
 * to know, and it says when that has changed (core_request_credentials).
 */
#pragma once
#include "base/file_key.h"
#include "classad/ad.h"
#include "core/model/names.h"

struct file_identity {
        struct file_asker as;
        struct buf who, names; /* that `as` looks at */
};
struct file_identity *file_identity_new(struct core *c, const struct request *r, const struct part *p);
void file_identity_free(struct file_identity *x); /* NULL is fine */
