/* expand: fills a member's macros into texts of its job's template: $(Process), the values of its item, and
 * the values that the match gave to $$(). */
#pragma once
#include "agent/model/attempt.h"

/* Appends the text with macros expanded; text may be NULL for "". Returns 0, or -EINVAL with err. */
int expand_text(const struct attempt *at, const char *text, struct buf *out, struct err *err);
/* Writes `job=7.42 fence=1 trace="UUID"` for lines of the log, into room of LOG_NAME bytes. Returns room. */
#define LOG_NAME 224
const char *expand_log(const struct attempt *at, char *room);
/* Sets at->iwd; call it once the item is known. A folder whose macros cannot be expanded stays unexpanded,
 * and its files will not be found. */
void expand_iwd(struct attempt *at);
/* Appends the path of the program to run: nothing for what a container's image starts by itself. Returns 0,
 * or -EINVAL with err. */
int expand_path(const struct attempt *at, const struct job_step *step, struct buf *out, struct err *err);
/* Appends the program's path for people, expanded as far as possible. */
void expand_program(const struct attempt *at, const struct job_step *step, struct buf *out);
/* Appends the step's standard input: a path or a name in the sandbox; nothing if it reads nothing. Returns
 * 0, or -EINVAL. */
int expand_input(const struct attempt *at, const struct job_step *step, struct buf *out, struct err *err);
/* Sets *ret_path to a stream's file beneath the sandbox (".drover_out.0"), NULL for none, and *ret_index to
 * its number. Returns 0, or -EINVAL with err. */
int expand_stream(const struct attempt *at, const char *text, struct buf *ret_path, struct err *err);
/* Returns whether the job names no file for the stream, so that its file in the sandbox is not delivered. */
bool expand_stream_is_kept(const struct attempt *at, unsigned step, bool is_stderr);
/* Returns the number of the file that a step's stdout or stderr is written to; *ret_kept: see
 * expand_stream_is_kept. -ENOENT: the stream is discarded; -EINVAL with err. */
int expand_stream_file(const struct attempt *at, unsigned step, bool is_stderr, bool *ret_kept,
                       struct err *err);
/* Appends the file's name beneath the sandbox: ".drover_out." and its number, or the job's own name for it;
 * nothing if its macros cannot be expanded. */
void expand_stream_name(const struct attempt *at, int index, struct buf *out);
/* Opens that file as sandbox_open_file does. Returns a descriptor, or -1. */
int expand_stream_open(const struct attempt *at, int index);
uint64_t expand_gpus(const struct job_template *m); /* GPUs that a job of the template asks for */
