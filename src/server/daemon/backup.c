/* Objects of the spool never change under their name, but may be added and removed. They are copied before
 * the database, and once more after it: each object that the database names existed before the database
 * was copied, or was added by then and is found by the second pass. Only a file whose last job ended
 * between the two passes may be missing. */
#include "server/daemon/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "server/config/paths.h"
#include "store/store.h"

#define DATABASE   "drover.db"
#define CATALOG    "catalog.db"
#define COMPLETE   "complete"
#define SETTINGS   "droverd.yaml"
#define DEPTH_MAX  8
#define SMALL_FILE (1u << 20)

struct copying {
        int from, to; /* file descriptors of folders */
        struct backup_done done;
};

static int fail_copy(struct err *err, const char *what, const char *name)
{
        int number = errno;

        return err_set(err, -number, "cannot %s %s: %s", what, name, strerror(number));
}

/* Skips a file that was removed meanwhile, or that the copy has with the same size. */
static int copy_file(struct copying *c, int from, int to, const char *name, struct err *err)
{
        struct stat have, is;
        uint64_t bytes;
        int in, out, r;

        in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (in < 0)
                return errno == ENOENT ? 0 : fail_copy(err, "read", name);
        if (fstat(in, &is) < 0 || !S_ISREG(is.st_mode) ||
            (fstatat(to, name, &have, AT_SYMLINK_NOFOLLOW) == 0 && have.st_size == is.st_size)) {
                close(in);
                return 0;
        }
        out = openat(to, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, is.st_mode & 0700);
        r = out < 0 ? -errno : fs_copy(in, out, &bytes);
        if (r == 0 && fsync(out) < 0)
                r = -errno;
        close(in);
        if (out >= 0)
                close(out);
        errno = -r;
        if (r != 0)
                return fail_copy(err, "copy", name);
        c->done.files++;
        c->done.bytes += bytes;
        return 0;
}

