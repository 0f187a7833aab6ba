/* container_step: runs a step in a container.
 *
 * The program that is started is the engine; run/container/container.h makes its arguments. It is started in
 * a folder of its own in the sandbox (CONTAINER_FOLDER and the step's number), which holds, if the job
 * discards standard error, the engine's standard error, from which its error messages are read. The printable
 * part of the job's environment is in a file of the agent's folder, or, where the engine runs as the job's
 * user or on a node, in that folder. However the step ends, the container is removed before the step is
 * over.
 */
#pragma once
#include "agent/container/mounts.h"
#include "agent/model/attempt.h"
#include "run/container/container.h"

/* Returns whether a step has an image and an engine that enforces the limits, in a control group of the
 * container's own. */
bool container_step_elsewhere(const struct attempt *at);
/* Returns why the queue cannot run a step with this image; NULL: it can. Valid until the next call. */
const char *container_step_refused(const struct queue *q, const struct job_step *step);
/* Appends the image as named to the engine. Returns 0, or -EINVAL with err. */
int container_step_image(const struct attempt *at, const struct job_step *step, struct buf *out,
                         struct err *err);

struct container_step { /* storage for what a spec borrows */
        struct args argv, envp, after, words;
        struct buf program, cwd, streams, env_file, folder, workdir, init;
        struct mounts mounts;
        bool has_input;
        int input; /* with has_input: open descriptor of standard input */
};
#define CONTAINER_STEP_CLEANUP __attribute__((cleanup(container_step_deinit)))
void container_step_deinit(struct container_step *c);
/* Returns the path of the sandbox in the container, which may be `sandbox` itself. Borrowed. */
const char *container_step_target(const struct job_step *step, const char *sandbox);
/* Turns the spec of a step into a command of its engine. Returns 0; -EINVAL, or -errno of the folder, with
 * err. */
int container_step_start(struct attempt *at, const struct job_step *step, struct run_spec *spec,
                         struct container_step *c, struct err *err);
struct step_exec { /* a command beside the program of a step */
        char *const *argv;
        size_t argc;
        int fd;           /* standard input; -1: /dev/null. */
        bool terminal;    /* the fd is a terminal, and is used for all streams */
        const char *term; /* $TERM; "": none */
        bool unbounded;   /* its files, and those of what it starts, may have any size */
};
/* Returns why no such command can run in the container of the current step; NULL: it can, or there is no
 * container. */
const char *container_step_exec_refused(const struct attempt *at);
/* Turns the spec of such a command into a command of the engine that runs it in the step's container.
 * Returns 0, or -errno with err. */
int container_step_exec(struct attempt *at, struct run_spec *spec, const struct step_exec *exec,
                        struct container_step *c, struct err *err);
/* Called when the engine of the current step has ended. Returns true if the engine is asked about the end
 * first, after which attempt_step_over is called, or if the attempt is finished because the engine failed.
 */
bool container_step_ended(struct attempt *at, enum run_why why);
/* Called when an engine is known to work or not: completes steps that ended before. */
void container_steps_go_on(struct agent *a);
void container_step_lost(struct attempt *at); /* removes what is left of the container */
/* Called when all attempts are known: removes files that containers of others needed. */
void container_steps_sweep(struct agent *a);
void container_step_cancel(struct attempt *at); /* called when the attempt is freed */
