/* container: builds the command lines of container engines and reads their answers.
 *
 * A step with an image is a program in a container: podman's, docker's or apptainer's (singularity is its
 * older name). This module turns a queue's settings, an image and a step's arguments into the engine's
 * arguments. It is pure and runs nothing; callers start the engine, never through a shell. So the same
 * arguments start a container here, under the shepherd, and from a batch system's script on a node.
 *
 * Every engine is asked for the same: the program is a child of an init in a PID namespace of its own, so
 * signals reach it and none of its processes survives the container; it runs as the agent's user, without
 * capabilities and with no way to gain any; it sees the image, the job's folder (at the same path, unless
 * the job names another), and what the settings mount. The engine ends with the program's exit code, or 128
 * plus a signal's number.
 *
 * Resource limits: apptainer, and podman with crun, run the container in the control group in which they
 * were started (`in_place`); the others make their own, and are given the limits.
 *
 * Sources: podman-run(1), podman-images(1) of podman 4.3; docker-run(1) of docker 20.10; the apptainer 1.1
 * user guide, "apptainer exec", "Environment and Metadata", and the behaviour of apptainer 1.4.5.
 */
#pragma once
#include "base/err.h"
#include "base/job/args.h"
#include "run/runner.h"

enum container_engine { CONTAINER_NONE, CONTAINER_PODMAN, CONTAINER_DOCKER, CONTAINER_APPTAINER };
enum container_pull { CONTAINER_MISSING, CONTAINER_NEVER, CONTAINER_ALWAYS };

#define CONTAINER_FOLDER ".drover_container" /* .STEP in the sandbox: working folder of the engine */
#define CONTAINER_LABEL  "org.drover.agent"  /* label of containers: the agent instance */
#define MOUNT_VARIABLE   "DROVER_MOUNT_" /* variables for drover-init alone: what the agent has looked at */

/* Settings of a queue's file under `container`. */
struct container_settings {
        bool automatic; /* engine: the first of podman, apptainer, docker that works */
        enum container_engine engine;
        char *program; /* NULL: the engine's name */
        enum container_pull pull;
        char *network;                    /* network of jobs that name none; NULL: the engine's default */
        struct args images;               /* patterns of allowed image names; empty: any */
        struct args networks;             /* networks that a job may name; empty: "none" and "host" */
        struct args mounts;               /* PATH[:PATH][:ro] */
        struct args options, run_options; /* arguments before the engine's verb, and behind it */
        char *folder; /* not a setting of the file: folder for images kept as files; NULL: apptainer fetches
                         an image when it starts */
};
/* Reads words "name value", the name of a list once for each element. Returns 0, or -EINVAL with err; deinit
 * is needed either way. */
int container_settings_read(struct container_settings *s, const struct run_word *words, size_t count,
                            struct err *err);
void container_settings_deinit(struct container_settings *s);
const char *container_engine_name(enum container_engine e);
const char *container_program(const struct container_settings *s, enum container_engine e);

/* Appends the image's name as the engine takes it: a registry's name in full ("busybox" is
 * docker.io/library/busybox:latest), a path or another kind of URL unchanged. A path has no ".." in it; one
 * in the job's folder begins with "./". Returns 0, or -EINVAL with err: the engine cannot run such an image.
 */
int container_image(enum container_engine e, struct str image, struct buf *out, struct err *err);
/* Returns whether the image is fetched into a file in `folder`, and then appends the file's path to `out`
 * (may be NULL). True only for apptainer and images of a registry. */
bool container_keeps(const struct container_settings *s, enum container_engine e, const char *image,
                     struct buf *out);
/* Appends the image's name that a file's name stands for; false: container_keeps does not make such names.
 */
bool container_kept_read(struct str file, struct buf *out);
/* Returns whether the settings allow the image, named as by container_image; patterns have '*' and '?'. An
 * image that apptainer would fetch when it starts is not allowed in a queue that never pulls. */
bool container_image_allowed(const struct container_settings *s, enum container_engine e, struct str image);
/* Appends the rules for images and networks as a Requirements expression on a job's ad. `here` (NULL: not
 * known): the images that are present, for a queue that never pulls. */
void container_requirement(const struct container_settings *s, enum container_engine e,
                           const struct args *here, struct buf *out);
/* Appends an expression that is true if a job names this image (as container_image gives it), in whatever
 * form. */
void container_is_image(const char *image, struct buf *out);
/* Returns NULL if the network is allowed, else the reason why not. */
const char *container_network_refused(const struct container_settings *s, const char *network);

/* Properties of the engine on this machine, from its own report. */
struct container_host {
        enum container_engine engine;
        bool in_place, rootless;
        char version[32];
};
void container_probe(const struct container_settings *s, enum container_engine e, struct args *out);
bool container_probed(enum container_engine e, struct str answer, struct container_host *ret);

struct container_mount {
        char *from, *to; /* absolute paths here and in the container */
};

