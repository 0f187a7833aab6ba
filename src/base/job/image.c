#include "base/job/image.h"

static bool is_registry(struct str part)
{
        return str_find(part, '.') >= 0 || str_find(part, ':') >= 0 || str_eqz(part, "localhost");
}

enum image_kind image_name(struct str image, struct buf *out)
{
        struct str docker = STR("docker://");
        ptrdiff_t slash;

        if (str_istarts(image, docker))
                image = str_skip(image, docker.n);
        else if (str_search(image, STR("://")) >= 0) {
                buf_str(out, image);
                return IMAGE_URL;
        }
        if (str_starts(image, STR("/")) || str_starts(image, STR("./")) || str_ends(image, STR(".sif"))) {
                buf_str(out, image);
                return IMAGE_FILE;
        }
        slash = str_find(image, '/');
        if (slash < 0)
                buf_addz(out, "docker.io/library/");
        else if (!is_registry(str_head(image, (size_t)slash)))
                buf_addz(out, "docker.io/");
        else if (str_eqz(str_head(image, (size_t)slash), "docker.io") &&
                 str_find(str_skip(image, (size_t)slash + 1), '/') < 0) {
                buf_addz(out, "docker.io/library");
                image = str_skip(image, (size_t)slash);
        }
        buf_str(out, image);
        image = str_skip(image, (size_t)(str_rfind(image, '/') + 1));
        if (str_find(image, ':') < 0 && str_find(image, '@') < 0)
                buf_addz(out, ":latest");
        return IMAGE_NAME;
}

void image_url(struct str image, struct buf *out)
{
        BUF_CLEANUP struct buf name = {0};

        if (image_name(image, &name) == IMAGE_NAME)
                buf_addz(out, "docker://");
        buf_str(out, buf_view(&name));
}
