/* backup: a copy of an instance's folder, made while its server runs, and put back.
 *
 * A process of its own with the rights of who calls it; the server is not asked. The copy has the database as
 * it was at one moment, the files of the spool that it names, the authority, the key of credentials, and the
 * settings. The file "complete" is written last: a folder without it is no backup.
 */
#pragma once
#include "base/err.h"
#include "server/config/config.h"

struct backup_done {
        uint64_t files, bytes;
        int64_t took_ms;
};
/* Copies the instance of config->dir to `to`, which is made (mode 0700) and must be empty if it is there. 0;
 * or an error with err, and then what was copied stays there. */
int backup_make(const struct config *config, const char *to, struct backup_done *ret, struct err *err);
/* Puts a backup into config->dir, which must have no database; it is locked meanwhile. The next start of the
 * server there begins an epoch (epoch.h). 0, or an error with err. */
int backup_restore(const struct config *config, const char *from, struct backup_done *ret, struct err *err);
