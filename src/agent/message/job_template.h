/* job_template: the description that all jobs of one part of a request share: commands, files, limits.
 *
 * Texts may hold macros, which expand.h replaces by a job's values. A missing text is empty, never NULL.
 * Made from a packed Template of wire/drover.proto, which is also the form in the journal; immutable except
 * for `transfer`.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

/* Numbers are those of the protocol. */
enum job_transfer {
        TRANSFER_IF_NEEDED,
        TRANSFER_YES,
        TRANSFER_NO,
        TRANSFER_IN_PLACE /* as NO where the submitter's paths are valid here too, else as IF_NEEDED */
};

struct spool_ref { /* a file in the server's spool */
        char *name;
        unsigned char *sha256; /* 32 bytes; NULL: the message had no valid checksum */
        uint64_t size;
        bool executable;
};

struct job_step {
        char *executable;
        char *arguments_v1,
                *arguments_v2; /* at most one is set: HTCondor's old or new syntax (base/job/args.h) */
        char **argv;           /* in place of arguments: exact words after the executable */
        size_t argv_count;
        char *environment_v2;
        char *stdin_file, *stdout_file, *stderr_file;
        bool transfer_executable,
                ignore_failure;  /* ignore_failure: the next step runs even if this one fails */
        char *container;         /* container image; empty: none */
        char *container_network; /* none, host, or a network of the place's engine; empty: the place's default
                                  */
        char *container_target_dir; /* path of the job's folder in the container; empty: the same path as
                                       outside */
        char *container_workdir;    /* with own_workdir: initial working directory; empty: the image's */
        bool container_pull_always, container_override_entrypoint, container_own_workdir;
};

struct job_attribute {
        char *name, *value;
};
struct job_origin {         /* origin of a job, for queues that delegate to another server */
        char *servers;      /* uuids of the servers passed so far, the sender's last, separated by blanks */
        char *owner;        /* owner at the first server */
        char *label;        /* label of the job's data: "a,b" */
        char *path;         /* part of the path behind this agent that the author has fixed */
        char *job;          /* id at the first server; empty: this is the first */
        uint32_t hops_left; /* hops that are still allowed */
        char *trace;        /* the job's name in logs, with macros */
        struct job_attribute
                *attributes; /* attributes of the job that travel with it; values are expressions */
        size_t attribute_count;
};

struct job_checkpointing { /* how a program reports a checkpoint */
        bool by_signal;
        int32_t code;   /* exit code, or with by_signal the signal that ended it */
        int32_t signal; /* signal that asks for a checkpoint; 0: none */
        char **files;   /* names in the sandbox; none: the outputs */
        size_t file_count;
};

struct job_resource {
        char *name; /* "GPUs" for RequestGPUs */
        uint32_t count;
};
struct job_remap {
        char *name, *path; /* name: in the sandbox; path: relative to iwd, or a URL */
};

struct job_mount {
        char *name, *path; /* name: in the sandbox, a folder's ends with a slash; path: absolute, in the
                              container */
};

struct job_template {
        uint64_t request;
        uint32_t part;
        char *owner, *iwd, *filesystem_domain;
        char **variables; /* names of the item's values */
        size_t variable_count;
        struct job_step *steps;
        size_t step_count;
        char **input_files; /* relative to iwd; used where the filesystem domain is the same */
        size_t input_file_count;
        char **output_files; /* names in the sandbox; none, with all_outputs: every new file */
        size_t output_file_count;
        bool all_outputs, outputs_on_failure;
        enum job_transfer transfer;
        struct spool_ref *spooled; /* inputs shipped with the submit */
        size_t spooled_count;
        uint64_t cpus_milli, memory_bytes, disk_bytes, walltime_ms; /* 0: not given, no limit */
        struct job_remap *output_remaps;
        size_t output_remap_count;
        char *output_destination;       /* URL beneath which outputs are stored, in place of iwd */
        struct job_resource *resources; /* resources besides processors, memory and disk */
        size_t resource_count;
        struct job_attribute *attributes; /* attributes for a batch system */
        size_t attribute_count;
        struct job_origin *origin;               /* NULL: none */
        struct job_checkpointing *checkpointing; /* NULL: the program makes no checkpoints */
        int32_t kill_signal;                     /* signal that asks the program to end; 0: SIGTERM */
        uint64_t vacate_ms;      /* time that the program has to end; 0: the agent's configured time */
        bool keeps_when_evicted; /* when the job is vacated its outputs are its checkpoint, however it ends */
        char **credentials;      /* names of the credentials that the job needs */
        size_t credential_count;
        struct job_mount *mounts; /* mounts of the job's containers */
        size_t mount_count;
        bool streams_in_sandbox; /* named streams are files of these names in the sandbox, and are not
                                    delivered */
        char *modules;           /* environment modules to load, comma-separated */
        char *conda_env;  /* folder, name beneath conda's own, or a file from which the environment is made */
        char *python_env; /* file from which a Python environment is made; empty: none */
        char *file_list;  /* list of a dataset's files, see Template.file_list */
        bool streams_back[2];      /* stdout, stderr: see attempt/live_output.h */
        bool chirps;               /* the program may call the server */
        bool launches;             /* and start programs on other nodes of its job */
        uint64_t output_bytes_max; /* bytes that the job may send to its store, in all; 0: any number */
        bool register_outputs; /* the server is told which outputs were sent to URLs, with their checksums */
};

/* Unpacks a Template. Returns NULL if the bytes are malformed. */
struct job_template *job_template_unpack(const void *p, size_t n);
void job_template_pack(const struct job_template *t, struct buf *out); /* appends the packed form */
uint64_t job_template_nodes(
        const struct job_template *t); /* nodes that one job uses at the same time; at least 1 */
void job_template_set_transfer(struct job_template *t, enum job_transfer how);
void job_template_free(struct job_template *t); /* NULL is allowed */
