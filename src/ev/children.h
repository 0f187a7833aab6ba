/* children: programs started by a daemon and watched on its loop. (Jobs are the shepherd's, not these.) A
 * child has the three descriptors that it is given, and none else of ours (Linux 5.11). */
#pragma once
#include <sys/types.h>

#include "base/err.h"
#include "ev/loop.h"

struct child;
struct child_spec {
        char *const *argv;                  /* argv[0] is the path, or a name looked up in PATH */
        char *const *envp;                  /* NULL: ours */
        int stdin_fd, stdout_fd, stderr_fd; /* -1: /dev/null for stdin, ours for the others */
        bool die_with_parent;               /* SIGTERM when we die */
        bool new_session;                   /* setsid */
};
/* status is waitpid's. Called once; then the child is freed. 0 or -errno (exec failures included, told by
 * err). */
int child_spawn(struct loop *l, const struct child_spec *spec,
                void (*exited)(void *arg, struct child *c, int status), void *arg, struct child **ret,
                struct err *err);
pid_t child_pid(const struct child *c);
void child_kill(struct child *c, int signo);
void child_forget(struct child *c); /* no callback any more; it is still reaped */
