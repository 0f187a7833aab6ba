/* children: programs that a daemon starts and watches on its loop. Jobs are started by the shepherd instead.
 * A child has the three descriptors that it is given, and no others of ours (Linux 5.11). */
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
/* Starts a program. `exited` is called once, with the status of waitpid; the child is freed after it. 0;
 * -errno, also of a failed exec, with err. */
int child_spawn(struct loop *l, const struct child_spec *spec,
                void (*exited)(void *arg, struct child *c, int status), void *arg, struct child **ret,
                struct err *err);
pid_t child_pid(const struct child *c);
void child_kill(struct child *c, int signo);
/* Kills it and waits until it has ended; frees it without calling `exited`. */
void child_end(struct child *c);
void child_forget(struct child *c); /* no callback any more; it is still reaped */
