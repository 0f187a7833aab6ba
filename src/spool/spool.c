/* The spool is a folder of objects and a folder of uploads.
 *
 * Uploads. The checksum is updated with each write and kept in memory only; after a restart it is computed
 * again from the file when the upload continues. A write that fails in the middle is cut off, so the reported
 * size is always that of the bytes in the checksum.
 *
 * Objects. An upload becomes an object in this order: the file is flushed, renamed to its hash, and the
 * folders are flushed; only then is it reported. When many become objects in one call the kernel is first
 * asked to write all of them, and each folder is flushed once, so that they share the disk's flushes. A file
 * whose flush failed is removed: its pages may be lost in memory and on the disk, and only its sender has
 * them. */
#include "spool/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "base/system/fs.h"

#define FLUSH_BYTES (8u << 20)
#define OWNER_MAX   255

struct holder { /* an owner with uploads in progress */
        uint64_t bytes;
        size_t uploads;
};
struct upload {
        char id[UUID_TEXT];
        char *owner;
        struct holder *holder;
        uint64_t size;
        EVP_MD_CTX *sha; /* of the bytes so far; NULL after a restart until it is needed */
        bool busy;       /* a call is using it */
};

struct spool {
        int dirfd, objects_fd, uploads_fd;
        uint64_t object_max;
        pthread_mutex_t lock;          /* guards uploads, holders, and `busy` of each upload */
        pthread_mutex_t objects_lock;  /* serialises creating and removing objects */
        struct map *uploads, *holders; /* by id; by owner */
        /* one bit for each folder of objects: it was flushed by this process */
        unsigned char durable[65536 / 8];
};

/* Returns SPOOL_FULL or -number, with text. */
static int spool_fail(int number, struct err *err, const char *what)
{
        if (number == ENOSPC || number == EDQUOT)
                return err_set(err, SPOOL_FULL, "there is no space left in the spool");
        return err_set(err, -number, "cannot %s in the spool: %s", what, strerror(number));
}

/* Writes "ab/cd/abcd…". */
static void spool_object_path(const char *hash, char ret[SPOOL_HASH_TEXT + 6])
{
        snprintf(ret, SPOOL_HASH_TEXT + 6, "%.2s/%.2s/%.64s", hash, hash + 2, hash);
}

static void upload_free(struct upload *u)
{
        if (!u)
                return;
        EVP_MD_CTX_free(u->sha);
        free(u->owner);
        free(u);
}

static void owner_name(const char *id, char ret[UUID_TEXT + 6])
{
        snprintf(ret, UUID_TEXT + 6, "%s.owner", id);
}

static void remove_files(struct spool *s, const char *id)
{
        char owner[UUID_TEXT + 6];

        owner_name(id, owner);
        unlinkat(s->uploads_fd, id, 0);
        unlinkat(s->uploads_fd, owner, 0);
}

static struct upload *upload_new(struct spool *s, const char *id, struct str owner)
{
        struct upload *u = mem_new(struct upload);

        memcpy(u->id, id, UUID_TEXT - 1);
        u->owner = str_dupz(owner);
        u->holder = map_get(s->holders, owner);
        if (!u->holder) {
                u->holder = mem_new(struct holder);
                map_put(s->holders, owner, u->holder);
        }
        u->holder->uploads++;
        map_put(s->uploads, str_of(u->id), u);
        return u;
}

/* Takes the upload, for this call alone until give_back(). */
static int take_upload(struct spool *s, const char *id, struct upload **ret)
{
        struct upload *u;
        int r = 0;

        pthread_mutex_lock(&s->lock);
        u = map_get(s->uploads, str_of(id));
        if (!u)
                r = SPOOL_NOT_FOUND;
        else if (u->busy)
                r = -EBUSY;
        else
                u->busy = true;
        pthread_mutex_unlock(&s->lock);
        if (r == 0)
                *ret = u;
        return r;
}

static void give_back(struct spool *s, struct upload *u)
{
        pthread_mutex_lock(&s->lock);
        u->busy = false;
        pthread_mutex_unlock(&s->lock);
}

