/* stage_task: one stage of an attempt. For the staging files only: stage.c (inputs, workers, reporting
 * results), stage_child.c (work of a child of the job's user) and stage_out.c (outputs and checkpoints).
 *
 * A stage belongs to its worker or child from stage_hand_over or stage_to_worker on, or while it is in
 * stages->children; stage_finish ends it. Only the work itself is done by worker threads; all else runs on
 * the loop's thread.
 */
#pragma once
#include "agent/model/attempt.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stage_work.h"
#include "ev/mailbox.h"

struct stage {
        struct mail mail;
        struct agent *a;
        struct attempt *at; /* NULL: cancelled; for the loop's thread only */
        struct stage_work w;
        struct stage *next;
        char *owner;                   /* owner of the job; NULL: no job, then no worker gets it */
        const struct shipped *shipped; /* valid while its inputs are listed */
        /* for stages done by a child of the job's user */
        bool prepare; /* the worker writes the task file first */
        struct run_id id;
        struct stage *child_next;
        uint64_t steps; /* steps: last reported progress; steps_ms: boot clock at its last change */
        int64_t steps_ms;
        bool given_up; /* it made no progress and is being ended */
        bool held;     /* its owner gets no jobs here until it has ended */
        uint64_t log_serial;
        char *log_owner;
        char log_user[64];
};

struct stages {
        struct workers *workers;
        char *held;               /* see stage_held */
        struct stage *children;   /* stages done by child processes */
        struct stage *logs;       /* user log lines that wait for earlier lines of the same owner */
        struct stage *logs_begun; /* user log lines that workers write now */
        uint32_t child_serial;
        unsigned file_calls; /* file operations under way */
};

/* stage.c */
struct stage *stage_new(struct attempt *at, enum stage_kind kind);
void stage_free(struct stage *s);
void stage_to_worker(struct stage *s);
/* Hands the stage to a worker, or with `users` to a child. The attempt waits for it. */
void stage_hand_over(struct stage *s);
void stage_finish(struct stage *s); /* reports the result and frees the stage */
/* Appends a sentence that says for how long there was no progress, and where. */
void stage_silence(struct buf *out, uint64_t ms, const char *where);
/* Detaches the attempt from the stage: the attempt goes back to the server's queue, or is held if its
 * outputs were being delivered. */
void stage_leave(struct stage *s, const char *why);

/* Returns whether the kernel finds the path's folder without asking any file system, and the folder is on
 * the file system of the sandboxes. A file can then be put there without waiting. */
bool stage_is_near(const struct agent *a, const char *path);

/* stage_child.c */
void stage_log_over(struct stage *s); /* called when a worker has written the lines or has failed */
void stage_child_begin(struct stage *s);
void stage_child_go_on(struct stage *s); /* called when the worker has written the task file */
/* Called every second. still: the agent itself was stopped, so that progress could not be seen. */
void stage_child_tick(struct agent *a, int64_t now, bool still);
void stage_done_credentials(struct attempt *at, struct stage *s);

/* stage_out.c */
void stage_done_out(struct attempt *at, struct stage *s);
