#include "cli/slurm/document.h"

static void document_begin(const struct document *d, struct buf *out)
{
        buf_printf(out,
                   "{\"meta\": {\"plugin\": {\"type\": \"openapi/v0.0.38\", \"name\": \"Drover\"}}, "
                   "\"errors\": [], \"%s\": [\n",
                   d->list);
}

void document_item(struct document *d, struct buf *out)
{
        if (d->items++ == 0)
                document_begin(d, out);
        else
                buf_addz(out, ",\n");
}

void document_end(struct document *d, struct buf *out)
{
        if (d->items == 0)
                document_begin(d, out);
        buf_addz(out, "\n]}\n");
}
