/* command: runs a program and collects its output. No shell is involved. */
#pragma once
#include "base/buf.h"
#include "base/job/args.h"
#include "ev/loop.h"

#define COMMAND_OUTPUT_MAX (64u << 20)

/* First member of every kind of command, here and in user_command.h and request.h. */
struct command {
        void (*cancel)(struct command *c);
        void (*end)(struct command *c, int64_t grace_ms); /* NULL: not supported */
        void (*complaints)(const struct command *c,
                           struct buf *out); /* NULL: standard error is not known before its end */
};
/* Receives the end of a command. status: as of waitpid; -1 if it could not be started, was ended at its
 * deadline, or was ended for printing more than COMMAND_OUTPUT_MAX, when the output is incomplete; `errors`
 * says which. The texts are borrowed for the call. Called once, from the loop; the command is freed
 * afterwards. */
typedef void command_done_fn(void *arg, int status, struct str out, struct str errors);

/* Runs a command in a session of its own. It gets SIGTERM when the agent dies. What is left of its session
 * is killed after timeout_ms or when it has printed too much. envp NULL: the agent's own environment.
 * `input` becomes its standard input. */
struct command *command_run(struct loop *l, const struct args *argv, char *const *envp, struct str input,
                            int64_t timeout_ms, command_done_fn *done, void *arg);
void command_cancel(struct command *c); /* kills it and frees it; done is not called. NULL is fine */
/* Ends the command early: SIGTERM, and SIGKILL after grace_ms. done is called as usual, once none of its
 * processes is left. NULL is fine. */
void command_end(struct command *c, int64_t grace_ms);
/* Appends what the command has written to standard error so far; nothing if that is not known before its
 * end. */
void command_complaints(const struct command *c, struct buf *out);
/* Returns a descriptor, owned by the caller, from which the text can be read; -1: the text is empty, or
 * errno says why it failed. */
int command_input(struct str input);
/* Runs a command and waits for its end, or kills it after timeout_ms; its output is discarded. For use while
 * the agent shuts down. */
void command_now(const struct args *argv, char *const *envp, struct str input, int timeout_ms);
void command_quote(struct buf *out, struct str s); /* appends s as one word of a shell */
