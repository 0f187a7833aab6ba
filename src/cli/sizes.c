#include "cli/sizes.h"

#include <sys/stat.h>

#include "base/macro.h"
#include "cli/ship.h"

/* An element's path here; false: it is somewhere else, or differs from member to member. */
static bool path_of(struct str iwd, struct str element, struct buf *out)
{
        buf_reset(out);
        if (element.n == 0 || str_find(element, '$') >= 0)
                return false;
        if (str_starts(element, STR("file:///")))
                element = str_skip(element, 7);
        else if (str_search(element, STR("://")) >= 0)
                return false;
        if (element.p[0] != '/') {
                if (iwd.n == 0 || str_find(iwd, '$') >= 0)
                        return false;
                buf_str(out, iwd);
                buf_char(out, '/');
        }
        buf_str(out, element);
        return true;
}

static void fill_part(struct form_part *p)
{
        BUF_CLEANUP struct buf iwd = {0}, list = {0}, path = {0}, sizes = {0};
        bool known = false, first = true;
        struct str rest, element;
        struct stat st;

        if (form_get(p, STR("TransferInputSizes")) || form_get(p, STR("TransferInputSizeMB")) ||
            !ship_text(p, "TransferInput", &list))
                return;
        ship_text(p, "Iwd", &iwd);
        buf_char(&sizes, '"');
        for (rest = buf_view(&list); macro_cut(&rest, ',', &element); first = false) {
                if (!first)
                        buf_char(&sizes, ',');
                if (!path_of(buf_view(&iwd), str_trim(element), &path) || stat(buf_z(&path), &st) != 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                buf_printf(&sizes, "%lld", (long long)st.st_size);
                known = true;
        }
        buf_char(&sizes, '"');
        if (known)
                form_set(p, STR("TransferInputSizes"), buf_view(&sizes), 0);
}

void sizes_fill(struct form *f)
{
        for (size_t i = 0; i < f->part_count; i++)
                fill_part(&f->parts[i]);
}
