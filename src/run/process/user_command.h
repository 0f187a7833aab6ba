/* user command: a command that a job's user runs, through the shepherd, for what it prints.
 *
 * With `users` the agent is none of those whose jobs it has. What a batch system or a container's engine
 * shall see done by a user, is done by a child of the shepherd that has become him. It starts in a folder of
 * his beside the sandboxes, which is made if it isn't there (RUN_SHARE_SANDBOX); its streams are files there,
 * which are read and removed when it has ended.
 *
 * One thread, the loop's. A user command ends with the agent's life; what it did until then is for the caller
 * to find out.
 */
#pragma once
#include "run/call/command.h"
#include "run/runner.h"

struct user_commands;
/* `local` is the process runner; `jobs` and `jobs_path` the folder of sandboxes: all borrowed, `jobs` used as
 * long as a user command runs. Its ids begin with request 0, member 1. */
struct user_commands *user_commands_new(struct runner *local, int jobs, const char *jobs_path);
/* Before the process runner is closed: those that are under way may still be cancelled, which ends nothing
 * then. */
void user_commands_stop(struct user_commands *e); /* NULL is fine */
void user_commands_free(struct user_commands *e); /* none is under way; NULL is fine */
/* To be asked about every event of the process runner. True: it was a user command's. */
bool user_commands_event(struct user_commands *e, const struct run_event *event);
/* The process runner is away; it is back, and has told of all that it has: what it did not tell of is lost.
 */
void user_commands_away(struct user_commands *e);
void user_commands_back(struct user_commands *e);

struct user_command_spec {        /* borrowed during the call */
        const char *owner, *user; /* of the job: name@domain, and whom the agent's map makes of him */
        const char *folder;       /* its name, one component */
        const struct args *argv;  /* found by PATH of envp */
        char *const *envp;
        struct str input;
        int input_fd; /* above 0: its standard input in place of `input`, borrowed: what is written there, too
                       */
        unsigned contain; /* parts of containment, flags of run_spec; for what runs words of a job's */
        int64_t timeout_ms;
};
#define USER_COMMAND_LOST        (-2) /* a status: the shepherd that had it is gone, or was when it should begin */
#define USER_COMMAND_LEASE_ENDED (-3) /* or ended it, and all else, because our lease was over */
/* As command_run; the status is -1 also when it may not be run as that user. Ended by command_cancel, or by
 * command_end. */
struct command *user_command_run(struct user_commands *e, const struct user_command_spec *s,
                                 command_done_fn *done, void *arg);
/* HOME, USER and LOGNAME of that user, added. */
void user_command_environment(struct args *env, const char *user);
/* The folder's path, appended. */
void user_command_folder(const struct user_commands *e, const char *name, struct buf *out);
