/* drover-init: the first process of a container that podman or docker makes for a job.
 *
 *   drover-init -- PROGRAM ARGUMENT...
 *
 * An engine opens the folders that it mounts by their names. Between the agent's look at a name and that
 * moment another job of the same user may put a link in the name's place, and the container would show a
 * folder that is hidden from jobs. The mounts cannot be changed from outside once they are made, so this
 * program compares them, before the job's program begins, with what the agent looked at:
 * DROVER_MOUNT_N=DEVICE:INODE:PATH in the environment, both numbers in hexadecimal. The program does not see
 * these variables.
 *
 * Afterwards it does what every init of a container does: it starts the program, passes signals on to it,
 * takes in orphans, and ends as the program does, by which the kernel ends all other processes of the
 * container.
 *
 * A command in a container that runs already (podman exec, docker exec) is started by this program as well,
 * which then is not the first process: it checks the same mounts and becomes the command. So a command that
 * is started before the first process has checked them sees nothing either.
 *
 * Diagnostics: a line on standard error. Exit code 125 after "Error: ", as the engine's own failures, if a
 * mount is another one; 127 after "ERROR (drover-init): " if the program cannot be executed.
 *
 * It is linked statically: the container has the image's libraries, or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/container/container.h"

static void __attribute__((noreturn, format(printf, 2, 3))) stop(int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vdprintf(2, fmt, ap);
        va_end(ap);
        exit(code);
}

/* text: DEVICE:INODE:PATH */
static void check_mount(const char *text)
{
        char *end;
        struct stat st;
        unsigned long long device = strtoull(text, &end, 16),
                           inode = *end == ':' ? strtoull(end + 1, &end, 16) : 0;
        const char *path = *end == ':' ? end + 1 : "";
        int fd = open(path, O_PATH | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &st) < 0)
                stop(125, "Error: drover-init cannot look at the mount %s: %s\n", path, strerror(errno));
        if (st.st_dev != device || st.st_ino != inode)
                stop(125, "Error: %s was replaced while the container was started\n", path);
        close(fd);
}

/* Removes the variables of the mounts from the environment, which are checked. */
static void check_mounts(char **envp)
{
        char **to = envp;
        unsigned checked = 0;

        for (; *envp; envp++) {
                const char *value = strchr(*envp, '=');

                if (!strncmp(*envp, MOUNT_VARIABLE, sizeof(MOUNT_VARIABLE) - 1) && value) {
                        check_mount(value + 1);
                        checked++;
                } else {
                        *to++ = *envp;
                }
        }
        *to = NULL;
        if (checked == 0)
                stop(125, "Error: drover-init is not told which mounts to check\n");
}

static void __attribute__((noreturn)) run_program(char **argv, const sigset_t *mask)
{
        /* a group of its own, in the foreground of a terminal if there is one */
        setpgid(0, 0);
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(0, getpgrp());
        signal(SIGTTOU, SIG_DFL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(argv[0], argv);
        stop(127, "ERROR (drover-init): failed to execute %s: %s\n", argv[0], strerror(errno));
}

static int exit_code(int status)
{
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
        sigset_t all, old;
        int first = argc > 1 && !strcmp(argv[1], "--") ? 2 : 1, status, signal_number;

        if (argc <= first)
                stop(125, "Error: usage: drover-init -- PROGRAM ARGUMENT...\n");
        prctl(PR_SET_DUMPABLE, 0, 0, 0,
              0); /* nobody looks through /proc/1/root before the mounts are known */
        check_mounts(environ);
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        if (getpid() != 1) {
                execvp(argv[first], argv + first);
                stop(127, "ERROR (drover-init): failed to execute %s: %s\n", argv[first], strerror(errno));
        }
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &old);
        pid_t child = fork(), ended;
        if (child < 0)
                stop(125, "Error: drover-init cannot start a process: %s\n", strerror(errno));
        if (child == 0)
                run_program(argv + first, &old);
        for (;;) {
                signal_number = sigwaitinfo(&all, NULL);
                if (signal_number > 0 && signal_number != SIGCHLD && signal_number != SIGTTIN &&
                    signal_number != SIGTTOU && signal_number != SIGTSTP)
                        kill(child, signal_number);
                while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
                        if (ended == child)
                                return exit_code(status);
        }
}
