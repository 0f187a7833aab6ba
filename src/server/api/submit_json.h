/* submit_json: the body of POST /v1/requests as a submission. Pure; fuzzed (tests/fuzz). */
#pragma once
#include "base/json_read.h"
#include "core/model/submission.h"

/* What it borrows (text of names, expressions, items) belongs to the document. items_upload[part] (an array
 * with one entry for each part; owned by the caller of submit_json_read, who frees it) names the upload that
 * holds the part's items, or NULL. 0; or -EINVAL, -E2BIG with err, a sentence that says which part and
 * attribute. Then s is empty. */
int submit_json_read(const json_t *doc, struct submission *s, const char ***ret_items_upload,
                     struct err *err);
uint64_t submit_json_rows(struct str items); /* how many rows there are: their ends are counted */
