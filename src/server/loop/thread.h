/* thread: a thread with a loop of its own that runs the tasks in its mailbox, in order: the I/O thread, the
 * reader, and the catalog's.
 *
 * What the loop is to watch is made before thread_start; from then on only tasks reach the thread.
 */
#pragma once
#include "server/loop/server.h"

struct thread;
struct thread *thread_new(struct server *s);
struct loop *thread_loop(struct thread *t);          /* borrowed */
struct mailbox *thread_mail(struct thread *t);       /* borrowed */
int thread_start(struct thread *t, struct err *err); /* 0, or -errno with err */
/* Each waits until the thread has ended; nothing happens when it does not run, or t is NULL. */
void thread_stop(struct thread *t);   /* at once */
void thread_finish(struct thread *t); /* once the tasks that were posted before have run */
/* After the thread has ended: drops the tasks that are left. No more may be posted. */
void thread_drop_tasks(struct thread *t);
void thread_free(struct thread *t); /* with its loop and what thread_drop_tasks drops; NULL is fine */
