/* Objects: finding, listing, collecting. How they come in is in upload.c. */
#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/fs.h"
#include "spool/spool_private.h"

int spool_fail(int number, struct err *err, const char *what)
{
        if (number == ENOSPC || number == EDQUOT)
                return err_set(err, SPOOL_FULL, "there is no space left in the spool");
        return err_set(err, -number, "cannot %s in the spool: %s", what, strerror(number));
}

static int open_folder(int dirfd, const char *name, int *ret_fd, struct err *err)
{
        int r = fs_mkdirs_beneath(dirfd, name, 0700);
        int fd = r ? r : fs_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);

        if (fd < 0)
                return err_set(err, fd, "cannot make the folder \"%s\" in the spool: %s", name,
                               strerror(-fd));
        *ret_fd = fd;
        return 0;
}

int spool_open(const char *folder, uint64_t object_max, struct spool **ret, struct err *err)
{
        struct spool *s;
        int r = fs_mkdirs(folder, 0700);

        if (r)
                return err_set(err, r, "cannot make %s: %s", folder, strerror(-r));
        s = mem_new(struct spool);
        s->object_max = object_max;
        s->objects_fd = s->uploads_fd = -1;
        s->uploads = map_new();
        s->holders = map_new();
        pthread_mutex_init(&s->lock, NULL);
        pthread_mutex_init(&s->objects_lock, NULL);
        s->dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->dirfd < 0)
                r = err_set(err, -errno, "cannot open %s: %s", folder, strerror(errno));
        if (r == 0)
                r = open_folder(s->dirfd, "objects", &s->objects_fd, err);
        if (r == 0)
                r = open_folder(s->dirfd, "uploads", &s->uploads_fd, err);
        if (r == 0 && fsync(s->dirfd))
                r = err_set(err, -errno, "cannot flush %s: %s", folder, strerror(errno));
        if (r == 0)
                r = spool_uploads_load(s, err);
        if (r) {
                spool_close(s);
                return r;
        }
        *ret = s;
        return 0;
}

void spool_close(struct spool *s)
{
        if (!s)
                return;
        spool_uploads_free(s);
        map_free(s->uploads);
        map_free(s->holders);
        if (s->dirfd >= 0)
                close(s->dirfd);
        if (s->objects_fd >= 0)
                close(s->objects_fd);
        if (s->uploads_fd >= 0)
                close(s->uploads_fd);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->objects_lock);
        free(s);
}

static bool spool_hash_valid(struct str hash)
{
        if (hash.n != SPOOL_HASH_TEXT - 1)
                return false;
        for (size_t i = 0; i < hash.n; i++)
                if (!((hash.p[i] >= '0' && hash.p[i] <= '9') || (hash.p[i] >= 'a' && hash.p[i] <= 'f')))
                        return false;
        return true;
}

void spool_object_path(const char *hash, char ret[SPOOL_HASH_TEXT + 6])
{
        snprintf(ret, SPOOL_HASH_TEXT + 6, "%.2s/%.2s/%.64s", hash, hash + 2, hash);
}

static int object_path(struct str hash, char ret[SPOOL_HASH_TEXT + 6])
{
        char text[SPOOL_HASH_TEXT];

        if (!spool_hash_valid(hash))
                return SPOOL_NOT_FOUND;
        memcpy(text, hash.p, SPOOL_HASH_TEXT - 1);
        text[SPOOL_HASH_TEXT - 1] = '\0';
        spool_object_path(text, ret);
        return 0;
}

int spool_object_open(struct spool *s, struct str hash, int *ret_fd, uint64_t *ret_size)
{
        char path[SPOOL_HASH_TEXT + 6];
        struct stat st;
        int fd;

        if (object_path(hash, path))
                return SPOOL_NOT_FOUND;
        fd = fs_open_beneath(s->objects_fd, path, O_RDONLY | O_NOFOLLOW, 0);
        if (fd < 0)
                return fd == -ENOENT ? SPOOL_NOT_FOUND : fd;
        if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
                close(fd);
                return -EIO;
        }
        *ret_fd = fd;
        if (ret_size)
                *ret_size = (uint64_t)st.st_size;
        return 0;
}

