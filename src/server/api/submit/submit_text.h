/* submit_text: a submit file that was posted as it is, as the JSON document of POST /v1/requests.
 *
 * The server reads no files for others: what the text would include, list from a folder, take from the
 * environment or have a command print is an error, and so are $EVAL and $STRING. There is no folder of a
 * submitter either: without initialdir the jobs have one of their own wherever they run, and the server keeps
 * their outputs. Any thread.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define SUBMIT_TEXT_MAX (64u << 10) /* bytes of a text; more comes as JSON */

/* Appends the document. uuid NULL: it gets none. Each warning is appended to `warnings` with its line, "; "
 * between them. 0; or -EINVAL, -E2BIG or another -errno with err, which names the line. */
int submit_text_read(struct str text, const char *uuid, struct buf *ret_json, struct buf *warnings,
                     struct err *err);
