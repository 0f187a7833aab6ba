/* file_identity: the identity with which a part's jobs ask for their files (base/job/file_key.h).
 *
 * Made when files are numbered and freed afterwards: the core does not keep what owners' credentials are
 * for, and is told when that changes (core_request_credentials).
 */
#pragma once
#include "base/job/file_key.h"
#include "classad/ad.h"
#include "core/model/names.h"

struct file_identity {
        struct file_asker as;
        struct buf who, names; /* texts that `as` borrows */
};
struct file_identity *file_identity_new(struct core *c, const struct request *r, const struct part *p);
void file_identity_free(struct file_identity *x); /* NULL is fine */
