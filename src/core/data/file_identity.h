/* file_identity: the identity under which a part's jobs request their files (base/job/file_key.h).
 *
 * It is built when files are numbered and freed afterwards, because the core does not store the purposes of
 * owners' credentials. core_request_credentials reports changes.
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
