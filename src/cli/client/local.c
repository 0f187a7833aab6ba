#include "cli/client/local.h"

#include <sys/stat.h>

#include "base/job/args.h"
#include "base/job/macro.h"
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
bool local_program(const struct form_part *p)
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
        if (local_program(p) && ship_text(p, "Cmd", &text) &&
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

static void warn_output(struct form *f, const struct form_part *p, const char *attribute, const char *word,
                        unsigned line)
{
        BUF_CLEANUP struct buf name = {0};

        if (p->rows * p->steps > 1 && ship_text(p, attribute, &name) && name.n &&
            !str_eqz(buf_view(&name), "/dev/null") && str_find(buf_view(&name), '$') < 0)
                form_warn(f, line,
                          "%s: all %llu jobs write %s, which keeps that of the last one to end; with "
                          "$(Process) in its name each has its own",
                          word, (unsigned long long)(p->rows * p->steps), buf_z(&name));
}

void local_warn(struct form *f, bool no_lines)
{
        for (size_t i = 0; i < f->part_count; i++) {
                unsigned line = no_lines ? 0 : f->parts[i].line;

                warn_part(f, &f->parts[i], line);
                warn_output(f, &f->parts[i], "Out", "output", line);
                warn_output(f, &f->parts[i], "Err", "error", line);
        }
}

/* ---- arguments */

static void read_arguments(const struct form_part *p, struct args *ret)
{
        BUF_CLEANUP struct buf text = {0};

        if (ship_text(p, "Arguments", &text))
                args_split_v2(ret, buf_view(&text), NULL);
        else if (ship_text(p, "Args", &text))
                args_split_v1(ret, buf_view(&text), NULL);
}

/* A file, or a folder with all that is in it, of that list is at this path in the job's folder. */
static bool is_sent(struct str list, struct str path)
{
        struct str element;

        while (macro_cut(&list, ',', &element)) {
                bool contents = str_ends(element, STR("/"));

                while (element.n > 1 && str_ends(element, STR("/")))
                        element.n--;
                element = str_skip(element, (size_t)(str_rfind(element, '/') + 1));
                if (contents || str_find(element, '$') >= 0 ||
                    (str_starts(path, element) && (path.n == element.n || path.p[element.n] == '/')))
                        return true;
        }
        return false;
}

static void warn_arguments(struct form *f, const struct form_part *p, unsigned line, bool remote)
{
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf should = {0}, iwd = {0}, sent = {0}, path = {0};

        ship_text(p, "ShouldTransferFiles", &should);
        if (str_ieqz(buf_view(&should), "NO") || (str_ieqz(buf_view(&should), "IN_PLACE") && !remote) ||
            !ship_text(p, "Iwd", &iwd))
                return;
        ship_text(p, "TransferInput", &sent);
        read_arguments(p, &words);
        for (size_t i = 0; i < words.n; i++) {
                struct str word = str_of(words.v[i]);
                struct stat st;

                while (str_starts(word, STR("./")))
                        word = str_skip(word, 2);
                if (word.n == 0 || word.p[0] == '/' || is_sent(buf_view(&sent), word) ||
                    !local_path(buf_view(&iwd), word, &path) || stat(buf_z(&path), &st) != 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                form_warn(f, line,
                          remote ? "arguments: %s is not sent to places that do not see this folder; "
                                   "transfer_input_files, or --send behind `submit`, sends it"
                                 : "arguments: %s is not in the folder of its own in which each job runs; "
                                   "transfer_input_files puts it there",
                          words.v[i]);
                return;
        }
}

void local_warn_arguments(struct form *f, bool no_lines, bool remote)
{
        for (size_t i = 0; i < f->part_count; i++)
                warn_arguments(f, &f->parts[i], no_lines ? 0 : f->parts[i].line, remote);
}
