/* user: the local user whose jobs are at the other server, with a map of users. Paths that a user names are
 * never opened with the agent's rights: work on a job's files is done by commands run as the user, each a
 * small shell script. */
#pragma once
#include "run/process/user_command.h"

struct remote_user {
        /* Owner (name@domain), the local user that it is mapped to, and the user's home. */
        char *owner, *name, *home;
        unsigned uid;
        char *token;  /* path of the token file */
        char *folder; /* name of the folder of user commands */
        struct args env;
        struct user_commands *user_commands;
        struct http_budget *answers; /* shared by all users; borrowed */
};

int remote_user_new(const char *owner, const char *name, const char *token,
                    struct user_commands *user_commands, struct remote_user **ret, struct err *err);
void remote_user_free(struct remote_user *u);
/* Runs a shell script as the user with these arguments; `as` has the remaining fields. */
struct command *remote_user_run(const struct remote_user *u, const char *script, const char *const *words,
                                const struct user_command_spec *as, command_done_fn *done, void *arg);
void remote_user_said(struct buf *out, struct str errors); /* appends a failed script's message as one line */
