/* submit_json: reads the body of POST /v1/requests as a submission. Pure; fuzzed (tests/fuzz). */
#pragma once
#include "base/format/json_read.h"
#include "core/model/submission.h"

/* Adds what a document may leave out: a uuid, and expressions for the plain values in "values" of a part.
 * Returns 0; or -EINVAL with err, and then some additions may be made. */
int submit_json_complete(json_t *doc, struct err *err);
/* Reads the document into s, which borrows its texts (names, expressions, items). ret_items_upload gets an
 * array with one entry for each part, which the caller frees: the upload that holds the part's items, or
 * NULL. Returns 0; or -EINVAL or -E2BIG with err, a sentence that names the part and the attribute, and
 * then s is empty. */
int submit_json_read(const json_t *doc, struct submission *s, const char ***ret_items_upload,
                     struct err *err);
/* Reads the uuid of the document. Returns 0, or -EINVAL with err. */
int submit_json_uuid(const json_t *doc, struct submission *s, struct err *err);
/* Packs "attributes" and "late" of the document (changes.h); an empty text removes an attribute. Returns
 * 0, or -EINVAL with err. */
int submit_json_changes(const json_t *doc, struct buf *out, struct err *err);
uint64_t submit_json_rows(struct str items); /* returns the number of rows, by their line ends */
