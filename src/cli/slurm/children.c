#include "cli/slurm/children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/system/program.h"
#include "cli/slurm/slurm.h"

static int prepare_words(const char *const *words, struct args *all, struct buf *path)
{
        struct err err = {""};

        if (program_find("drover", path, &err) != 0)
                return slurm_error(1, "%s", err.text);
        args_add(all, STR("drover"));
        for (; *words; words++)
                args_add(all, str_of(*words));
        fflush(NULL);
        return 0;
}

int children_drover(const char *const *words, bool quiet)
{
        ARGS_CLEANUP struct args all = {0};
        BUF_CLEANUP struct buf path = {0};
        int status = 0;
        pid_t pid;

        if (prepare_words(words, &all, &path) != 0)
                return 1;
        pid = fork();
        if (pid == 0) {
                int fd = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

                if (fd >= 0) {
                        dup2(fd, STDOUT_FILENO);
                        dup2(fd, STDERR_FILENO);
                }
                execv(buf_z(&path), all.v);
                _exit(127);
        }
        if (pid < 0)
                return slurm_error(1, "drover could not be run: %s", strerror(errno));
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int children_become(const char *const *words)
{
        ARGS_CLEANUP struct args all = {0};
        BUF_CLEANUP struct buf path = {0};

        if (prepare_words(words, &all, &path) != 0)
                return 1;
        execv(buf_z(&path), all.v);
        return slurm_error(1, "drover could not be run: %s", strerror(errno));
}
