/* user: in whose name jobs are at the other server, with a map of users. Nothing that a user names is opened
 * with our own rights: what is done here for a job is done by its user, as commands, each a small script of
 * the shell. */
#pragma once
#include "run/process/user_command.h"

struct remote_user {
        char *owner, *name, *home; /* name@domain, who is mapped to the local user; the user, his home */
        unsigned uid;
        char *token;  /* the file's path */
        char *folder; /* of user commands: its name */
        struct args env;
        struct user_commands *user_commands;
        struct http_budget *answers; /* of all users; borrowed */
};

int remote_user_new(const char *owner, const char *name, const char *token,
                    struct user_commands *user_commands, struct remote_user **ret, struct err *err);
void remote_user_free(struct remote_user *u);
/* Runs a script of the shell with these words; `as`: what is particular to it. */
struct command *remote_user_run(const struct remote_user *u, const char *script, const char *const *words,
                                const struct user_command_spec *as, command_done_fn *done, void *arg);
void remote_user_said(struct buf *out,
                      struct str errors); /* what a script said when it failed, on one line */
