/* ids: job ids of Slurm's commands: 123, 123_4 (a task of an array), 123_[5-9], and one number for each
 * task. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/slurm/tasks.h"

struct job_id {
        uint64_t request;
        bool whole;     /* no task was named */
        bool by_member; /* `member` is known, from the task's own number; tasks is empty */
        uint32_t member;
        struct tasks tasks;
        struct str step; /* "batch" of 123.batch; empty: none */
};
/* Parses an id. Returns 0, or -EINVAL with err. *ret is the caller's to deinit after success. */
int job_id_parse(struct str text, struct job_id *ret, struct err *err);
void job_id_deinit(struct job_id *id);
/* Appends the id that names the jobs to the server: "123", "123.4"; and, if tasks were named, an expression
 * that only they meet (constraint NULL: not wanted). */
void job_id_select(const struct job_id *id, struct buf *ret_id, struct buf *constraint);
