/* member_ad: the ad of one member, as it is now. */
#pragma once
#include "classad/ad.h"
#include "core/model/names.h"

struct ad *member_ad(struct core *c, const struct request *r, uint32_t member, const struct job *j);
/* The same, but of the attributes that differ by item only these: each is a text whose macros are filled in.
 */
struct ad *member_ad_some(struct core *c, const struct request *r, uint32_t member, const struct job *j,
                          const symbol *late, size_t late_count);
void member_ad_starts(const struct core *c, struct ad *ad, int64_t starts); /* NumJobStarts and its like */
/* See core_job_differs. */
bool member_ad_differs(const struct core *c, const struct ad *ad, symbol name);
