/* submit_json: the body of POST /v1/requests as a submission. Pure; fuzzed (tests/fuzz). */
#pragma once
#include "base/format/json_read.h"
#include "core/model/submission.h"

/* Makes what a document may leave to the server: a uuid, and expressions of the plain values in "values" of a
 * part. 0; or -EINVAL with err, and the document may be half done. */
int submit_json_complete(json_t *doc, struct err *err);
/* Reads the document into s, which borrows its texts (names, expressions, items). ret_items_upload gets an
 * array with one entry for each part, which the caller frees: the upload that holds the part's items, or
 * NULL. 0; or -EINVAL, -E2BIG with err, a sentence that says which part and attribute, and then s is empty.
 */
int submit_json_read(const json_t *doc, struct submission *s, const char ***ret_items_upload,
                     struct err *err);
/* The uuid of the document. 0, -EINVAL with err. */
int submit_json_uuid(const json_t *doc, struct submission *s, struct err *err);
/* "attributes" and "late" of the document, packed (changes.h); an empty text takes an attribute away. 0,
 * -EINVAL with err. */
int submit_json_changes(const json_t *doc, struct buf *out, struct err *err);
uint64_t submit_json_rows(struct str items); /* how many rows there are: their ends are counted */
