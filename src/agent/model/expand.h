/* expand: texts of a job's template with the member's macros filled in: $(Process), the values of its item,
 * and what a match has found for $$(). */
#pragma once
#include "agent/model/attempt.h"

/* The text with the member's macros filled in; "" for NULL. 0, or -EINVAL with err. */
int expand_text(const struct attempt *at, const char *text, struct buf *out, struct err *err);
/* Sets at->iwd, once the item is known. A folder whose macros cannot be expanded stays as it is written, and
 * its files are not found. */
void expand_iwd(struct attempt *at);
/* The program's path as it is run. 0, or -EINVAL with err. */
int expand_path(const struct attempt *at, const struct job_step *step, struct buf *out, struct err *err);
/* The same for people, as far as it can be expanded. */
void expand_program(const struct attempt *at, const struct job_step *step, struct buf *out);
/* What a step reads: a path, or a name in the sandbox; empty: nothing. 0, or -EINVAL. */
int expand_input(const struct attempt *at, const struct job_step *step, struct buf *out, struct err *err);
/* A stream's file beneath the sandbox (".drover_out.0"), NULL for none; *ret_index is its number. */
int expand_stream(const struct attempt *at, const char *text, struct buf *ret_path, struct err *err);
/* The job names no file for that stream, so it is one of the sandbox that is delivered nowhere. */
bool expand_stream_is_kept(const struct attempt *at, unsigned step, bool is_stderr);
/* The number of the file that a step's stdout or stderr is written to; *ret_kept as above. -ENOENT: it goes
 * nowhere; -EINVAL with err. */
int expand_stream_file(const struct attempt *at, unsigned step, bool is_stderr, bool *ret_kept,
                       struct err *err);
uint64_t expand_gpus(const struct job_template *m); /* that a job of it asks for */
