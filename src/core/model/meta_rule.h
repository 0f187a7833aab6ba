/* meta_rule: a template's attributes for meta jobs, for which the best of all places is reserved
 * (meta/meta.h).
 *
 * Meta: true for a meta job. MetaPrefer: the criterion: "time" (the default), "cost", or the weight of the
 * time from 0 to 1. CoAllocate: all jobs of the request are one meta job in several parts, which start
 * together at different places, or not at all.
 */
#pragma once
#include "base/err.h"
#include "core/model/job_template.h"

struct request;

#define META_PARTS_MAX 32u /* jobs of a request with CoAllocate */

/* Sets t->meta; an attribute that makes no sense is ignored. */
void meta_rule_read(struct core *c, struct job_template *t);
/* Checks the rule of a part with that many jobs. Returns 0, or -EINVAL with err. */
int meta_check(struct core *c, const struct job_template *t, uint64_t members, struct err *err);
/* Checks that the parts of a request agree. Returns 0, or CORE_INVALID with err. */
int meta_refuse(const struct request *r, struct err *err);
