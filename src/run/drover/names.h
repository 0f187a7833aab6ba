/* names: paths of outputs here and at the other server. */
#pragma once
#include "base/buf.h"

struct remote_task;

/* Appends the path of an output: beneath `dir`, or for a stream the path that the job asks for; *ret_append:
 * append to it. Returns 0, or -EINVAL: the name would leave the folder, or is reserved for the agent. */
int remote_destination(const struct remote_task *t, const char *dir, const char *name, struct buf *out,
                       bool *ret_append);
/* Appends dir/name. Returns 0, or -EINVAL: the path would not be in dir. */
int remote_path_in(struct buf *out, const char *dir, const char *name);
/* Appends the path of the API at which an output of an IN task is fetched. */
void remote_file_path(const struct remote_task *t, const char *name, struct buf *out);
/* Ends a task whose output cannot be written here. */
void remote_cannot_keep(struct remote_task *t, const char *name, const char *why, int error);
