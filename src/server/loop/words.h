/* words: phrases that several answers share. All functions append to a buf. */
#pragma once
#include "base/buf.h"

struct core;
struct core_dependency;

void words_time(struct buf *out, int64_t ms); /* Unix milliseconds: "2026-11-22 17:32:10 UTC" */
/* Names the stores that the job must read or write and that do not answer some agents, separated by
 * semicolons: "store lab has not answered agent n1 since 2026-11-22 17:32:10 UTC: cannot reach ...". Appends
 * nothing when all answer, or there is no such job. */
void words_stores_down(struct buf *out, struct core *core, uint64_t request, uint32_t member);
/* "request 7 to succeed: 3 of 10 jobs done", "job 7.3 to end". */
void words_dependency(struct buf *out, const struct core_dependency *d);
/* "waits for request 7 to succeed: 3 of 10 jobs done, and for others"; appends nothing when the job waits
 * for no other. */
void words_dependencies(struct buf *out, struct core *core, uint64_t request, uint32_t member);
