/* container: the command lines of the container engines.
 *
 * A step with an image is a program in a container: podman's, docker's or apptainer's (singularity is the
 * same under its old name). This module turns a queue's settings, an image and a step's words into the words
 * of the engine, and reads what the engine says. Pure: it runs nothing; whoever starts the engine does, and
 * never through a shell. So the same words start a container here, under the shepherd, and from a batch
 * system's script on a node.
 *
 * What is asked of every engine: the program is a child of an init in a process namespace of its own, so that
 * signals reach it and nothing of it survives the container; it runs as the agent's user, without
 * capabilities and without a way to gain any; it sees the image, the job's folder (at the same path, unless
 * the job names another), and what the settings mount. The engine ends with the program's exit code, or 128
 * and a signal's number.
 *
 * Where the limits are: apptainer, and podman with crun, run the container in the control group that they
 * were started in (`in_place`); the others make one of their own, and are told the limits.
 *
 * Sources: podman-run(1), podman-images(1) of podman 4.3; docker-run(1) of docker 20.10; the apptainer 1.1
 * user guide, "apptainer exec", "Environment and Metadata", and what apptainer 1.4.5 does.
 */
#pragma once
#include "base/args.h"
#include "base/err.h"
#include "run/runner.h"

enum container_engine { CONTAINER_NONE, CONTAINER_PODMAN, CONTAINER_DOCKER, CONTAINER_APPTAINER };
enum container_pull { CONTAINER_MISSING, CONTAINER_NEVER, CONTAINER_ALWAYS };

#define CONTAINER_FOLDER ".drover_container" /* .STEP in the sandbox: where the engine is started */
#define CONTAINER_LABEL  "org.drover.agent"  /* of every container: the agent's instance */

/* What a queue's file says under `container`. */
struct container_settings {
        bool automatic; /* engine: the first of podman, apptainer, docker that works */
        enum container_engine engine;
        char *program; /* NULL: the engine's name */
        enum container_pull pull;
        char *network;                    /* of jobs that name none; NULL: the engine's own */
        struct args images;               /* patterns of names; empty: any */
        struct args networks;             /* that a job may name; empty: none and host */
        struct args mounts;               /* PATH[:PATH][:ro] */
        struct args options, run_options; /* words before, and behind, the engine's verb */
        char *folder; /* not of the file: where images are kept as files; NULL: apptainer fetches as it starts
                       */
};
/* Words "name value", a list's name once for each. 0, or -EINVAL with err; free with deinit either way. */
int container_settings_read(struct container_settings *s, const struct run_word *words, size_t count,
                            struct err *err);
void container_settings_deinit(struct container_settings *s);
const char *container_engine_name(enum container_engine e);
const char *container_program(const struct container_settings *s, enum container_engine e);

/* The image as the engine is told it: a registry's name whole ("busybox" is
 * docker.io/library/busybox:latest), a path or another kind of URL as it is. A path has no ".." in it; in the
 * job's folder it begins with "./". 0, or -EINVAL with err: the engine cannot run such an image. */
int container_image(enum container_engine e, struct str image, struct buf *out, struct err *err);
/* Is the image one that is fetched into `folder`? Then the path of its file is appended to out (NULL: not
 * wanted). Only apptainer's are, and only a registry's. */
bool container_keeps(const struct container_settings *s, enum container_engine e, const char *image,
                     struct buf *out);
/* The image's name of the file's, appended; false: it is none that container_keeps gave. */
bool container_kept_read(struct str file, struct buf *out);
/* May it be run? `image` as container_image gave it; patterns with '*' and '?'. What apptainer fetches as it
 * starts a queue that pulls none does not run. */
bool container_image_allowed(const struct container_settings *s, enum container_engine e, struct str image);
/* The same, and its network, as a condition on a job's ad. `here` (NULL: not known): the images that are
 * there, for a queue that pulls none. */
void container_requirement(const struct container_settings *s, enum container_engine e,
                           const struct args *here, struct buf *out);
/* That a job names this image (as container_image gave it), however it is written: true, or else. */
void container_is_image(const char *image, struct buf *out);
/* NULL: allowed. Else why not. */
const char *container_network_refused(const struct container_settings *s, const char *network);

/* How the engine is here, as it told. */
struct container_host {
        enum container_engine engine;
        bool in_place, rootless;
        char version[32];
};
void container_probe(const struct container_settings *s, enum container_engine e, struct args *out);
bool container_probed(enum container_engine e, struct str answer, struct container_host *ret);

