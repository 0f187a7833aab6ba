/* journal: what a restarted agent must know of a batch queue's tasks: an append-only file, written anew when
 * most of it is about what is gone. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

struct batch;
struct submission;
struct task;

struct journal { /* written by journal.c only */
        int fd;
        struct buf out, gone; /* gone: waits for batch_journal_may_go */
        uint64_t bytes, live; /* of the file; after it was written anew */
        int64_t again_ms;     /* boot clock; when it is tried again */
        bool failed;          /* an append; nothing is told to it before it is written anew */
};

int batch_journal_open(struct batch *b, struct err *err);
void batch_journal_close(struct batch *b);
void batch_journal_submission(struct batch *b, const struct submission *s);
void batch_journal_task(struct batch *b, const struct task *t);
void batch_journal_native(struct batch *b, const struct submission *s);
void batch_journal_kill(struct batch *b, const struct task *t);
void batch_journal_held(struct batch *b, const struct task *t); /* or not: as it is now */
void batch_journal_gone(struct batch *b, const struct task *t);
/* The agent has written down what became of those that are gone. */
void batch_journal_may_go(struct batch *b);
/* Writes what was told to the file, and with sync to the disk. 0 or -errno: then nothing may be submitted. */
int batch_journal_flush(struct batch *b, bool sync);
