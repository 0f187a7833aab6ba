/* own_user: the user that the server runs as.
 *
 * A server that root starts needs nothing of root's: it becomes the user that it is told (--user, `user` in
 * its file), or the one that its database belongs to, or, for a new instance, the system user `drover`. Only
 * where there is no such user, or the database is root's, it stays root, and says in its log how to change
 * that.
 */
#pragma once
#include "base/err.h"

#define OWN_USER_DEFAULT "drover"

/* Becomes the user that the server runs as. Called in main, after the configuration was read and before
 * anything is made in the folder `dir`, which is made if it is not there, and becomes that user's. user: the
 * one in the settings, or NULL. 0; -EINVAL: there is no such user, or the process is not root and cannot
 * become another; -EPERM: the instance is another user's; or another -errno. */
int own_user_become(const char *dir, const char *user, struct err *err);
