/* own_user: the user that the server runs as.
 *
 * A server started by root needs no rights of root. It becomes the user named by --user or by `user` in
 * its settings; or the owner of its database; or, for a new instance, the system user `drover`. It stays
 * root only if there is no such user or the database belongs to root, and then logs how to change that. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

#define OWN_USER_DEFAULT "drover"

/* Becomes the user that the server runs as. To be called in main, after the settings were read and before
 * anything is made in the folder `dir`, which is made if it is missing and given to that user. user: the
 * one in the settings, or NULL. serves: false for a backup or a check, which say nothing of staying root.
 * Returns 0; -EINVAL: there is no such user, or the process is not root and
 * cannot become another; -EPERM: the instance belongs to another user; or another -errno. */
int own_user_become(const char *dir, const char *user, bool serves, struct err *err);
