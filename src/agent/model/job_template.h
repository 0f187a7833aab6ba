/* job_template: what is the same for all jobs of one part of a request: commands, files, limits.
 *
 * Texts may hold macros, which expand.h replaces by a job's values. A text that was not said is empty, never
 * NULL. Made of a packed Template of wire/drover.proto, which is also what the journal keeps; immutable but
 * for `transfer`.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

/* The numbers are the wire's. */
enum job_transfer {
        TRANSFER_IF_NEEDED,
        TRANSFER_YES,
        TRANSFER_NO,
        TRANSFER_IN_PLACE /* as NO where paths of the submitter mean the same, else as IF_NEEDED */
};

struct spool_ref { /* a file that the server's spool has */
        char *name;
        unsigned char *sha256; /* 32 bytes; NULL: what was said is no checksum */
        uint64_t size;
        bool executable;
};

struct job_step {
        char *executable;
        char *arguments_v1, *arguments_v2; /* one of the two: HTCondor's old or new syntax (base/args.h) */
        char **argv;                       /* instead of arguments: exact words after the executable */
        size_t argv_count;
        char *environment_v2;
        char *stdin_file, *stdout_file, *stderr_file;
        bool transfer_executable, ignore_failure; /* ignore_failure: the next step follows all the same */
        char *container;                          /* the image that it runs in; empty: none */
        char *container_network; /* none, host, or what the place's engine knows; empty: as the place has it
                                  */
        char *container_target_dir; /* where the job's folder is in the container; empty: at the same path */
        bool container_pull_always, container_override_entrypoint;
};

struct job_attribute {
        char *name, *value;
};
struct job_origin {                       /* for a queue that hands jobs on to another server */
        char *servers;                    /* uuids of those passed, the sender's last, with blanks between */
        char *owner;                      /* at the first of them */
        char *label;                      /* of the job's data: "a,b" */
        char *path;                       /* what is fixed of the way behind this agent */
        char *job;                        /* its number at the first; empty: this is the first */
        uint32_t hops_left;               /* it may be handed on so many times, from here on */
        struct job_attribute *attributes; /* of the job, which go along: expressions */
        size_t attribute_count;
};

struct job_checkpointing { /* how a program says that it has made a checkpoint */
        bool by_signal;
        int32_t code;   /* exit code, or with by_signal the signal that ended it */
        int32_t signal; /* that asks it for one */
        char **files;   /* in the sandbox; none: what its outputs would be */
        size_t file_count;
};

struct job_resource {
        char *name; /* RequestGPUs is GPUs */
        uint32_t count;
};
struct job_remap {
        char *name, *path; /* in the sandbox; relative to iwd, or a URL */
};

struct job_template {
        uint64_t request;
        uint32_t part;
        char *owner, *iwd, *filesystem_domain;
        char **variables; /* names of an item's values */
        size_t variable_count;
        struct job_step *steps;
        size_t step_count;
        char **input_files; /* relative to iwd; used where the domain is the same */
        size_t input_file_count;
        char **output_files; /* in the sandbox; none, and all_outputs: every new file */
        size_t output_file_count;
        bool all_outputs, outputs_on_failure;
        enum job_transfer transfer;
        struct spool_ref *spooled; /* inputs that were shipped with the submit */
        size_t spooled_count;
        uint64_t cpus_milli, memory_bytes, disk_bytes, walltime_ms; /* 0: not said, no limit */
        struct job_remap *output_remaps;
        size_t output_remap_count;
        char *output_destination;       /* a URL beneath which outputs go, instead of iwd */
        struct job_resource *resources; /* besides processors, memory and disk */
        size_t resource_count;
        struct job_attribute *attributes; /* words for a batch system */
        size_t attribute_count;
        struct job_origin *origin;               /* NULL: none */
        struct job_checkpointing *checkpointing; /* NULL: it makes none */
        int32_t kill_signal;                     /* that asks it to end; 0: SIGTERM */
        uint64_t vacate_ms;                      /* how long it may take then; 0: as the agent's file says */
        bool keeps_when_evicted; /* its outputs are its checkpoint when it is vacated, however it ends */
        char **credentials;      /* names of what the job needs */
        size_t credential_count;
        char *modules;    /* environment modules to load, with commas */
        char *conda_env;  /* its folder, its name beneath conda's own, or a file that it is made of */
        char *python_env; /* a file that a Python environment is made of; empty: none */
        char *file_list;  /* of a dataset, see Template.file_list */
};

/* NULL: the bytes are no Template. */
struct job_template *job_template_unpack(const void *p, size_t n);
void job_template_pack(const struct job_template *t, struct buf *out); /* appends what unpack takes */
void job_template_set_transfer(struct job_template *t, enum job_transfer how);
void job_template_free(struct job_template *t); /* NULL is fine */
