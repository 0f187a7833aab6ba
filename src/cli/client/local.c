#include "cli/client/local.h"

#include <sys/stat.h>

#include "base/macro.h"
#include "cli/client/ship.h"

bool local_path(struct str iwd, struct str name, struct buf *out)
{
        buf_reset(out);
        if (name.n == 0 || str_find(name, '$') >= 0)
                return false;
        if (str_starts(name, STR("file:///")))
                name = str_skip(name, 7);
        else if (str_search(name, STR("://")) >= 0)
                return false;
        if (name.p[0] != '/') {
                if (iwd.n == 0 || str_find(iwd, '$') >= 0)
                        return false;
                buf_str(out, iwd);
                buf_char(out, '/');
        }
        buf_str(out, name);
        return true;
}

static bool is_missing(struct str iwd, struct str name, struct buf *path)
{
        struct stat st;

        return local_path(iwd, name, path) && stat(buf_z(path), &st) != 0;
}

/* A program that is the image's, or what a grid's place has by that name, is not looked for. */
static bool program_is_ours(const struct form_part *p)
{
        BUF_CLEANUP struct buf image = {0};
        const struct form_attribute *transfer = form_get(p, STR("TransferExecutable"));

        return !ship_text(p, "ContainerImage", &image) && !ship_text(p, "DockerImage", &image) &&
               !form_get(p, STR("GridResource")) &&
               !(transfer && str_ieqz(str_trim(str_of(transfer->text)), "false"));
}

static void warn_part(struct form *f, const struct form_part *p, unsigned line)
{
        BUF_CLEANUP struct buf iwd = {0}, text = {0}, path = {0};
        struct str rest, element;
        struct stat st;

        if (ship_text(p, "Iwd", &iwd) && local_path(STR_NONE, buf_view(&iwd), &path) &&
            (stat(buf_z(&path), &st) != 0 || !S_ISDIR(st.st_mode)))
                form_warn(f, line, "initialdir: there is no folder %s here", buf_z(&path));
        if (program_is_ours(p) && ship_text(p, "Cmd", &text) &&
            is_missing(buf_view(&iwd), buf_view(&text), &path))
                form_warn(f, line, "executable: there is no %s here", buf_z(&path));
        buf_reset(&text);
        if (ship_text(p, "In", &text) && is_missing(buf_view(&iwd), buf_view(&text), &path))
                form_warn(f, line, "input: there is no %s here", buf_z(&path));
        buf_reset(&text);
        ship_text(p, "TransferInput", &text);
        for (rest = buf_view(&text); macro_cut(&rest, ',', &element);)
                if (is_missing(buf_view(&iwd), str_trim(element), &path)) {
                        form_warn(f, line, "transfer_input_files: there is no %s here", buf_z(&path));
                        return;
                }
}

void local_warn(struct form *f, bool no_lines)
{
        for (size_t i = 0; i < f->part_count; i++)
                warn_part(f, &f->parts[i], no_lines ? 0 : f->parts[i].line);
}
