#include "server/daemon/own_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/secret.h"

#define DATABASE    "drover.db"
#define POSTGRES_ID "postgresql.id" /* marks the folder of an instance whose database is PostgreSQL */

/* Opens the folder, and makes it if it is missing. The user that the server becomes must be able to reach
 * it. */
static int own_user_open_folder(const char *dir, bool *ret_made, struct err *err)
{
        bool made = access(dir, F_OK) < 0;
        mode_t mask = umask(022);
        int r = made ? fs_mkdirs(dir, 0755) : 0;
        int fd = r < 0 ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                r = err_set(err, r < 0 ? r : -errno, "cannot use the folder %s: %s", dir,
                            strerror(r < 0 ? -r : errno));
        umask(mask);
        *ret_made = made;
        return fd < 0 ? r : fd;
}

/* Returns the owner of the instance; -1 while it has no database. */
static uid_t owner_of(int folder)
{
        struct stat st;

        if (fstatat(folder, DATABASE, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
            fstatat(folder, POSTGRES_ID, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return st.st_uid;
        return (uid_t)-1;
}

static const struct passwd *choose(const char *user, uid_t owner)
{
        if (user)
                return getpwnam(user);
        return owner == (uid_t)-1 ? getpwnam(OWN_USER_DEFAULT) : getpwuid(owner);
}

static int stay_root(const char *dir, uid_t owner)
{
        if (owner == 0)
                log_warn("msg=\"the server runs as root, as the instance is root's: stop it, `chown -R %s: "
                         "%s` "
                         "gives it to the system user, and --user root says that root is meant\"",
                         OWN_USER_DEFAULT, dir);
        else
                log_warn("msg=\"the server runs as root: make the system user %s (systemd-sysusers), or name "
                         "another with --user; --user root says that root is meant\"",
                         OWN_USER_DEFAULT);
        return 0;
}

static int own_user_become_user(int folder, const struct passwd *pw, const char *dir, struct err *err)
{
        if (fchown(folder, pw->pw_uid, pw->pw_gid) < 0)
                return err_set(err, -errno, "cannot give the folder %s to %s: %s", dir, pw->pw_name,
                               strerror(errno));
        if (initgroups(pw->pw_name, pw->pw_gid) < 0 || setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
            setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
                return err_set(err, -errno, "cannot become the user %s: %s", pw->pw_name, strerror(errno));
        if (setuid(0) == 0)
                return err_set(err, -EPERM, "cannot give up root's rights");
        unsetenv("XDG_RUNTIME_DIR"); /* these belong to root */
        if (access(dir, R_OK | W_OK | X_OK) < 0)
                return err_set(
                        err, -errno,
                        "%s cannot use the folder %s (%s): the folders above it must let that user pass",
                        pw->pw_name, dir, strerror(errno));
        secret_no_dumps(); /* the change of user makes fs.suid_dumpable decide about core dumps */
        log_info("msg=\"root's rights were given up\" user=%s uid=%u", pw->pw_name, (unsigned)pw->pw_uid);
        return 0;
}

/* A folder made for a dedicated user is open to all, because people must reach the socket in it. */
static int become_in(int folder, bool made, const char *dir, const char *user, bool serves, struct err *err)
{
        uid_t owner = owner_of(folder);
        const struct passwd *pw = choose(user, owner);

        if (user && !pw)
                return err_set(err, -EINVAL, "there is no user %s for the server to run as", user);
        if (pw && owner != (uid_t)-1 && owner != pw->pw_uid)
                return err_set(err, -EPERM,
                               "the server shall run as %s, and the instance in %s belongs to user %u: "
                               "`chown -R %s: %s` changes that",
                               pw->pw_name, dir, (unsigned)owner, pw->pw_name, dir);
        if (!pw && owner != (uid_t)-1)
                return err_set(err, -EINVAL, "the instance in %s belongs to user %u, who has no name here",
                               dir, (unsigned)owner);
        if (made && (!pw || pw->pw_uid == 0) && fchmod(folder, 0700) < 0)
                return err_set(err, -errno, "cannot close the folder %s: %s", dir, strerror(errno));
        if (!pw || pw->pw_uid == 0)
                return user || !serves ? 0 : stay_root(dir, owner);
        return own_user_become_user(folder, pw, dir, err);
}

int own_user_become(const char *dir, const char *user, bool serves, struct err *err)
{
        const struct passwd *pw = geteuid() != 0 && user ? getpwnam(user) : NULL;
        bool made;
        int folder, r;

        if (geteuid() != 0)
                return !user || (pw && pw->pw_uid == geteuid())
                               ? 0
                               : err_set(err, -EINVAL, "only root can start a server that shall run as %s",
                                         user);
        folder = own_user_open_folder(dir, &made, err);
        if (folder < 0)
                return folder;
        r = become_in(folder, made, dir, user, serves, err);
        close(folder);
        return r;
}
