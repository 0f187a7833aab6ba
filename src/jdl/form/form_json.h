/* form_json: a form as the body of POST /v1/requests.
 *
 * {"uuid":…, "parts":[{"attributes":{name: expression text}, "late":[name…], "variables":[…], "items":"…" or
 * "items_upload":"…", "rows":n, "steps":n}], "spooled":[{"name","sha256","size","executable"}], "hold":…,
 * "edges":"…"}
 */
#pragma once
#include "base/format/json.h"
#include "jdl/form/form.h"

struct form_file {
        const char *name, *sha256; /* name in the job's folder; hex digest of an upload */
        uint64_t size;
        bool executable;
};
struct form_body {
        const char *uuid; /* NULL: left out */
        const struct form_file *spooled;
        size_t spooled_count;
        const char *const
                *items_uploads; /* for each part the upload that holds its items, or NULL; or NULL: none */
};

void form_write_json(struct buf *out, const struct form *f, const struct form_body *body);