/* A container to be started. Strings are borrowed; NULL where there is none. */
struct container_job {
        const char *name;     /* name of the container, see container_name */
        const char *instance; /* the agent's instance */
        const char *image;    /* as container_image gave it */
        const char *network;
        const char *sandbox;  /* path of the sandbox here */
        const char *target;   /* path in the container; NULL: the same */
        const char *home;     /* path in the container, for engines that take one; NULL: the job's folder */
        const char *cwd;      /* path in the container; mounted if it is not in the sandbox */
        char *const *covered; /* folders beneath cwd that stay empty, ended by NULL; NULL: none */
        /* Folder to start in instead of cwd, with own_workdir; NULL: the image's. */
        const char *workdir;
        bool own_workdir;
        const struct container_mount *mounts; /* files and folders outside of the sandbox to mount as well */
        size_t mount_count;
        const char *program;       /* "": what the image starts by itself, with the arguments */
        const char *mount_program; /* a path here, mounted read-only */
        bool override_entrypoint;
        char *const *argv;       /* argv[0] is ignored */
        const struct args *env;  /* arguments made by container_environment */
        const char *init;        /* program to be the container's init; NULL: the engine's own */
        const struct args *seen; /* arguments for that init, NULL: none */
        const char *env_file;    /* path of the file made by container_environment */
        unsigned uid, gid;
        bool one_id; /* rootless podman whose user has no subordinate ids: uid 0 in the container is the user
                      */
        uint64_t memory_bytes, cpus_milli, pids; /* limits for engines that are not in place */
        uint64_t files,
                processes;  /* the agent's hard limits, which podman would try to raise; 0: not known */
        const char *gpus;   /* ids, separated by commas */
        bool self_removing; /* the engine removes the container at its end */
};
/* Returns whether the container shows j->cwd by a mount of its own: it is not in the sandbox. */
bool container_shows_cwd(const struct container_job *j);
/* Splits the job's environment. Plain variables (no blank at an end, no quote, backslash, '#', '$' or line
 * end, and not very long) go into *file, one a line; the rest become arguments. Engines differ in how they
 * read quotes in such files, and arguments can be seen by everybody who may list processes. Apptainer takes
 * variables from its own environment, with a prefix: *engine_env; variables whose name no shell accepts are
 * left out there. A MOUNT_VARIABLE of the job's is left out everywhere: drover-init would believe it. */
void container_environment(const struct container_settings *s, enum container_engine e, char *const *envp,
                           struct buf *file, struct args *words, struct args *engine_env);
/* Appends the arguments that start the container, the engine's program first. Returns 0, or -EINVAL with
 * err. */
int container_start(const struct container_settings *s, const struct container_host *h,
                    const struct container_job *j, struct args *out, struct err *err);

/* A command to run in a running container of podman or docker. It gets the container's user, environment and
 * folder. */
struct container_command {
        char *const *argv;
        size_t argc;
        const struct args *env; /* NAME=VALUE; NULL: none */
        bool input;             /* reads the standard input of the engine's process */
        bool terminal;          /* the standard input is a terminal */
        bool init; /* the container was started with a container_job's init, which checks its mounts */
};
void container_exec(const struct container_settings *s, enum container_engine e, const char *name,
                    const struct container_command *x, struct args *out);

/* "drover-<instance, first 8>-<request>.<member>.<fence>.<step>" */
void container_name(const char *instance, struct run_id id, char room[96]);
bool container_name_read(struct str name, struct run_id *ret);

/* Arguments for the engine's other verbs, or for a tool that takes its place. Empty: the engine lacks the
 * verb and does not need it. */
void container_pull(const struct container_settings *s, enum container_engine e, const char *image,
                    struct args *out);
void container_exists(const struct container_settings *s, enum container_engine e, const char *image,
                      struct args *out); /* exit code 0: the image is here */
void container_images(const struct container_settings *s, enum container_engine e, struct args *out);
void container_list(const struct container_settings *s, enum container_engine e, const char *instance,
                    struct args *out); /* prints one name a line */
void container_remove(const struct container_settings *s, enum container_engine e, const char *name,
                      struct args *out); /* ends it first if it runs */
/* Prints "true ID" if it was ended for its memory, with the container's id. */
void container_inspect(const struct container_settings *s, enum container_engine e, const char *name,
                       struct args *out);
/* Calls fn with each image of the answer to container_images, named as by container_image. */
void container_each_image(enum container_engine e, struct str answer,
                          void (*fn)(void *arg, struct str name, uint64_t bytes), void *arg);

/* Tells whether the engine or the program has failed. `tail` is the end of standard error, where the
 * engine's messages come last; *ret_words borrows from it. */
enum container_end { CONTAINER_PROGRAM_ENDED, CONTAINER_NO_PROGRAM, CONTAINER_NO_IMAGE, CONTAINER_FAILED };
enum container_end container_ended(enum container_engine e, int exit_code, struct str tail,
                                   struct str *ret_words);
/* Returns whether the message (of container_words) reports a temporary failure of a registry or network.
 * False for an image that is missing or not accessible, and for unknown messages. Phrases are those of Go's
 * net and os packages, of HTTP (RFC 9110), and the error codes of the OCI distribution specification. */
bool container_passes(struct str words);
/* Returns the engine's last message: of several lines, the one that names the error. Borrows from errors. */
struct str container_words(struct str errors);