/* A container to be started. Strings are borrowed; NULL where there is none. */
struct container_job {
        const char *name;     /* of the container, see container_name */
        const char *instance; /* of the agent */
        const char *image;    /* as container_image gave it */
        const char *network;
        const char *sandbox;  /* here */
        const char *target;   /* in the container; NULL: the same */
        const char *home;     /* in the container, for engines that are told it; NULL: the job's folder */
        const char *cwd;      /* in the container; if it is not in the sandbox, it is mounted too */
        char *const *covered; /* folders beneath cwd that stay empty, ended by NULL; NULL: none */
        const char *program, *mount_program; /* the latter: is here, and is mounted, read-only */
        bool override_entrypoint;
        char *const *argv;      /* [0] is not looked at */
        const struct args *env; /* words, see container_environment */
        const char *env_file;   /* and the file */
        unsigned uid, gid;
        bool one_id; /* podman without root, and its user has no other numbers to give: 0 is his there */
        uint64_t memory_bytes, cpus_milli, pids; /* told to engines that are not in place */
        uint64_t files, processes; /* hard limits of ours, which podman would raise; 0: not known */
        const char *gpus;          /* ids, parted by commas */
        bool self_removing;        /* nobody will remove it */
};
/* Parts the job's environment: what is plain (no blank at an end, no quote, backslash, '#', '$' or line end,
 * and not very long) goes into *file, one variable a line; the rest is told as words. Engines read such files
 * with different ideas of quoting; words are seen by everybody who may list processes. Apptainer takes
 * variables from its own environment, with a prefix: *engine_env; of those whose name no shell can have,
 * none. */
void container_environment(const struct container_settings *s, enum container_engine e, char *const *envp,
                           struct buf *file, struct args *words, struct args *engine_env);
/* The words that start it, the program first. 0, or -EINVAL with err. */
int container_start(const struct container_settings *s, const struct container_host *h,
                    const struct container_job *j, struct args *out, struct err *err);

/* A command in a container that runs, of podman or docker. It has the container's user, environment and
 * folder. */
struct container_command {
        char *const *argv;
        size_t argc;
        const struct args *env; /* NAME=VALUE; NULL: none */
        bool input;             /* it reads the standard input of the engine that is started for it */
        bool terminal;          /* which is a terminal */
};
void container_exec(const struct container_settings *s, enum container_engine e, const char *name,
                    const struct container_command *x, struct args *out);

/* "drover-<instance, first 8>-<request>.<member>.<fence>.<step>" */
void container_name(const char *instance, struct run_id id, char room[96]);
bool container_name_read(struct str name, struct run_id *ret);

/* Words for the rest of what an engine is asked, or a tool in its place. Empty: there is no such thing, and
 * no need of it. */
void container_pull(const struct container_settings *s, enum container_engine e, const char *image,
                    struct args *out);
void container_exists(const struct container_settings *s, enum container_engine e, const char *image,
                      struct args *out); /* exit code 0: the image is here */
void container_images(const struct container_settings *s, enum container_engine e, struct args *out);
void container_list(const struct container_settings *s, enum container_engine e, const char *instance,
                    struct args *out); /* a name a line */
void container_remove(const struct container_settings *s, enum container_engine e, const char *name,
                      struct args *out); /* and end, if it runs */
void container_inspect(const struct container_settings *s, enum container_engine e, const char *name,
                       struct args *out); /* "true ID": it was ended for its memory; the container's id */
/* Calls fn with each image of container_images' answer; the name as container_image has it. */
void container_each_image(enum container_engine e, struct str answer,
                          void (*fn)(void *arg, struct str name, uint64_t bytes), void *arg);

/* Why the engine ended so: its own failure, or the program's end? `tail` is the end of what was written to
 * standard error, in which the engine's words come last. */
enum container_end { CONTAINER_PROGRAM_ENDED, CONTAINER_NO_PROGRAM, CONTAINER_NO_IMAGE, CONTAINER_FAILED };
enum container_end container_ended(enum container_engine e, int exit_code, struct str tail,
                                   struct str *ret_words);
/* Is it (container_words) of a registry or a network in trouble, which passes? Of an image that is not there,
 * or not for us, it is not; nor is what nobody knows. Phrases of Go's net and os packages, of HTTP (RFC
 * 9110), and the error codes of the OCI distribution specification. */
bool container_passes(struct str words);
/* The last thing that an engine said: of several lines, the one that says what is wrong. */
struct str container_words(struct str errors);
