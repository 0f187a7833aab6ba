/* secret: protection of secrets in the memory of a process. */
#pragma once
#include "base/buf.h"

/* Turns off core dumps of this process and its children, to files and to programs (core(5)), and keeps
 * other processes of its user from tracing it or taking its descriptors (PR_SET_DUMPABLE).
 * Call this first in main(); before that, the mode of the installed program protects the process: its user
 * may run it and not read it (execve(2)). */
void secret_no_dumps(void);
/* Overwrites the buffer's bytes, and frees them. */
static inline void secret_deinit(struct buf *b)
{
        if (b->p)
                explicit_bzero(b->p, b->cap);
        buf_deinit(b);
}
#define SECRET_CLEANUP __attribute__((cleanup(secret_deinit)))
