/* member_ad: builds the present ad of one member. */
#pragma once
#include "classad/ad.h"
#include "core/model/names.h"
#include "core/query.h"

/* Builds the ad; the caller frees it. j: the member's record, or NULL. */
struct ad *member_ad(struct core *c, const struct request *r, uint32_t member, const struct job *j);
/* Builds the ad with only these of the late attributes, each the text with its macros expanded. */
struct ad *member_ad_some(struct core *c, const struct request *r, uint32_t member, const struct job *j,
                          const symbol *late, size_t late_count);
/* Sets NumJobStarts and related attributes. */
void member_ad_starts(const struct core *c, struct ad *ad, int64_t starts);
/* Does what core_job_differs describes. */
bool member_ad_differs(const struct core *c, const struct ad *ad, symbol name);
struct part;
/* Does what core_job_scope describes. */
enum core_scope member_ad_scope(const struct core *c, const struct part *p, symbol name);
