#include "cli/client/world.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"

int world_read_stdin(size_t max, struct buf *ret, struct err *err)
{
        for (size_t start = ret->n;;) {
                char chunk[16384];
                ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, -errno, "standard input: %s", strerror(errno));
                if (n == 0)
                        return 0;
                if (ret->n - start + (size_t)n > max)
                        return err_set(err, -EFBIG, "standard input is over %zu MiB", max >> 20);
                buf_add(ret, chunk, (size_t)n);
        }
}

static int world_read_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        if (strcmp(path, "-") == 0) /* `queue … from -` */
                return world_read_stdin(FORM_TEXT_MAX, ret, NULL);
        return fs_read(AT_FDCWD, path, FORM_TEXT_MAX, ret, NULL);
}

/* GLOB_MARK puts a slash behind each directory (links to directories too): that tells them from files without
 * a stat of ours. A folder that can't be read has no matches, as in a shell. */
static int glob_paths(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                      void *to)
{
        glob_t g;
        int rc = glob(pattern, GLOB_MARK, NULL, &g);

        (void)arg;
        if (rc == GLOB_NOMATCH)
                return 0;
        if (rc != 0)
                return rc == GLOB_NOSPACE ? -ENOMEM : -EIO;
        for (size_t i = 0; i < g.gl_pathc; i++) {
                struct str path = str_of(g.gl_pathv[i]);
                bool directory = str_ends(path, STR("/"));

                if ((want == 'f' && directory) || (want == 'd' && !directory))
                        continue;
                each(to, path);
        }
        globfree(&g);
        return 0;
}

static const char *get_environment(void *arg, const char *name)
{
        (void)arg;
        return getenv(name);
}

static int run_command(void *arg, const char *command, struct buf *ret_stdout)
{
        FILE *f = popen(command, "re");
        int status, rc = 0;

        (void)arg;
        if (!f)
                return -errno;
        ret_stdout->max = ret_stdout->max ? ret_stdout->max : FORM_TEXT_MAX;
        for (;;) {
                char bytes[16384];
                size_t n = fread(bytes, 1, sizeof(bytes), f);

                buf_add(ret_stdout, bytes, n);
                if (n == 0 || ret_stdout->overflow)
                        break;
        }
        if (ferror(f))
                rc = -EIO;
        status = pclose(f);
        if (ret_stdout->overflow)
                return -EFBIG;
        if (rc == 0 && status != 0)
                rc = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -ECANCELED;
        return rc;
}

static int file_size(void *arg, const char *path, uint64_t *ret)
{
        struct stat st;

        (void)arg;
        if (stat(path, &st) != 0)
                return -errno;
        *ret = (uint64_t)st.st_size;
        return 0;
}

int world_init(struct world *w, struct err *err)
{
        *w = (struct world){.form = {.arg = NULL,
                                     .read_file = world_read_file,
                                     .glob = glob_paths,
                                     .getenv = get_environment,
                                     .environment = (const char *const *)environ,
                                     .run = run_command,
                                     .size = file_size,
                                     .now_s = clock_wall_ms() / 1000}};
        if (!getcwd(w->cwd, sizeof(w->cwd)))
                return err_set(err, -errno, "the current directory has no name: %s", strerror(errno));
        w->form.cwd = w->cwd;
        if (getrandom(&w->form.random, sizeof(w->form.random), 0) != sizeof(w->form.random))
                w->form.random = (uint64_t)clock_mono_ns();
        return 0;
}
