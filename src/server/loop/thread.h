/* thread: a thread with its own loop that runs the tasks in its mailbox in order. The I/O thread, the
 * reader and the catalog's thread are such threads.
 *
 * Sockets and timers of the loop are made before thread_start; afterwards only tasks reach the thread. */
#pragma once
#include "server/loop/server.h"

struct thread;
struct thread *thread_new(struct server *s);
struct loop *thread_loop(struct thread *t);          /* borrowed */
struct mailbox *thread_mail(struct thread *t);       /* borrowed */
int thread_start(struct thread *t, struct err *err); /* 0, or -errno with err */
/* Both wait until the thread has ended. They return at once if it does not run or t is NULL. */
void thread_stop(struct thread *t);   /* ends it before the remaining tasks */
void thread_finish(struct thread *t); /* ends it after the tasks posted before */
/* After the thread has ended: drops the remaining tasks. No task may be posted afterwards. */
void thread_drop_tasks(struct thread *t);
void thread_free(struct thread *t); /* frees the loop and what thread_drop_tasks drops; accepts NULL */
