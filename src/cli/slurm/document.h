/* document: what `--json` prints: the head of Slurm's v0.0.38 documents, and one list.
 *
 *   struct document d = {.list = "jobs"};
 *   document_item(&d, &out); (append a JSON object) ... document_end(&d, &out);
 */
#pragma once
#include "base/buf.h"

struct document {
        const char *list; /* the key of the list: "jobs" */
        size_t items;     /* items begun so far */
};
/* Appends what stands in front of the next item. */
void document_item(struct document *d, struct buf *out);
/* Closes the document; one without items has an empty list. */
void document_end(struct document *d, struct buf *out);
