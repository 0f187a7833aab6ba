/* gang_rule: a template's rule for jobs that start together, and the gangs that it makes of a part's members
 * (gang/gang.h).
 */
#pragma once
#include "core/model/job_class.h"
#include "core/model/job_template.h"

struct part;

#define GANG_SIZE_MAX 10000u

/* Sets t->gang; an attribute that makes no sense is ignored. */
void gang_rule_read(struct core *c, struct job_template *t);
/* Checks the template's rule against the number of the part's members. Returns 0, or -EINVAL with err. */
int gang_check(struct core *c, const struct job_template *t, uint64_t members, struct err *err);
/* Checks that the jobs of each gang are in one bucket, since only like jobs can be placed together. Returns
 * 0, or CORE_INVALID with err. */
int gang_refuse(struct core *c, const struct request *r, struct err *err);
uint32_t gang_size(const struct part *p); /* size of the part's gangs; 0: its jobs start one by one */
/* Finds the gang of a member: [*ret_first, *ret_first + *ret_size). Returns false if the member is in none.
 */
bool gang_of(const struct request *r, uint32_t member, uint32_t *ret_first, uint32_t *ret_size);
/* Adds the members, and all other members of their gangs, to *to, which must be empty; the caller frees it.
 */
void gang_widen(const struct request *r, const struct set *members, struct set *to);

static inline bool gang_class(const struct job_class *k)
{
        return k->job_template->gang.size != 0;
}