/* ---- listing */

static int64_t arrived_ms(const struct stat *st)
{
        return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
        char **v;
        size_t count, cap;
};

static void names_free(struct names *n)
{
        for (size_t i = 0; i < n->count; i++)
                free(n->v[i]);
        free(n->v);
}

/* The names of `length` hexadecimal digits in a folder, sorted. A folder that went away meanwhile is empty.
 */
static int read_names(int dirfd, const char *path, size_t length, struct names *ret)
{
        int fd = fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0);
        struct dirent *e;
        DIR *d;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        d = fdopendir(fd);
        if (!d) {
                close(fd);
                return -ENOMEM;
        }
        while ((e = readdir(d))) {
                if (strlen(e->d_name) != length || strspn(e->d_name, "0123456789abcdef") != length)
                        continue;
                MEM_GROW(ret->v, ret->cap, ret->count + 1);
                ret->v[ret->count++] = mem_dupz(e->d_name);
        }
        closedir(d);
        if (ret->count)
                qsort(ret->v, ret->count, sizeof(*ret->v), by_name);
        return 0;
}

static int list_folder(struct spool *s, const char *folder, spool_object_fn *fn, void *arg)
{
        struct names objects = {0};
        int r = read_names(s->objects_fd, folder, SPOOL_HASH_TEXT - 1, &objects);

        for (size_t i = 0; i < objects.count && r == 0; i++) {
                char path[SPOOL_HASH_TEXT + 6];
                struct stat st;

                spool_object_path(objects.v[i], path);
                if (fstatat(s->objects_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        r = fn(arg, str_of(objects.v[i]), (uint64_t)st.st_size, arrived_ms(&st));
        }
        names_free(&objects);
        return r;
}

static int list_first(struct spool *s, const char *first, spool_object_fn *fn, void *arg)
{
        struct names second = {0};
        int r = read_names(s->objects_fd, first, 2, &second);

        for (size_t i = 0; i < second.count && r == 0; i++) {
                char folder[8];

                snprintf(folder, sizeof(folder), "%.2s/%.2s", first, second.v[i]);
                r = list_folder(s, folder, fn, arg);
        }
        names_free(&second);
        return r;
}

int spool_object_list(struct spool *s, spool_object_fn *fn, void *arg, struct err *err)
{
        struct names first = {0};
        int r = read_names(s->objects_fd, ".", 2, &first);

        for (size_t i = 0; i < first.count && r == 0; i++)
                r = list_first(s, first.v[i], fn, arg);
        names_free(&first);
        return r < 0 ? err_set(err, r, "cannot list the spool: %s", strerror(-r)) : r;
}

struct collecting {
        struct spool *s;
        int64_t before_ms;
        spool_wanted_fn *is_wanted;
        void *arg;
        uint64_t bytes;
};

static int collect_one(void *arg, struct str hash, uint64_t size, int64_t ms)
{
        struct collecting *c = arg;
        char path[SPOOL_HASH_TEXT + 6];
        struct stat st;
        int r = 0;

        if (ms >= c->before_ms || c->is_wanted(c->arg, hash) || object_path(hash, path))
                return 0;
        pthread_mutex_lock(&c->s->objects_lock);
        /* Looked at again: it may just have come in once more. */
        if (fstatat(c->s->objects_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            arrived_ms(&st) < c->before_ms) {
                if (unlinkat(c->s->objects_fd, path, 0) == 0)
                        c->bytes += size;
                else if (errno != ENOENT)
                        r = -errno;
        }
        pthread_mutex_unlock(&c->s->objects_lock);
        return r;
}

int spool_collect(struct spool *s, int64_t before_ms, spool_wanted_fn *is_wanted, void *arg,
                  uint64_t *ret_bytes, struct err *err)
{
        struct collecting c = {.s = s, .before_ms = before_ms, .is_wanted = is_wanted, .arg = arg};
        int r = spool_object_list(s, collect_one, &c, err);

        if (ret_bytes)
                *ret_bytes = c.bytes;
        return r;
}
