/* submit_text: converts a description that was posted as text to the JSON document of POST /v1/requests: a
 * submit file, or one of SUMS or RDL.
 *
 * The server reads no files for a caller. A text that includes a file, lists a folder, or uses the
 * environment or a command's output is refused, and so are $EVAL and $STRING. There is no submit folder
 * either: without initialdir each job has a folder of its own where it runs, and the server keeps its
 * outputs. A dataset may be a query of the catalog, which the caller has to be able to make. Any thread. */
#pragma once
#include "base/system/uuid.h"
#include "jdl/form/form_json.h"

#define SUBMIT_TEXT_MAX  (64u << 10) /* bytes of a text; a larger submit must be JSON */
#define SUBMIT_LISTS_MAX (32u << 20) /* bytes of the names of a dataset's files */

/* A list of the names of a dataset's files, which belongs to the request like an upload. */
struct submit_list {
        char *name;
        struct buf text;
        char sha256[65];
};

struct submit_text {
        struct str text;
        const char *uuid; /* of the request */
        /* As in form_world. catalog NULL: the text is refused if it has a query, and wants_catalog is set. */
        int (*catalog)(void *arg, struct str name, struct str query, bool events, const char *order,
                       void (*fn)(void *to, const struct form_found *f), void *to, struct err *err);
        int (*time_limit)(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                          struct err *err);
        void *arg;
};
struct submit_document {
        bool wants_catalog;
        struct buf json;
        struct buf warnings; /* each with its line, separated by "; " */
        struct submit_list *lists;
        size_t list_count;
};
/* Fills *ret, which is zeroed before and deinitialised in any case. Returns 0; or -EINVAL, -E2BIG or another
 * -errno with err, which names the line. */
int submit_text_read(const struct submit_text *from, struct submit_document *ret, struct err *err);
void submit_document_deinit(struct submit_document *d);