static int backup_open_folder(int at, const char *name)
{
        return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int copy_folder(struct copying *c, int at_from, int at_to, const char *name, int depth,
                       struct err *err)
{
        int from = backup_open_folder(at_from, name), to, r = 0;
        DIR *list;

        if (from < 0)
                return errno == ENOENT ? 0 : fail_copy(err, "open", name);
        if (mkdirat(at_to, name, 0700) < 0 && errno != EEXIST) {
                close(from);
                return fail_copy(err, "make", name);
        }
        to = backup_open_folder(at_to, name);
        list = to < 0 ? NULL : fdopendir(from);
        if (!list) {
                r = fail_copy(err, "open", name);
                close(from);
        }
        for (struct dirent *d; r == 0 && (errno = 0, d = readdir(list));) {
                struct stat st;

                if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
                    fs_is_left(str_of(d->d_name)))
                        continue;
                if (fstatat(from, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (!S_ISDIR(st.st_mode))
                        r = copy_file(c, from, to, d->d_name, err);
                else if (depth < DEPTH_MAX)
                        r = copy_folder(c, from, to, d->d_name, depth + 1, err);
        }
        if (r == 0 && fsync(to) < 0)
                r = fail_copy(err, "flush", name);
        if (list)
                closedir(list);
        if (to >= 0)
                close(to);
        return r;
}

static int copy_small(struct copying *c, struct err *err)
{
        int r = copy_folder(c, c->from, c->to, "ca", 0, err);

        if (r == 0)
                r = copy_file(c, c->from, c->to, "credential.key", err);
        return r == 0 ? copy_file(c, c->from, c->to, SETTINGS, err) : r;
}

/* postgres: the address of the database; NULL: `from` is the file. */
static int copy_database(struct copying *c, const char *postgres, const char *from, const char *to,
                         struct err *err)
{
        struct stat st;
        int r = postgres ? store_carry_out(postgres, to, err) : store_copy(from, to, err);

        if (r == 0 && stat(to, &st) == 0) {
                c->done.files++;
                c->done.bytes += (uint64_t)st.st_size;
        }
        return r;
}

/* An instance whose catalog was never used has no catalog file. */
static int copy_catalog(const struct config *config, struct copying *c, const char *to, struct err *err)
{
        BUF_CLEANUP struct buf from_db = {0}, to_db = {0};

        if (faccessat(c->from, CATALOG, F_OK, 0) < 0)
                return 0;
        buf_printf(&from_db, "%s/" CATALOG, config->dir);
        buf_printf(&to_db, "%s/" CATALOG, to);
        return copy_database(c, NULL, buf_z(&from_db), buf_z(&to_db), err);
}

static bool is_empty(int folder)
{
        DIR *list = fdopendir(backup_open_folder(folder, "."));
        bool empty = true;

        if (!list)
                return false;
        for (struct dirent *d; empty && (d = readdir(list));)
                empty = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0;
        closedir(list);
        return empty;
}

/* Settings that are kept outside of the folder belong to the instance as well. */
static int copy_settings(const struct config *config, struct copying *c, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        int r;

        if (!config->file)
                return 0;
        r = fs_read(AT_FDCWD, config->file, SMALL_FILE, &text, err);
        if (r == 0)
                r = fs_write(c->to, SETTINGS, buf_view(&text), 0600, true, err);
        return r;
}

static int make_backup(const struct config *config, const char *to, struct copying *c, struct err *err)
{
        BUF_CLEANUP struct buf from_db = {0}, to_db = {0}, text = {0};
        int r = copy_folder(c, c->from, c->to, "spool", 0, err);

        buf_printf(&from_db, "%s/" DATABASE, config->dir);
        buf_printf(&to_db, "%s/" DATABASE, to);
        if (r == 0)
                r = copy_database(c, config_postgres(config), buf_z(&from_db), buf_z(&to_db), err);
        if (r == 0)
                r = copy_catalog(config, c, to, err);
        if (r == 0)
                r = copy_folder(c, c->from, c->to, "spool", 0, err);
        if (r == 0)
                r = copy_small(c, err);
        if (r == 0)
                r = copy_settings(config, c, err);
        buf_printf(&text, "drover-backup 1 %lld\n", (long long)clock_wall_ms());
        return r == 0 ? fs_write(c->to, COMPLETE, buf_view(&text), 0600, true, err) : r;
}

int backup_make(const struct config *config, const char *to, struct backup_done *ret, struct err *err)
{
        struct copying c = {.from = open(config->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        int64_t began = clock_boot_ms();
        int r;

        if (c.from < 0)
                return fail_copy(err, "open", config->dir);
        if (!config_postgres(config) && faccessat(c.from, DATABASE, R_OK, 0) < 0) {
                r = err_set(err, -errno, "%s has no " DATABASE " that can be read: %s", config->dir,
                            strerror(errno));
                close(c.from);
                return r;
        }
        r = fs_mkdirs(to, 0700);
        c.to = r ? -1 : open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (c.to < 0)
                r = err_set(err, r ? r : -errno, "cannot make the folder %s: %s", to,
                            strerror(r ? -r : errno));
        else if (!is_empty(c.to))
                r = err_set(err, -EEXIST, "%s is not empty: name a folder for this backup alone", to);
        else
                r = make_backup(config, to, &c, err);
        close(c.from);
        if (c.to >= 0)
                close(c.to);
        c.done.took_ms = clock_boot_ms() - began;
        *ret = c.done;
        return r;
}

/* Finds the database to restore to: the one named on the command line or in the settings, otherwise the
 * one in the copy's settings, which will be those of the instance. */
static int target(const struct config *config, const struct copying *c, struct config *ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {0};
        int r;

        *ret = (struct config){0};
        if (config->store) {
                ret->store = mem_dupz(config->store);
                return 0;
        }
        r = fs_read(c->from, SETTINGS, SMALL_FILE, &text, err);
        if (r == -ENOENT)
                return 0;
        return r == 0 ? config_parse(ret, SETTINGS, buf_view(&text), err) : r;
}

/* SQLite writes files beside the one it reads, so it reads a copy of the backup. */
static int put_database(struct copying *c, const char *postgres, const struct paths *paths, struct err *err)
{
        struct store_place place = {.beside = paths->postgres};
        int r = copy_file(c, c->from, c->to, DATABASE, err);

        if (r != 0 || !postgres)
                return r;
        r = store_carry_in(paths->store, postgres, &place, err);
        unlinkat(c->to, DATABASE, 0);
        unlinkat(c->to, DATABASE "-wal", 0);
        unlinkat(c->to, DATABASE "-shm", 0);
        return r;
}

/* Restores the database last, so that an interrupted restore leaves no instance and can be repeated. */
static int put_back(struct copying *c, const char *postgres, const struct paths *paths, struct err *err)
{
        int r = copy_folder(c, c->from, c->to, "spool", 0, err);

        if (r == 0)
                r = copy_small(c, err);
        if (r == 0)
                r = copy_file(c, c->from, c->to, CATALOG, err);
        if (r == 0)
                r = put_database(c, postgres, paths, err);
        if (r == 0 && fsync(c->to) < 0)
                r = fail_copy(err, "flush", "the folder");
        return r;
}

int backup_restore(const struct config *config, const char *from, struct backup_done *ret, struct err *err)
{
        struct copying c = {.from = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .to = -1};
        int64_t began = clock_boot_ms();
        struct paths paths = {0};
        struct config to = {0};
        int r = 0, lock = -1;

        if (c.from < 0)
                return fail_copy(err, "open", from);
        if (faccessat(c.from, COMPLETE, F_OK, 0) < 0)
                r = err_set(err, -EINVAL, "%s is no backup, or one that was not finished", from);
        if (r == 0)
                r = paths_init(&paths, config->dir, err);
        if (r == 0)
                r = paths_lock(&paths, &lock, err);
        if (r == 0 && access(paths.store, F_OK) == 0)
                r = err_set(err, -EEXIST,
                            "%s is there already: restore into another folder, or move this one away",
                            paths.store);
        if (r == 0) {
                c.to = open(config->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = c.to < 0 ? fail_copy(err, "open", config->dir) : 0;
        }
        if (r == 0)
                r = target(config, &c, &to, err);
        if (r == 0 && !config_postgres(&to) && access(paths.postgres_id, F_OK) == 0)
                r = err_set(err, -EEXIST,
                            "%s shows an instance that uses PostgreSQL: restore into another folder, or move "
                            "this one away",
                            paths.postgres_id);
        if (r == 0)
                r = put_back(&c, config_postgres(&to), &paths, err);
        config_deinit(&to);
        close(c.from);
        if (c.to >= 0)
                close(c.to);
        if (lock >= 0)
                close(lock);
        paths_deinit(&paths);
        c.done.took_ms = clock_boot_ms() - began;
        *ret = c.done;
        return r;
}
