/* user command: a command that the shepherd runs as a job's user, for its output.
 *
 * With the setting `users` the agent runs as none of the users whose jobs it has. A command that a batch
 * system or a container engine must receive from a user is run by a child of the shepherd that has switched
 * to that user. It starts in a folder of the user's beside the sandboxes, which is made if it is missing
 * (RUN_SHARE_SANDBOX); its streams are files there, which are read and removed when it has ended.
 *
 * All calls are made on the loop's thread. A user command ends when the agent ends; the caller must find out
 * what it did until then.
 */
#pragma once
#include "run/call/command.h"
#include "run/runner.h"

struct user_commands;
/* `local` is the process runner, `jobs` and `jobs_path` the folder of sandboxes; all are borrowed, and
 * `jobs` is used as long as a user command runs. Ids of its tasks begin with request 0, member 1. */
struct user_commands *user_commands_new(struct runner *local, int jobs, const char *jobs_path);
/* Called before the process runner is closed: commands in progress may still be cancelled, but nothing is
 * ended by that. */
void user_commands_stop(struct user_commands *e); /* NULL is fine */
void user_commands_free(struct user_commands *e); /* no command may be in progress; NULL is fine */
/* Handles an event of the process runner; must be called with each. Returns true if it was a user command's.
 */
bool user_commands_event(struct user_commands *e, const struct run_event *event);
/* The process runner is unreachable (away), or is reachable again and has reported all its tasks (back):
 * commands that it did not report are lost. */
void user_commands_away(struct user_commands *e);
void user_commands_back(struct user_commands *e);

struct user_command_spec { /* borrowed during the call */
        const char *owner,
                *user;      /* the job's owner, name@domain, and the local user that the agent's map gives */
        const char *folder; /* name of the folder, one component */
        const struct args *argv; /* argv[0] is looked up in PATH of envp */
        char *const *envp;
        struct str input;
        int input_fd;     /* above 0: its standard input instead of `input`, borrowed; also receives what is
                             written there */
        unsigned contain; /* parts of containment (flags of run_spec), for commands with arguments from a job
                           */
        int64_t timeout_ms;
};
#define USER_COMMAND_LOST        (-2) /* status: its shepherd died */
#define USER_COMMAND_LEASE_ENDED (-3) /* status: ended with the lease */
/* Runs a command as command_run does, as the job's local user. The status is also -1 if this user may not run
 * it. command_cancel or command_end ends it. */
struct command *user_command_run(struct user_commands *e, const struct user_command_spec *s,
                                 command_done_fn *done, void *arg);
/* Adds HOME, USER and LOGNAME of the user. */
void user_command_environment(struct args *env, const char *user);
/* Appends the folder's path. */
void user_command_folder(const struct user_commands *e, const char *name, struct buf *out);
