#include "cli/slurm/script.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/fs.h"
#include "cli/client/world.h"
#include "cli/slurm/batch.h"

#define MAGIC "#SBATCH"

static bool is_file(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && access(path, R_OK) == 0;
}

static void find_script(const char *name, struct buf *path)
{
        struct str folders = str_of(getenv("PATH")), folder;
        char cwd[4096];

        if (name[0] == '/') {
                buf_addz(path, name);
                return;
        }
        if (is_file(name) || strchr(name, '/')) {
                if (getcwd(cwd, sizeof(cwd)))
                        buf_printf(path, "%s/", cwd);
                buf_addz(path, strncmp(name, "./", 2) == 0 ? name + 2 : name);
                return;
        }
        while (str_cut(&folders, ':', &folder)) {
                buf_reset(path);
                buf_printf(path, STR_FMT "/%s", STR_ARG(folder), name);
                if (folder.n && is_file(buf_z(path)))
                        return;
        }
        buf_reset(path);
        buf_addz(path, name);
}

int script_read(const char *name, struct buf *path, struct buf *text, struct err *err)
{
        int rc;

        text->max = BATCH_SCRIPT_MAX;
        if (!name) {
                rc = world_read_stdin(BATCH_SCRIPT_MAX, text, err);
        } else {
                find_script(name, path);
                rc = fs_read(AT_FDCWD, buf_z(path), BATCH_SCRIPT_MAX, text, err);
                if (rc == -ENOENT || rc == -EACCES)
                        rc = err_set(err, rc, "Unable to open file %s", name);
        }
        return rc < 0 ? rc : script_check(buf_view(text), err);
}

int script_check(struct str text, struct err *err)
{
        if (text.n == 0)
                return err_set(err, -EINVAL, "Batch script is empty!");
        if (memchr(text.p, 0, text.n))
                return err_set(err, -EINVAL, "a batch script cannot hold a null byte");
        if (!str_starts(text, STR("#!")))
                return err_set(
                        err, -EINVAL,
                        "This does not look like a batch script.  The first line must start with #! followed "
                        "by the path to an interpreter. For instance: #!/bin/sh");
        if (memmem(text.p, text.n, "\r\n", 2))
                return err_set(
                        err, -EINVAL,
                        "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks "
                        "(\\n).");
        return 0;
}

int script_words(struct str line, struct args *ret)
{
        BUF_CLEANUP struct buf word = {0};
        bool any = false, ended = false;
        char quote = 0;

        for (size_t i = 0; i <= line.n && !ended; i++) {
                char c = i < line.n ? line.p[i] : ' ';

                if (i == line.n && quote)
                        return -EINVAL;
                if (!quote && (isspace((unsigned char)c) || c == '#')) {
                        ended = c == '#';
                        if (any)
                                args_add(ret, buf_view(&word));
                        buf_reset(&word);
                        any = false;
                        continue;
                }
                any = true;
                if (c == '\\' && i + 1 < line.n)
                        buf_char(&word, line.p[++i]);
                else if (quote ? c == quote : c == '"' || c == '\'')
                        quote = quote ? 0 : c;
                else
                        buf_char(&word, c);
        }
        return 0;
}

int script_options(struct str text, struct words *w, struct err *err)
{
        struct str rest = text, line;
        unsigned number = 0;

        while (str_cut(&rest, '\n', &line)) {
                ARGS_CLEANUP struct args words = {0};
                struct str trimmed = str_trim(line);

                number++;
                if (trimmed.n && trimmed.p[0] != '#')
                        break;
                if (!str_starts(line, STR(MAGIC)))
                        continue;
                line = str_skip(line, strlen(MAGIC));
                if (str_starts(str_trim(line), STR(":")) || str_eqz(str_trim(line), "hetjob") ||
                    str_eqz(str_trim(line), "packjob"))
                        return err_set(err, -EINVAL, "line %u: jobs of several components are not supported",
                                       number);
                if (line.n && !isspace((unsigned char)line.p[0]))
                        continue;
                if (script_words(line, &words) != 0)
                        return err_set(err, -EINVAL, "line %u: a quote is not closed", number);
                if (words_read(w, WORDS_SCRIPT, words.n, (const char *const *)words.v, err) != 0)
                        return err_prefix(err, -EINVAL, "line %u", number);
        }
        return 0;
}
