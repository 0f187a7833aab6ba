/* describe: turns a step into a job of the other server: attributes, and the files that it needs. */
#pragma once
#include "run/drover/tasks.h"

#define REMOTE_CREDENTIALS "DroverCredentials"

/* Sets attributes, origin and files of a FRESH task. With a map of users its files are exposed first. */
void remote_describe(struct remote_task *t, const struct run_spec *spec);
/* With a map of users: the task's files are listed and readable. `program`, `input`: the program or the
 * standard input may be sent although it lies outside of the sandbox. */
void remote_exposed(struct remote_task *t, bool program, bool input);
/* Sets the attributes of a job that asks for the resources of this step and does nothing. */
void remote_words_like(struct remote_task *t, const struct run_spec *spec);
/* Appends a text as a ClassAd string literal. */
void remote_quoted(struct buf *out, struct str s);
