/* backup: copies the folder of an instance while its server runs, and restores the copy.
 *
 * The backup is made by a process of its own, with the rights of its caller; the server is not involved.
 * The copy has the database as it was at one moment, the spool files that it names, the authority, the key
 * of credentials, and the settings. The file "complete" is written last: a folder without it is not a
 * backup. */
#pragma once
#include "base/err.h"
#include "server/config/config.h"

struct backup_done {
        uint64_t files, bytes;
        int64_t took_ms;
};
/* Copies the instance of config->dir to `to`, which is made (mode 0700), or must be empty. Returns 0; or
 * an error with err, and then leaves what was copied. */
int backup_make(const struct config *config, const char *to, struct backup_done *ret, struct err *err);
/* Restores a backup into config->dir, which must have no database; the folder is locked meanwhile. The
 * next start of the server there begins an epoch (epoch.h). Returns 0, or an error with err. */
int backup_restore(const struct config *config, const char *from, struct backup_done *ret, struct err *err);
