/* fetch: brings the outputs of an ended job here. */
#pragma once

struct remote_task;

/* Brings the next output of a FETCHING task; when all are here the task is OVER. */
void remote_fetch(struct remote_task *t);
/* Removes the marks against appending a stream twice, once the task's end is in the journal. */
void remote_forget_marks(const struct remote_task *t);
