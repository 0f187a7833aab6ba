/* submit_text: converts a submit file that was posted as text to the JSON document of POST /v1/requests.
 *
 * The server reads no files for a caller. A text that includes a file, lists a folder, or uses the
 * environment or a command's output is refused, and so are $EVAL and $STRING. There is no submit folder
 * either: without initialdir each job has a folder of its own where it runs, and the server keeps its
 * outputs. Any thread. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define SUBMIT_TEXT_MAX (64u << 10) /* bytes of a text; a larger submit must be JSON */

/* Appends the document. uuid NULL: it gets none. Each warning is appended to `warnings` with its line,
 * separated by "; ". Returns 0; or -EINVAL, -E2BIG or another -errno with err, which names the line. */
int submit_text_read(struct str text, const char *uuid, struct buf *ret_json, struct buf *warnings,
                     struct err *err);
