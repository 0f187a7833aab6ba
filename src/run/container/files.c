/* Images that are kept as files. Apptainer has no store that could be listed, and what it fetches as it
 * starts each job fetches by itself. So they are fetched before, into a folder of the agent's, under the
 * image's name with everything escaped that no file's name can have, and started from there. A file gets its
 * name when it is whole; one that runs may be replaced. */
#include <stdlib.h>

#include "base/format/hex.h"
#include "base/format/url.h"
#include "base/job/image.h"
#include "base/mem.h"
#include "run/container/container.h"

#define NAME_LENGTH 200 /* longest name of a file, with its suffix while it is written */
#define SUFFIX      ".sif"

bool container_keeps(const struct container_settings *s, enum container_engine e, const char *image,
                     struct buf *out)
{
        BUF_CLEANUP struct buf name = {0}, file = {0};
        enum image_kind kind = image_name(str_of(image), &name);

        if (e != CONTAINER_APPTAINER || !s->folder ||
            !(kind == IMAGE_NAME || str_starts(str_of(image), STR("oras://"))))
                return false;
        url_escape(&file, str_of(image));
        if (file.n > NAME_LENGTH)
                return false;
        if (out)
                buf_printf(out, "%s/%s" SUFFIX, s->folder, buf_z(&file));
        return true;
}

bool container_kept_read(struct str file, struct buf *out)
{
        if (!str_ends(file, STR(SUFFIX)))
                return false;
        file = str_head(file, file.n - strlen(SUFFIX));
        for (size_t i = 0; i < file.n; i++) {
                char c = file.p[i];

                if (c == '%') {
                        if (hex_read(str_head(str_skip(file, i + 1), 2), &c, 1) < 0)
                                return false;
                        i += 2;
                }
                buf_char(out, c);
        }
        return true;
}
