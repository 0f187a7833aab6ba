/* job: follows a job at the other server. */
#pragma once

struct remote_task;

/* Asks for an IN task's job, and acts on the state that it is in. */
void remote_look(struct remote_task *t);
