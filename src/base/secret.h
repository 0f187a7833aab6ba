/* secret: what a process that holds others' secrets does about them. */
#pragma once
#include "base/buf.h"

/* No core is dumped of this process, neither to a file nor into a program (core(5)), which its children
 * inherit; and other processes of its user may neither trace it nor take its descriptors (PR_SET_DUMPABLE).
 * First in main(): what is before that is covered by the mode of the installed program, which its user may
 * run and not read (execve(2)). */
void secret_no_dumps(void);
/* Overwrites what is in it, and frees it. */
static inline void secret_deinit(struct buf *b)
{
        if (b->p)
                explicit_bzero(b->p, b->cap);
        buf_deinit(b);
}
#define SECRET_CLEANUP __attribute__((cleanup(secret_deinit)))
