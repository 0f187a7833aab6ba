/* ids: how Slurm's commands name jobs: 123, 123_4 (a task of an array), 123_[5-9], and one number for each
 * task.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/slurm/tasks.h"

struct job_id {
        uint64_t request;
        bool whole;     /* no task was named */
        bool by_member; /* `member` is known, from a number of its own; tasks is empty */
        uint32_t member;
        struct tasks tasks;
        struct str step; /* "batch" of 123.batch; empty: none */
};
/* 0, or -EINVAL with err. *ret is the caller's to deinit after success. */
int job_id_parse(struct str text, struct job_id *ret, struct err *err);
void job_id_deinit(struct job_id *id);
/* The words that name the jobs to the server: "123", "123.4"; and, where tasks were named, an expression
 * (appended; else nothing; NULL: is not wanted) that only they fulfil. */
void job_id_select(const struct job_id *id, struct buf *ret_id, struct buf *constraint);
