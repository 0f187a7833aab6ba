/* followed: the output of an attempt, or of a command beside it, while somebody reads it.
 *
 * A stream is one file after the other in the sandbox, one for each step that has its own. The files are held
 * open, so that the rest can be read when they have been delivered and removed. They belong to the job and
 * are not trusted: see sandbox_open_file. How many are followed and how many files are open is bounded, and
 * shared by the owners of the jobs.
 */
#pragma once
#include "agent/attempt/console.h"
#include "agent/model/attempt.h"
#include "base/share.h"

#define EXEC_ADOPTED UINT64_MAX /* number of a command of an earlier agent: only its task's step is known */

struct followed_file {
        int index;    /* ".drover_out.INDEX", or of a command: 0 or 1 */
        int fd;       /* -1: it is not there yet */
        bool trimmed; /* its beginning may be a hole: see output_tail.h */
};
struct followed_stream {
        struct followed_file *files; /* in the order of the steps */
        size_t count, cap;
};
/* Offsets of a delegated attempt count on through the steps, and through the attempts that the other server
 * makes of each. */
struct followed_remote {
        uint32_t step;    /* step of the last requested task */
        uint64_t attempt; /* there */
        uint64_t base[2]; /* bytes printed before that attempt */
        uint64_t next[2]; /* offset after the last byte that was sent */
};
struct followed_exec {
        uint64_t number;    /* 0: it is the attempt itself that is followed */
        struct run_id task; /* that runs the command */
        bool stays;         /* it does not end when nobody asks about it */
        bool terminal;      /* the output comes from the console */
        bool signaled;      /* with `over` */
        int32_t exit_code;
        char *error;             /* why it was not started; or NULL */
        struct console *console; /* of a command with input or a terminal; else NULL */
        uint64_t input_serial;   /* of input that still needs room; 0: none */
        int64_t input_until_ms;
};
struct followed {
        struct followed *next;
        struct agent *a;
        char *owner;
        uint64_t request;
        uint32_t member, fence;
        struct attempt *at;                /* NULL: it is gone */
        unsigned steps;                    /* number of steps whose files are listed */
        struct followed_stream streams[2]; /* stdout, stderr */
        bool over;                         /* nothing more is written */
        struct followed_remote remote;     /* for an attempt that was delegated to another server */
        struct followed_exec exec;         /* for a command beside the attempt */
        int64_t asked_ms, told_ms;         /* boot clock: last question, last answer */
};
struct followed_set {
        struct followed *first;
        struct share *share; /* of the owners */
        size_t file_count;   /* open files */
};

void followed_set_init(struct followed_set *all);
void followed_set_deinit(struct followed_set *all); /* the runner has ended: no command is killed */

/* exec: number of a command; 0: the attempt itself. Returns NULL if there is none. */
struct followed *followed_find(const struct followed_set *all, uint64_t request, uint32_t member,
                               uint32_t fence, uint64_t exec);
/* Returns NULL if too many attempts of the owner are followed. */
struct followed *followed_new(struct followed_set *all, struct attempt *at);
/* The same for a command beside the attempt. */
struct followed *followed_new_exec(struct followed_set *all, struct attempt *at, uint64_t number,
                                   struct run_id task);
/* A command that has not ended is killed, since nobody can ask for it any more. */
void followed_free(struct followed_set *all, struct followed *f);

void followed_open_files(struct followed_set *all, struct followed *f); /* opens those that exist by now */
/* Name in the sandbox of a file of the streams. */
void followed_file_name(const struct followed *f, int index, struct buf *out);
uint64_t followed_size(const struct followed *f, int stream); /* bytes in the files */
/* Appends at most `most` bytes; *offset becomes the offset of the first of them, which is behind the asked
 * one when the bytes between were trimmed. */
void followed_read(const struct followed *f, int stream, uint64_t *offset, size_t most, struct buf *out);
/* Step of the task of a command that stays. */
uint32_t followed_stays_step(uint64_t number);
