/* The pager is the child process, so that the exit code stays this program's. A user who leaves the pager
 * early ends this program by SIGPIPE, as intended. */
#include "cli/terminal/pager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager; /* 0: none */

static const char *chosen(void)
{
        const char *own = getenv("DROVER_PAGER"), *everybodys = getenv("PAGER");
        const char *name = own ? own : everybodys;

        if (!name) /* the shell says if there is one */
                return "if command -v less >/dev/null; then exec less; else exec cat; fi";
        return *name && strcmp(name, "cat") != 0 ? name : NULL;
}

static _Noreturn void become_pager(const char *command, int from)
{
        dup2(from, STDIN_FILENO);
        if (from != STDIN_FILENO)
                close(from);
        setenv("LESS", "FRX", 0);
        setenv("LV", "-c", 0);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
}

void pager_start(void)
{
        const char *command = chosen();
        int ends[2];

        if (!command || pipe(ends) != 0)
                return;
        fflush(NULL);
        pager = fork();
        if (pager == 0) {
                close(ends[1]);
                become_pager(command, ends[0]);
        }
        close(ends[0]);
        if (pager > 0) {
                signal(SIGPIPE, SIG_DFL);
                dup2(ends[1], STDOUT_FILENO);
                if (isatty(STDERR_FILENO) == 1)
                        dup2(ends[1], STDERR_FILENO);
        }
        if (pager < 0)
                pager = 0;
        close(ends[1]);
}

void pager_end(void)
{
        int status;

        if (!pager)
                return;
        fflush(NULL);
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
                ;
        pager = 0;
}
