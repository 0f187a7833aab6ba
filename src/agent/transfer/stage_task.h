/* stage_task: one stage of an attempt. For the files that stage: stage.c (inputs, the worker, the way back),
 * stage_child.c (what a child of the job's user does) and stage_out.c (outputs and checkpoints).
 *
 * A stage belongs to who does it, from stage_hand_over or stage_to_worker on or as one of stages->children;
 * stage_finish ends it. All but the worker's work is the loop's thread's.
 */
#pragma once
#include "agent/model/attempt.h"
#include "agent/transfer/stage.h"
#include "agent/transfer/stage_work.h"
#include "ev/mailbox.h"

struct stage {
        struct mail mail;
        struct agent *a;
        struct attempt *at; /* NULL: not wanted any more; the loop's thread only */
        struct stage_work w;
        struct stage *next;
        char *owner;                   /* whose job's files; NULL: of no job, which no worker gets */
        const struct shipped *shipped; /* while its inputs are listed */
        /* done by a child of the job's user */
        bool prepare; /* the worker writes the task first */
        struct run_id id;
        struct stage *child_next;
        uint64_t steps; /* that it has said; since then: boot clock */
        int64_t steps_ms;
        bool given_up; /* it makes no progress, and shall end */
        bool held;     /* so its owner gets no jobs here until it does */
        uint64_t log_serial;
        char *log_owner;
        char log_user[64];
};

struct stages {
        struct workers *workers;
        char *held;               /* see stage_held */
        struct stage *children;   /* that other processes do */
        struct stage *logs;       /* lines that wait for the ones before them of the same owner */
        struct stage *logs_begun; /* lines that workers write */
        uint32_t child_serial;
};

/* stage.c */
struct stage *stage_new(struct attempt *at, enum stage_kind kind);
void stage_free(struct stage *s);
void stage_to_worker(struct stage *s);
/* To the worker; with `users`, to a child. Its attempt waits for it. */
void stage_hand_over(struct stage *s);
void stage_finish(struct stage *s); /* tells who waits what came of it, and frees it */
/* Says that there was no progress for so long, and where. */
void stage_silence(struct buf *out, uint64_t ms, const char *where);
/* Its attempt waits for it no more: it goes back, or is held for its outputs. */
void stage_leave(struct stage *s, const char *why);

/* Is the folder of this path one that the kernel finds without asking any file system, and on that of the
 * sandboxes? Then nobody is waited for when a file is put there. */
bool stage_is_near(const struct agent *a, const char *path);

/* stage_child.c */
void stage_log_over(struct stage *s); /* a worker has written the lines, or could not */
void stage_child_begin(struct stage *s);
void stage_child_go_on(struct stage *s); /* the worker has written its task */
/* Every second. still: the agent stood still itself, and what it looks at with it. */
void stage_child_tick(struct agent *a, int64_t now, bool still);
void stage_done_credentials(struct attempt *at, struct stage *s);

/* stage_out.c */
void stage_done_out(struct attempt *at, struct stage *s);
