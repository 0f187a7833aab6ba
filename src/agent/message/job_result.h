/* job_result: how an attempt ended, as the server and the journal get it: a JobResult of wire/drover.proto.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

#define STEPS_MAX 64

struct attempt_name {
        uint64_t request;
        uint32_t fence, member;
};

/* How an attempt ended. Numbers are those of the protocol. */
enum outcome {
        OUTCOME_EXITED,
        OUTCOME_NOT_STARTED,
        OUTCOME_STAGING_FAILED,
        OUTCOME_LIMIT_EXCEEDED,
        OUTCOME_KILLED,
        OUTCOME_LOST,
        OUTCOMES
};

struct step_result {
        bool signaled;
        int32_t exit_code;             /* or the signal's number */
        uint64_t started_ms, ended_ms; /* Unix time */
        uint64_t printed[2];           /* bytes of stdout and stderr, of all steps so far; 0: not measured */
};

struct output_ref {
        char *name;
        unsigned char sha256[32];
        uint64_t size;
        uint32_t mode;
        uint64_t at; /* offset in the upload file, where one file holds all outputs; not in the packed form */
};

struct job_result {
        enum outcome outcome;
        bool set;           /* outcome and reason are set; later ones are ignored */
        bool is_checkpoint; /* the outputs are a checkpoint */
        unsigned step_count;
        struct step_result steps[STEPS_MAX];
        uint64_t started_ms, ended_ms; /* Unix time */
        uint64_t cpu_user_ms, cpu_system_ms, memory_peak_bytes, bytes_in, bytes_out;
        uint64_t energy_uj;   /* microjoules, as far as they were measured */
        uint64_t bytes_freed; /* of files that a placement job has removed */
        uint32_t hold_code;
        int32_t hold_subcode;
        char *reason; /* NULL: none */
        struct output_ref *outputs;
        size_t output_count, output_cap;
        struct output_ref *sent; /* outputs sent to URLs, which are their names; with register_outputs only */
        size_t sent_count, sent_cap;
        struct stream_tail {
                char *bytes; /* the end of the stream; NULL: none, or not read yet */
                size_t count;
                uint64_t size; /* bytes of the whole stream */
        } tails[2];            /* stdout and stderr */
};

/* Appends the packed form. */
void job_result_pack(const struct attempt_name *name, const struct job_result *r, struct buf *out);
/* Returns 0 and a result that owns its texts and lists (job_result_deinit), or -EINVAL if the bytes are
 * malformed. Steps after STEPS_MAX are dropped. */
int job_result_unpack(const void *p, size_t n, struct attempt_name *ret_name, struct job_result *ret);
void job_result_deinit(struct job_result *r);
