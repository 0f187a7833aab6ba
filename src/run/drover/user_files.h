/* user_files: with a map of users, files are opened with the user's rights, never with the agent's. */
#pragma once
#include "run/drover/tasks.h"

/* Lists the files of a FRESH task and makes them readable for the agent, as the user; then remote_exposed()
 * is called. */
void remote_expose(struct remote_task *t);
/* Opens a file to send. Returns a descriptor or -errno. */
int remote_input(struct remote_task *t, const struct remote_file *file);
/* Makes a new file for the output of this index. Returns a descriptor or -errno. */
int remote_user_output(const struct remote_task *t, size_t index);
/* Moves the outputs of a FETCHING task to their paths, as the user; then the task is OVER. */
void remote_place(struct remote_task *t);