/* Ends an upload that was taken: removes its entry and its files. */
static void forget(struct spool *s, struct upload *u)
{
        remove_files(s, u->id);
        pthread_mutex_lock(&s->lock);
        map_take(s->uploads, str_of(u->id));
        u->holder->bytes -= u->size;
        if (--u->holder->uploads == 0)
                free(map_take(s->holders, str_of(u->owner)));
        pthread_mutex_unlock(&s->lock);
        upload_free(u);
}

/* ---- restart */

static void load_one(struct spool *s, const char *id)
{
        BUF_CLEANUP struct buf owner = {0};
        char name[UUID_TEXT + 6];
        struct upload *u;
        struct stat st;

        owner_name(id, name);
        if (fstatat(s->uploads_fd, id, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
            fs_read(s->uploads_fd, name, OWNER_MAX, &owner, NULL) || owner.n == 0) {
                remove_files(s, id); /* left by a crash while it was created */
                return;
        }
        u = upload_new(s, id, buf_view(&owner));
        u->size = (uint64_t)st.st_size;
        u->holder->bytes += u->size;
}

static int spool_uploads_load(struct spool *s, struct err *err)
{
        int fd = fs_open_beneath(s->uploads_fd, ".", O_RDONLY | O_DIRECTORY, 0);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;

        if (!d) {
                if (fd >= 0)
                        close(fd);
                return err_set(err, -EIO, "cannot list the spool's uploads");
        }
        fs_sweep(s->uploads_fd, fs_is_left);
        while ((e = readdir(d))) {
                struct str name = str_of(e->d_name);
                char id[UUID_TEXT] = "";

                if (!uuid_valid(str_head(name, UUID_TEXT - 1)))
                        continue;
                memcpy(id, name.p, UUID_TEXT - 1);
                if (!map_get(s->uploads, str_of(id)))
                        load_one(s, id);
        }
        closedir(d);
        return 0;
}

static void spool_uploads_free(struct spool *s)
{
        size_t at = 0;
        void *u;

        while (map_next(s->uploads, &at, NULL, &u))
                upload_free(u);
        at = 0;
        while (map_next(s->holders, &at, NULL, &u))
                free(u);
}

/* ---- writing to an upload */

static int create_files(struct spool *s, const char *id, struct str owner, struct err *err)
{
        char name[UUID_TEXT + 6];
        int fd, r;

        owner_name(id, name);
        r = fs_write(s->uploads_fd, name, owner, 0600, false, err);
        if (r)
                return spool_fail(-r, err, "begin an upload");
        fd = fs_open_beneath(s->uploads_fd, id, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (fd < 0) {
                remove_files(s, id);
                return spool_fail(-fd, err, "begin an upload");
        }
        close(fd);
        return 0;
}

int spool_upload_begin(struct spool *s, const char *id, struct str owner, uint64_t *ret_size, struct err *err)
{
        struct upload *u;
        int r = 0;

        if (!uuid_valid(str_of(id)) || owner.n == 0 || owner.n > OWNER_MAX)
                return err_set(err, -EINVAL, "an upload needs a uuid and an owner");
        pthread_mutex_lock(&s->lock);
        u = map_get(s->uploads, str_of(id));
        if (u && !str_eqz(owner, u->owner))
                r = err_set(err, SPOOL_NOT_FOUND, "there is no upload %s of yours", id);
        else if (u && u->busy)
                r = err_set(err, -EBUSY, "the upload %s is being worked on", id);
        else if (!u)
                r = create_files(s, id, owner, err);
        if (r == 0) {
                u = u ? u : upload_new(s, id, owner);
                *ret_size = u->size;
        }
        pthread_mutex_unlock(&s->lock);
        return r;
}

/* Computes the running checksum from the file, after a restart. */
static int sum_again(struct upload *u, int fd, struct err *err)
{
        char chunk[65536];
        uint64_t left = u->size;

        u->sha = EVP_MD_CTX_new();
        if (!u->sha || EVP_DigestInit_ex(u->sha, EVP_sha256(), NULL) != 1)
                abort(); /* out of memory, as in mem.h */
        while (left > 0) {
                ssize_t n = pread(fd, chunk, left < sizeof(chunk) ? (size_t)left : sizeof(chunk),
                                  (off_t)(u->size - left));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        int number = n < 0 ? errno : EIO;

                        EVP_MD_CTX_free(u->sha);
                        u->sha = NULL;
                        return spool_fail(number, err, "read an upload");
                }
                EVP_DigestUpdate(u->sha, chunk, (size_t)n);
                left -= (uint64_t)n;
        }
        return 0;
}

static int open_upload(struct spool *s, struct upload *u, int *ret_fd, struct err *err)
{
        int fd = fs_open_beneath(s->uploads_fd, u->id, O_RDWR | O_NOFOLLOW, 0);
        int r;

        if (fd < 0)
                return spool_fail(-fd, err, "open an upload");
        r = u->sha ? 0 : sum_again(u, fd, err);
        if (r)
                close(fd);
        else
                *ret_fd = fd;
        return r;
}

static int append(struct spool *s, struct upload *u, struct str bytes, struct err *err)
{
        int fd, r;

        r = open_upload(s, u, &fd, err);
        if (r)
                return r;
        if (lseek(fd, (off_t)u->size, SEEK_SET) < 0)
                r = -errno;
        else
                r = fs_write_all(fd, bytes.p, bytes.n);
        if (r) {
                /* Cuts off what was written. If that fails, the next write overwrites it, and finishing
                 * cuts it off. */
                (void)!ftruncate(fd, (off_t)u->size);
                r = spool_fail(-r, err, "write an upload");
        } else {
                EVP_DigestUpdate(u->sha, bytes.p, bytes.n);
                /* the disk begins with what is there, so that the flush at the end of a large file is short
                 */
                if (u->size / FLUSH_BYTES != (u->size + bytes.n) / FLUSH_BYTES)
                        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
                pthread_mutex_lock(&s->lock);
                u->size += bytes.n;
                u->holder->bytes += bytes.n;
                pthread_mutex_unlock(&s->lock);
        }
        close(fd);
        return r;
}

int spool_upload_write(struct spool *s, const char *id, uint64_t offset, struct str bytes, uint64_t *ret_size,
                       struct err *err)
{
        struct upload *u;
        int r = take_upload(s, id, &u);

        if (r)
                return err_set(err, r,
                               r < 0 ? "the upload %.40s is being worked on" : "there is no upload %.40s",
                               id);
        if (offset != u->size)
                r = err_set(err, SPOOL_WRONG_OFFSET, "the upload has %llu bytes: go on there, not at %llu",
                            (unsigned long long)u->size, (unsigned long long)offset);
        else if (s->object_max && (u->size > s->object_max || bytes.n > s->object_max - u->size))
                r = err_set(err, SPOOL_TOO_BIG, "a file may have %llu bytes at most",
                            (unsigned long long)s->object_max);
        else if (bytes.n > 0)
                r = append(s, u, bytes, err);
        if (r == 0 || r == SPOOL_WRONG_OFFSET)
                *ret_size = u->size;
        give_back(s, u);
        return r;
}

int spool_upload_owner(struct spool *s, const char *id, struct buf *ret_owner)
{
        struct upload *u;

        pthread_mutex_lock(&s->lock);
        u = map_get(s->uploads, str_of(id));
        if (u)
                buf_addz(ret_owner, u->owner);
        pthread_mutex_unlock(&s->lock);
        return u ? 0 : SPOOL_NOT_FOUND;
}

uint64_t spool_upload_held(struct spool *s, struct str owner, size_t *ret_uploads)
{
        const struct holder *h;
        uint64_t bytes;

        pthread_mutex_lock(&s->lock);
        h = map_get(s->holders, owner);
        bytes = h ? h->bytes : 0;
        *ret_uploads = h ? h->uploads : 0;
        pthread_mutex_unlock(&s->lock);
        return bytes;
}

int spool_upload_drop(struct spool *s, const char *id)
{
        struct upload *u;
        int r = take_upload(s, id, &u);

        if (r == 0)
                forget(s, u);
        return r;
}

size_t spool_upload_expire(struct spool *s, int64_t before_ms)
{
        BUF_CLEANUP struct buf old = {0};
        struct str rest, id;
        size_t at = 0, count = 0;
        void *p;

        pthread_mutex_lock(&s->lock);
        while (map_next(s->uploads, &at, NULL, &p)) {
                const struct upload *u = p;
                struct stat st;

                if (fstatat(s->uploads_fd, u->id, &st, AT_SYMLINK_NOFOLLOW) ||
                    (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 < before_ms)
                        buf_printf(&old, "%s\n", u->id);
        }
        pthread_mutex_unlock(&s->lock);
        rest = buf_view(&old);
        while (str_cut(&rest, '\n', &id)) {
                MEM_CLEANUP char *z = str_dupz(id);

                if (id.n && spool_upload_drop(s, z) == 0)
                        count++;
        }
        return count;
}

/* ---- uploads that become objects */

struct ending {
        struct upload *u; /* NULL: it failed, or did not exist */
        int fd;
        bool flushed; /* its folder was flushed, with this result */
        int flush_result;
};

static void final_hash(const struct upload *u, char ret[SPOOL_HASH_TEXT])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        EVP_MD_CTX *copy = EVP_MD_CTX_new();

        if (!copy || EVP_MD_CTX_copy_ex(copy, u->sha) != 1 || EVP_DigestFinal_ex(copy, digest, &n) != 1)
                abort(); /* out of memory, as in mem.h */
        EVP_MD_CTX_free(copy);
        for (unsigned i = 0; i < n; i++) {
                ret[2 * i] = "0123456789abcdef"[digest[i] >> 4];
                ret[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
        }
        ret[2 * n] = '\0';
}

/* Ends an upload that failed; with `gone` its bytes are removed. */
static void stop_ending(struct spool *s, struct ending *e, struct spool_finish *f, int result, bool gone)
{
        f->result = result;
        close(e->fd);
        if (gone)
                forget(s, e->u);
        else
                give_back(s, e->u);
        e->u = NULL;
}

/* Takes the upload, checks its hash, and asks the kernel to begin writing. */
static void prepare_finish(struct spool *s, struct ending *e, struct spool_finish *f)
{
        struct upload *u;

        f->result = take_upload(s, f->id, &u);
        if (f->result) {
                err_set(&f->err, 0, "there is no upload %.40s, or it is being worked on", f->id);
                return;
        }
        f->result = open_upload(s, u, &e->fd, &f->err);
        if (f->result) {
                give_back(s, u);
                return;
        }
        e->u = u;
        final_hash(u, f->hash);
        f->size = u->size;
        if (f->expect && strcmp(f->expect, f->hash) != 0) {
                err_set(&f->err, 0, "the bytes of the upload have the hash %s, not %.64s: send them again",
                        f->hash, f->expect);
                stop_ending(s, e, f, SPOOL_WRONG_HASH, true);
                return;
        }
        (void)!ftruncate(e->fd, (off_t)u->size);
        sync_file_range(e->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static int flush_folder(int dirfd, const char *path)
{
        int fd = fs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0);
        int r = fd < 0 ? fd : 0;

        if (fd < 0)
                return r;
        if (fsync(fd))
                r = -errno;
        close(fd);
        return r;
}

static unsigned folder_number(const char *hash)
{
        char digits[5] = "";

        memcpy(digits, hash, 4);
        return (unsigned)strtoul(digits, NULL, 16);
}

static bool folder_durable(const struct spool *s, const char *hash)
{
        unsigned number = folder_number(hash);

        return s->durable[number / 8] & (1 << number % 8);
}

/* Makes the folders "ab/cd" of all objects durable: makes all, and then flushes each "ab" once. A folder
 * that this process has not flushed counts as not durable, because another process may have been stopped
 * between making and flushing it. Called with the lock of the objects. Failures are reported in the
 * results. */
static void make_folders(struct spool *s, struct ending *e, struct spool_finish *f, size_t count)
{
        bool any = false;
        int r, top;

        for (size_t i = 0; i < count; i++) {
                char both[6];

                if (!e[i].u || folder_durable(s, f[i].hash))
                        continue;
                snprintf(both, sizeof(both), "%.2s/%.2s", f[i].hash, f[i].hash + 2);
                r = fs_mkdirs_beneath(s->objects_fd, both, 0700);
                any = true;
                if (r)
                        stop_ending(s, &e[i], &f[i], spool_fail(-r, &f[i].err, "keep an upload"), false);
        }
        top = any ? flush_folder(s->objects_fd, ".") : 0;
        for (size_t i = 0; i < count; i++) {
                char first[3];

                if (!e[i].u || folder_durable(s, f[i].hash))
                        continue;
                snprintf(first, sizeof(first), "%.2s", f[i].hash);
                r = top ? top : flush_folder(s->objects_fd, first);
                if (r) {
                        stop_ending(s, &e[i], &f[i], spool_fail(-r, &f[i].err, "keep an upload"), true);
                        continue;
                }
                for (size_t k = i; k < count; k++) /* all were made before this flush */
                        if (e[k].u && memcmp(f[k].hash, first, 2) == 0) {
                                unsigned number = folder_number(f[k].hash);

                                s->durable[number / 8] |= (unsigned char)(1 << number % 8);
                        }
        }
}

/* An equal object is replaced, which updates its time of arrival in the same step. */
static void name_objects(struct spool *s, struct ending *e, struct spool_finish *f, size_t count)
{
        pthread_mutex_lock(&s->objects_lock);
        make_folders(s, e, f, count);
        for (size_t i = 0; i < count; i++) {
                char path[SPOOL_HASH_TEXT + 6];

                spool_object_path(f[i].hash, path);
                if (e[i].u && renameat(s->uploads_fd, e[i].u->id, s->objects_fd, path))
                        stop_ending(s, &e[i], &f[i], spool_fail(errno, &f[i].err, "keep an upload"), false);
        }
        pthread_mutex_unlock(&s->objects_lock);
}

/* Flushes the folder of object i, unless an earlier object had the same folder; its result is then used. */
static int flush_of(struct spool *s, struct ending *e, const struct spool_finish *f, size_t i)
{
        char folder[6];

        for (size_t k = 0; k < i; k++)
                if (e[k].flushed && memcmp(f[k].hash, f[i].hash, 4) == 0)
                        return e[k].flush_result;
        snprintf(folder, sizeof(folder), "%.2s/%.2s", f[i].hash, f[i].hash + 2);
        e[i].flushed = true;
        return e[i].flush_result = flush_folder(s->objects_fd, folder);
}

void spool_finish(struct spool *s, struct spool_finish *f, size_t count)
{
        const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
        struct ending *e = mem_zalloc((count ? count : 1) * sizeof(*e));

        for (size_t i = 0; i < count; i++)
                prepare_finish(s, &e[i], &f[i]);
        for (size_t i = 0; i < count; i++)
                if (e[i].u && (futimens(e[i].fd, now) || fsync(e[i].fd)))
                        stop_ending(s, &e[i], &f[i], spool_fail(errno, &f[i].err, "flush an upload"), true);
        name_objects(s, e, f, count);
        for (size_t i = 0; i < count; i++) {
                int r = e[i].u ? flush_of(s, e, f, i) : 0;

                if (r)
                        r = spool_fail(-r, &f[i].err, "flush a folder");
                if (e[i].u)
                        stop_ending(s, &e[i], &f[i], r, true);
        }
        free(e);
}

int spool_finish_one(struct spool *s, const char *id, const char *expect, char ret_hash[SPOOL_HASH_TEXT],
                     uint64_t *ret_size, struct err *err)
{
        struct spool_finish f = {.id = id, .expect = expect};

        spool_finish(s, &f, 1);
        if (f.result)
                return err_set(err, f.result, "%s", f.err.text);
        memcpy(ret_hash, f.hash, SPOOL_HASH_TEXT);
        if (ret_size)
                *ret_size = f.size;
        return 0;
}

/* ---- objects */

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

static int open_spool(const char *folder, uint64_t object_max, bool uploads, struct spool **ret,
                      struct err *err)
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
        if (r == 0 && uploads)
                r = spool_uploads_load(s, err);
        if (r) {
                spool_close(s);
                return r;
        }
        *ret = s;
        return 0;
}

int spool_open(const char *folder, uint64_t object_max, struct spool **ret, struct err *err)
{
        return open_spool(folder, object_max, true, ret, err);
}

int spool_open_objects(const char *folder, struct spool **ret, struct err *err)
{
        return open_spool(folder, 0, false, ret, err);
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

/* Reads the names of `length` hexadecimal digits in a folder, sorted. A folder that was removed meanwhile
 * counts as empty. */
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
        /* Check again: the object may just have been uploaded once more. */
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
