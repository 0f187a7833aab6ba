/* ssh: arguments of OpenSSH's client for running a command on another machine.
 *
 * Connections are shared: the first command makes the connection (ControlMaster), later ones use it, and it
 * is closed after two minutes without a command, or by ssh_end_words. The client never prompts: only a key,
 * a ticket or an ssh-agent of the user's can log in. Its exit status is the command's, or 255 when there is
 * no connection.
 */
#pragma once
#include "base/err.h"
#include "base/job/args.h"

#define SSH_AWAY 255 /* exit status of the client without a connection */

struct ssh {                /* borrowed */
        const char *host;   /* as of ssh(1): a name of the configuration, user@host, ssh://... */
        const char *config; /* the client's configuration file; NULL: the user's */
        const char *socket; /* control socket: a path in a folder that only the agent can write */
};

/* Returns 0, or -EINVAL with err: the host would be taken for an option, or the socket's path is too long.
 */
int ssh_check(const struct ssh *s, struct err *err);
/* Appends the arguments that run `script` by /bin/sh on the host, with `words` as $0, $1, .... Standard
 * input and output are the script's. The account's login shell must read quotes as sh does. */
void ssh_words(const struct ssh *s, const char *script, const struct args *words, struct args *ret);
void ssh_end_words(const struct ssh *s, struct args *ret); /* arguments that close the shared connection */
