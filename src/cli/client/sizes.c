#include "cli/client/sizes.h"

#include <sys/stat.h>

#include "base/job/macro.h"
#include "cli/client/local.h"
#include "cli/client/ship.h"

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
                if (!local_path(buf_view(&iwd), str_trim(element), &path) || stat(buf_z(&path), &st) != 0 ||
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
