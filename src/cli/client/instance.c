#include "cli/client/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/fs.h"

#define SMALL_FILE_MAX (1u << 20)

static int absolute(const char *path, struct buf *ret, struct err *err)
{
        char cwd[INSTANCE_PATH_MAX];

        buf_reset(ret);
        if (path[0] != '/') {
                if (!getcwd(cwd, sizeof(cwd)))
                        return err_set(err, -errno, "the current directory has no name: %s", strerror(errno));
                buf_addz(ret, cwd);
                buf_char(ret, '/');
        }
        buf_addz(ret, path);
        while (ret->n > 1 && ret->p[ret->n - 1] == '/')
                ret->n--;
        return 0;
}

int instance_dir(const char *given, struct buf *ret, struct err *err)
{
        const char *e;

        if (given && *given)
                return absolute(given, ret, err);
        if ((e = getenv("DROVER_DIR")) && *e)
                return absolute(e, ret, err);
        buf_reset(ret);
        if ((e = getenv("XDG_STATE_HOME")) && *e == '/') {
                buf_printf(ret, "%s/drover", e);
                return 0;
        }
        if ((e = getenv("HOME")) && *e == '/') {
                buf_printf(ret, "%s/.local/state/drover", e);
                return 0;
        }
        return err_set(err, -ENOENT, "which folder? $HOME is not set: give --dir DIR or set $DROVER_DIR");
}

int instance_read(struct str dir, struct buf *text, struct view *ret)
{
        struct buf path BUF_CLEANUP = {0};
        int rc;

        buf_printf(&path, STR_FMT "/server.json", STR_ARG(dir));
        buf_reset(text);
        rc = fs_read(AT_FDCWD, buf_z(&path), SMALL_FILE_MAX, text, NULL);
        if (rc == -ENOENT) { /* the server of this folder may stand by: it tells what it is */
                buf_reset(&path);
                buf_printf(&path, STR_FMT "/standby.json", STR_ARG(dir));
                rc = fs_read(AT_FDCWD, buf_z(&path), SMALL_FILE_MAX, text, NULL);
        }
        if (rc != 0)
                return rc;
        *ret = view_of(buf_view(text));
        return view_type(*ret) == VIEW_OBJECT ? 0 : -EBADMSG;
}

struct str instance_socket(struct view address, struct buf *room)
{
        buf_reset(room);
        view_text(address, room);
        if (!str_starts(buf_view(room), STR("unix:/")))
                return STR_NONE;
        return str_skip(buf_view(room), 5);
}

int instance_line(const char *path, struct buf *ret)
{
        struct buf text BUF_CLEANUP = {0};
        struct str rest, line;
        int rc = fs_read(AT_FDCWD, path, SMALL_FILE_MAX, &text, NULL);

        if (rc != 0)
                return rc;
        rest = buf_view(&text);
        buf_reset(ret);
        if (str_cut(&rest, '\n', &line))
                buf_str(ret, str_trim(line));
        return ret->n ? 0 : -ENODATA;
}
