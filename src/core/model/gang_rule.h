/* gang_rule: what a template says of jobs that start together, and which members of a part are one set
 * (gang/gang.h). */
#pragma once
#include "core/model/job_class.h"
#include "core/model/job_template.h"

struct part;

#define GANG_SIZE_MAX 10000u

void gang_rule_read(struct core *c, struct job_template *t); /* what makes no sense counts as not said */
/* Does what the template says of sets make sense for so many members? 0, -EINVAL with err. */
int gang_check(struct core *c, const struct job_template *t, uint64_t members, struct err *err);
/* Are the jobs of each set in one bucket? They must be alike to be placed. 0, CORE_INVALID with err. */
int gang_refuse(struct core *c, const struct request *r, struct err *err);
uint32_t gang_size(const struct part *p); /* members of a set of the part; 0: none */
/* The set of a member: [*ret_first, *ret_first + *ret_size). False: it is in none. */
bool gang_of(const struct request *r, uint32_t member, uint32_t *ret_first, uint32_t *ret_size);
/* The members, and all of their sets. *to is empty and the caller's. */
void gang_widen(const struct request *r, const struct set *members, struct set *to);

static inline bool gang_class(const struct job_class *k)
{
        return k->job_template->gang.size != 0;
}
