/* send: sends a task's files to the other server, unless it has them already. */
#pragma once

struct remote_task;

/* Sends the listed files of a FRESH task one after the other; then the task is READY. */
void remote_send_files(struct remote_task *t);
