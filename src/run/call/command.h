/* command: a program that is run for what it prints. Never through a shell. */
#pragma once
#include "base/args.h"
#include "base/buf.h"
#include "ev/loop.h"

#define COMMAND_OUTPUT_MAX (64u << 20)

/* Begins every command, however it is run (user command.h). */
struct command {
        void (*cancel)(struct command *c);
        void (*end)(struct command *c, int64_t grace_ms); /* NULL: it cannot */
        void (*complaints)(const struct command *c,
                           struct buf *out); /* NULL: they are not known before its end */
};
/* status as waitpid's; -1: it could not be started, was ended at its deadline, or was ended for having
 * printed more than COMMAND_OUTPUT_MAX, so that what there is may not be taken for all; `errors` says so. The
 * texts are borrowed for the call. Called once, from the loop; then the command is freed. */
typedef void command_done_fn(void *arg, int status, struct str out, struct str errors);

/* The command runs in a session of its own; it gets SIGTERM when we die, and whatever it has started and left
 * in its session is ended with it when timeout_ms are over or it has printed too much. envp NULL: ours.
 * `input` is its standard input. */
struct command *command_run(struct loop *l, const struct args *argv, char *const *envp, struct str input,
                            int64_t timeout_ms, command_done_fn *done, void *arg);
void command_cancel(struct command *c); /* ends it; done is not called. NULL is fine */
/* Nobody wants it any more: SIGTERM, and after grace_ms SIGKILL. done is called as ever, once nothing of it
 * is left. NULL is fine. */
void command_end(struct command *c, int64_t grace_ms);
/* What it has written to standard error until now, appended; nothing, if that is not known before its end. */
void command_complaints(const struct command *c, struct buf *out);
/* A descriptor to read the text from, the caller's; -1: there is none, or, with a text, errno says why. */
int command_input(struct str input);
/* The same at once, and waits for it, or kills it after so long; what it prints is not looked at. For when we
 * end. */
void command_now(const struct args *argv, char *const *envp, struct str input, int timeout_ms);
