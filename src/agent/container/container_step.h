/* container_step: a step that runs in a container.
 *
 * What is started is the engine; its words come from run/container/container.h. It is started in a folder of
 * its own in the sandbox (CONTAINER_FOLDER and the step's number), which holds the plain part of the job's
 * environment and, where the job wants none, standard error: what the engine says when it fails is read from
 * there. At the end, whatever it was, the container is removed before the step is over.
 */
#pragma once
#include "agent/model/attempt.h"
#include "run/container/container.h"

/* Has any step an image, and are its limits the engine's, in a control group of the container's own? */
bool container_step_elsewhere(const struct attempt *at);
/* Why the queue cannot run a step with this image; NULL: it can. The text is valid until the next call. */
const char *container_step_refused(const struct queue *q, const struct job_step *step);
/* The image as the engine is told it. 0, or -EINVAL with err. */
int container_step_image(const struct attempt *at, const struct job_step *step, struct buf *out,
                         struct err *err);

struct container_step { /* keeps what a spec borrows */
        struct args argv, envp, after, words, covered;
        struct buf program, cwd, streams, env_file, folder;
};
#define CONTAINER_STEP_CLEANUP __attribute__((cleanup(container_step_deinit)))
void container_step_deinit(struct container_step *c);
/* Where the sandbox is in the container; `sandbox` if it is there, too. Borrowed. */
const char *container_step_target(const struct job_step *step, const char *sandbox);
/* Makes the spec of a step one of its engine. 0; -EINVAL, or -errno of the folder, with err. */
int container_step_start(struct attempt *at, const struct job_step *step, struct run_spec *spec,
                         struct container_step *c, struct err *err);
struct step_exec { /* a command beside the program of a step */
        char *const *argv;
        size_t argc;
        int fd;           /* its standard input; -1: /dev/null. Borrowed */
        bool terminal;    /* the fd is one, and all its streams */
        const char *term; /* $TERM; "": none */
};
/* Why no such command can be run in the container of the current step; NULL: it can, or there is none. */
const char *container_step_exec_refused(const struct attempt *at);
/* Makes the spec of such a command one of the engine that runs it in the step's container. 0, or -errno with
 * err. */
int container_step_exec(struct attempt *at, struct run_spec *spec, const struct step_exec *exec,
                        struct container_step *c, struct err *err);
/* The engine of the current step has ended. True: something is asked first, then attempt_step_over is called;
 * or the attempt is finished, because the engine has failed. */
bool container_step_ended(struct attempt *at, enum run_why why);
void container_step_lost(struct attempt *at);   /* what is left of it is removed */
void container_step_cancel(struct attempt *at); /* it is freed */
