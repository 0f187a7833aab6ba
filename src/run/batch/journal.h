/* journal: the append-only file from which a restarted agent recovers a batch queue's tasks. The file is
 * rewritten when most of it is about tasks that are gone. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

struct batch;
struct submission;
struct task;

struct journal { /* written by journal.c only */
        int fd;
        struct buf out, gone; /* gone: records held back until batch_journal_may_go */
        uint64_t bytes, live; /* bytes: size of the file; live: its size after the last rewrite */
        int64_t again_ms;     /* boot clock; time of the next try to rewrite after a failure */
        bool failed;          /* an append failed; nothing is appended until the file has been rewritten */
};

int batch_journal_open(struct batch *b, struct err *err);
void batch_journal_close(struct batch *b);
void batch_journal_submission(struct batch *b, const struct submission *s);
void batch_journal_task(struct batch *b, const struct task *t);
void batch_journal_native(struct batch *b, const struct submission *s);
void batch_journal_kill(struct batch *b, const struct task *t);
void batch_journal_held(struct batch *b, const struct task *t); /* records t->held */
void batch_journal_gone(struct batch *b, const struct task *t);
/* The agent's own journal has the results of the tasks that are gone: their records may be written. */
void batch_journal_may_go(struct batch *b);
/* Writes the pending records to the file, and with `sync` to the disk. Returns 0 or -errno; after an error
 * nothing may be submitted. */
int batch_journal_flush(struct batch *b, bool sync);
