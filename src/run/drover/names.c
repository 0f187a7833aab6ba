/* Maps the names of outputs to paths here and at the other server. */
#include <errno.h>
#include <stdio.h>

#include "base/format/url.h"
#include "run/drover/names.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

/* Returns the path of the stream whose file has this name; NULL: it is not a stream's file. */
static const char *stream_of(const struct remote_task *t, const char *name, bool *ret_append)
{
        char out[40], err[40];

        snprintf(out, sizeof(out), ".drover_hop.%u.out", t->id.step);
        snprintf(err, sizeof(err), ".drover_hop.%u.err", t->id.step);
        *ret_append = !strcmp(name, out) ? t->out_append : t->err_append;
        return !strcmp(name, out) ? t->out : !strcmp(name, err) ? t->err : NULL;
}

int remote_path_in(struct buf *out, const char *dir, const char *name)
{
        struct str rest = str_of(name), one;

        while (rest.n && str_cut(&rest, '/', &one))
                if (one.n == 0 || str_eqz(one, ".") || str_eqz(one, ".."))
                        return -EINVAL;
        buf_printf(out, "%s/%s", dir, name);
        return *name && *name != '/' ? 0 : -EINVAL;
}

int remote_destination(const struct remote_task *t, const char *dir, const char *name, struct buf *out,
                       bool *ret_append)
{
        bool appending = false;
        const char *stream = stream_of(t, name, &appending);

        *ret_append = stream && appending;
        if (!stream && str_starts(str_of(name), STR(".drover_")) &&
            !str_starts(str_of(name), STR(".drover_out.")))
                return -EINVAL; /* such names are reserved for the agent */
        if (!stream || *stream != '/')
                return remote_path_in(out, dir, stream ? stream : name);
        buf_addz(out, stream);
        return 0;
}

void remote_file_path(const struct remote_task *t, const char *name, struct buf *out)
{
        buf_printf(out, "/v1/jobs/%llu.%u/files/", (unsigned long long)remote_number(t), t->member);
        struct str rest = str_of(name), part;
        for (bool first = true; str_cut(&rest, '/', &part); first = false) {
                if (!first)
                        buf_char(out, '/');
                url_escape(out, part);
        }
}

void remote_cannot_keep(struct remote_task *t, const char *name, const char *why, int error)
{
        BUF_CLEANUP struct buf b = {0};

        buf_printf(&b, "cannot keep its output%s%s: %s", *name ? " " : "", name, why);
        remote_fail(t, "output", error, buf_z(&b));
}
