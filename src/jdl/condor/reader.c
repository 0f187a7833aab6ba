/* Messages of the reader, and the clauses that its files add to the requirements. */
#include "jdl/condor/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int reader_fail(struct reader *r, struct place at, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        err_vset(r->err, -EINVAL, fmt, ap);
        va_end(ap);
        return at.line ? err_prefix(r->err, -EINVAL, "%s:%u", at.file, at.line)
                       : err_prefix(r->err, -EINVAL, "%s", at.file ? at.file : "submit");
}

void reader_warn(struct reader *r, struct place at, const char *fmt, ...)
{
        BUF_CLEANUP struct buf text = {.max = 4096};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        if (at.file && at.line == 0)
                form_warn(r->form, 0, "%s: %s", at.file, buf_z(&text));
        else if (at.file && r->file_count && strcmp(at.file, r->files[0]) != 0)
                form_warn(r->form, 0, "%s:%u: %s", at.file, at.line, buf_z(&text));
        else
                form_warn(r->form, at.line, "%s", buf_z(&text));
}

const char *reader_reason(int rc)
{
        switch (rc) {
        case -ECANCELED: return "it ended with a failure";
        case -EFBIG:
        case -EMSGSIZE: return "there is too much of it";
        default: return strerror(-rc);
        }
}

void clause_add(struct buf *out, const char *fmt, ...)
{
        va_list ap;

        if (out->n)
                buf_addz(out, " && ");
        va_start(ap, fmt);
        buf_vprintf(out, fmt, ap);
        va_end(ap);
}
