/* keywords: counts which keywords of the submit language requests have had, by month and owner.
 *
 * A keyword counts once for a request, with the request's jobs, and the request itself as the empty keyword;
 * a preset counts with its name (job_policy=night), a part of a SUMS description as sums:filesPerHour.
 * Keywords that leave no attribute, as files_per_job, and those of SUMS come as words in the attributes
 * SubmitKeywords and SumsKeywords. Kept in one blob that is written every ten minutes and when the server
 * stops, so a crash may lose the counts of ten minutes. Core thread.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define KEYWORDS_COUNTS_MAX 50000u /* counts; when there are more, those of the oldest month are dropped */

struct config_presets;
struct keywords;
struct submission;
struct buf;

struct keywords *keywords_new(void);
void keywords_free(struct keywords *k); /* NULL is fine */
/* Counts an accepted submission of `jobs` jobs, as far as the recorders of the settings record it. */
void keywords_add(struct keywords *k, const struct config_presets *p, const struct submission *s,
                  uint64_t jobs);
/* Appends the record of all counts, and reads one into an empty object. 0, or -EBADMSG with err. */
void keywords_pack(const struct keywords *k, struct buf *out);
int keywords_unpack(struct keywords *k, struct str record, struct err *err);
uint64_t keywords_changes(const struct keywords *k); /* number of changes so far */

struct keyword_count {
        struct str month, owner, keyword; /* month: "2026-11"; keyword empty: requests with any */
        uint64_t requests, jobs;
};
/* Calls fn for each count of the months from the one of from_ms to that of to_ms (Unix), in no particular
 * order. */
void keywords_each(const struct keywords *k, int64_t from_ms, int64_t to_ms,
                   void (*fn)(void *arg, const struct keyword_count *c), void *arg);
