#include "agent/transfer/cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/system/fs.h"

#define INDEX       "index"
#define INDEX_MAGIC "drover-cache-1"
#define INDEX_MAX   (256u << 20)
#define NAMES_MAX   1000000u
#define SAME_MAX    100u /* names of the same contents */

struct report {         /* change to report to the server about a file */
        unsigned count; /* names and contents that have it */
        uint64_t size;
        bool told, listed;
};

struct cache {
        int dir;
        char *path;
        uint64_t limit, serial;
        struct map *contents, *names;
        struct lru contents_by_use;
        bool dirty;
        struct idmap *numbers; /* id -> struct report */
        uint64_t *changed;
        size_t changed_count, changed_cap;
};

static bool unhex(const char *name, unsigned char ret[32])
{
        if (strlen(name) != 64 || strspn(name, "0123456789abcdef") != 64)
                return false;
        return hex_read(str_of(name), ret, 32) == 0;
}

/* ---- numbers */

static void number_changed(struct cache *c, uint64_t id, struct report *t)
{
        if (t->listed)
                return;
        t->listed = true;
        MEM_GROW(c->changed, c->changed_cap, c->changed_count + 1);
        c->changed[c->changed_count++] = id;
}

static void number_came(struct cache *c, uint64_t id, uint64_t size)
{
        struct report *t = idmap_get(c->numbers, id);

        if (!t) {
                t = mem_new(struct report);
                idmap_put(c->numbers, id, t);
        }
        if (t->count++ == 0 || t->size != size)
                number_changed(c, id, t);
        t->size = size;
}

static void number_went(struct cache *c, uint64_t id)
{
        struct report *t = idmap_get(c->numbers, id);

        assert(t && t->count > 0);
        if (--t->count == 0)
                number_changed(c, id, t);
}

void cache_other(struct cache *c, uint64_t id, uint64_t size)
{
        if (size == UINT64_MAX)
                number_went(c, id);
        else
                number_came(c, id, size);
}

bool cache_changed(const struct cache *c)
{
        return c->changed_count > 0;
}

void cache_changes(struct cache *c, bool all, void (*fn)(void *arg, uint64_t id, uint64_t size), void *arg)
{
        uint64_t id;
        void *v;

        for (size_t at = 0; all && idmap_next(c->numbers, &at, &id, &v);) {
                struct report *t = v;

                t->told = false;
                if (t->count > 0)
                        number_changed(c, id, t);
        }
        for (size_t i = 0; i < c->changed_count; i++) {
                struct report *t = idmap_get(c->numbers, c->changed[i]);

                t->listed = false;
                if (t->count > 0)
                        fn(arg, c->changed[i], t->size);
                else if (t->told)
                        fn(arg, c->changed[i], UINT64_MAX);
                t->told = t->count > 0;
                if (!t->told)
                        free(idmap_take(c->numbers, c->changed[i]));
        }
        c->changed_count = 0;
}

/* ---- contents */

static struct cached *cached_of(struct lru_node *n)
{
        return container_of(n, struct cached, use);
}

static struct cached *cache_entry_add(struct cache *c, const unsigned char sha256[32], uint64_t size,
                                      int64_t used_ms)
{
        struct cached *e = mem_new(struct cached);

        memcpy(e->sha256, sha256, 32);
        e->use.bytes = size;
        e->used_ms = used_ms;
        e->id = file_id_of_content(sha256);
        map_put(c->contents, str_make((const char *)sha256, 32), e);
        lru_put(&c->contents_by_use, &e->use);
        number_came(c, e->id, size);
        c->dirty = true;
        return e;
}

static void unname(struct cache *c, struct cached_name *n)
{
        struct cached_name **link = &n->contents->names;

        while (*link != n)
                link = &(*link)->next;
        *link = n->next;
        map_take(c->names, str_of(n->key));
        number_went(c, n->id);
        free(n->key);
        free(n);
        c->dirty = true;
}

static void entry_free(struct cache *c, struct cached *e)
{
        while (e->names)
                unname(c, e->names);
        map_take(c->contents, str_make((const char *)e->sha256, 32));
        lru_take(&c->contents_by_use, &e->use);
        number_went(c, e->id);
        free(e);
        c->dirty = true;
}

void cache_drop(struct cache *c, struct cached *e)
{
        char name[65];

        assert(e->use.pins == 0);
        hex_print(name, e->sha256, 32);
        unlinkat(c->dir, name, 0);
        entry_free(c, e);
}

static void cache_evict(void *arg, struct lru_node *n)
{
        cache_drop(arg, cached_of(n));
}

/* Files of a few bytes, and names, take memory and time however small their contents are. */
static bool too_many(const struct cache *c)
{
        return map_count(c->contents) > CACHE_FILES_MAX || map_count(c->names) > CACHE_FILES_MAX;
}

void cache_trim(struct cache *c, uint64_t bytes)
{
        lru_trim(&c->contents_by_use, bytes < c->limit ? bytes : c->limit, cache_evict, c);
        for (struct lru_node *n = c->contents_by_use.oldest, *next; n && too_many(c); n = next) {
                next = n->newer;
                if (n->pins == 0)
                        cache_drop(c, cached_of(n));
        }
}

uint64_t cache_bytes(const struct cache *c)
{
        return c->contents_by_use.bytes;
}

struct cached *cache_find(struct cache *c, const unsigned char sha256[32])
{
        return map_get(c->contents, str_make((const char *)sha256, 32));
}

struct cached_name *cache_find_name(struct cache *c, struct str key)
{
        return map_get(c->names, key);
}

void cache_touch(struct cache *c, struct cached *e, int64_t now_ms)
{
        e->used_ms = now_ms;
        lru_use(&c->contents_by_use, &e->use);
        c->dirty = true;
}

void cache_pin(struct cached *e)
{
        e->use.pins++;
}

void cache_unpin(struct cache *c, struct cached *e)
{
        assert(e->use.pins > 0);
        if (--e->use.pins == 0)
                cache_trim(c, c->limit);
}

void cache_path(const struct cache *c, const struct cached *e, struct buf *out)
{
        char name[65];

        hex_print(name, e->sha256, 32);
        buf_printf(out, "%s/%s", c->path, name);
}

int cache_open_contents(const struct cache *c, const struct cached *e)
{
        char name[65];

        hex_print(name, e->sha256, 32);
        int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int cache_begin(struct cache *c, char part[32])
{
        snprintf(part, 32, "%llu.part", (unsigned long long)++c->serial);
        int fd = openat(c->dir, part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

int cache_scratch(struct cache *c)
{
        char part[32];
        int fd = cache_begin(c, part);

        if (fd >= 0)
                cache_abandon(c, part);
        return fd;
}

uint64_t cache_disk_free(const struct cache *c)
{
        struct statvfs v;

        return fstatvfs(c->dir, &v) < 0 ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}

void cache_abandon(struct cache *c, const char *part)
{
        unlinkat(c->dir, part, 0);
}

int cache_keep(struct cache *c, const char *part, const unsigned char sha256[32], uint64_t size,
               int64_t now_ms, struct cached **ret)
{
        struct cached *e = cache_find(c, sha256);
        char name[65];

        hex_print(name, sha256, 32);
        if (e && !e->checked && e->use.bytes != size) { /* the size does not match the checksum in the name */
                cache_drop(c, e);
                e = NULL;
        }
        if (e && e->checked) {
                unlinkat(c->dir, part, 0);
        } else if (renameat(c->dir, part, c->dir, name) < 0) { /* replaces unverified ones */
                return -errno;
        }
        if (!e)
                e = cache_entry_add(c, sha256, size, now_ms);
        e->checked = true;
        cache_touch(c, e, now_ms);
        *ret = e;
        return 0;
}

struct cached_name *cache_name(struct cache *c, struct cached *e, struct str key,
                               const struct move_facts *facts, int64_t now_ms)
{
        struct cached_name *n = map_get(c->names, key);

        if (n && n->contents != e) {
                unname(c, n);
                n = NULL;
        }
        if (!n) {
                struct cached_name *last = e->names;
                unsigned same = 0;

                for (; last && last->next; last = last->next)
                        same++;
                if (same + 1 >= SAME_MAX)
                        unname(c, last);
                n = mem_new(struct cached_name);
                n->contents = e;
                n->key = str_dupz(key);
                n->id = file_id(key);
                n->next = e->names;
                e->names = n;
                map_put(c->names, key, n);
                number_came(c, n->id, e->use.bytes);
        }
        n->facts = *facts;
        n->confirmed_ms = now_ms;
        c->dirty = true;
        return n;
}

/* ---- the index */

static void pack_entry(const struct cached *e, struct buf *out)
{
        uint64_t count = 0;

        for (const struct cached_name *n = e->names; n; n = n->next)
                count++;
        pack_str(out, str_make((const char *)e->sha256, 32));
        pack_u64(out, e->use.bytes);
        pack_i64(out, e->used_ms);
        pack_u64(out, count);
        for (const struct cached_name *n = e->names; n; n = n->next) {
                pack_str(out, str_of(n->key));
                pack_u64(out, n->id);
                pack_u64(out, n->facts.size);
                pack_i64(out, n->facts.modified_s);
                pack_str(out, str_of(n->facts.etag));
                pack_i64(out, n->confirmed_ms);
        }
}

void cache_write(struct cache *c)
{
        if (!c->dirty)
                return;
        BUF_CLEANUP struct buf body = {0}, all = {0};
        pack_u64(&body, map_count(c->contents));
        for (struct lru_node *n = c->contents_by_use.oldest; n; n = n->newer)
                pack_entry(cached_of(n), &body);
        pack_str(&all, STR(INDEX_MAGIC));
        pack_u64(&all, pack_crc32c(0, body.p, body.n));
        buf_str(&all, buf_view(&body));
        if (fs_write(c->dir, INDEX, buf_view(&all), 0600, false, NULL) == 0)
                c->dirty = false;
}

/* Returns the contents that an entry names, if the folder has them with that size. */
static struct cached *unpack_entry(struct cache *c, struct unpack *u)
{
        struct str sum = unpack_str(u);
        uint64_t size = unpack_u64(u);
        int64_t used_ms = unpack_i64(u);
        char name[65];
        struct stat st;

        if (sum.n != 32 || u->bad)
                return NULL;
        hex_print(name, (const unsigned char *)sum.p, 32);
        if (fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            (uint64_t)st.st_size != size || map_get(c->contents, sum))
                return NULL;
        return cache_entry_add(c, (const unsigned char *)sum.p, size, used_ms);
}

static void unpack_names(struct cache *c, struct cached *e, struct unpack *u)
{
        uint64_t count = unpack_max(u, NAMES_MAX);

        for (uint64_t i = 0; i < count && !u->bad; i++) {
                struct move_facts f = {0};
                struct str key = unpack_str(u);

                unpack_u64(u); /* skips the id, which follows from the key */
                f.size = unpack_u64(u);
                f.modified_s = unpack_i64(u);
                struct str etag = unpack_str(u);
                int64_t confirmed_ms = unpack_i64(u);
                if (u->bad || etag.n >= sizeof(f.etag) || !e)
                        continue;
                snprintf(f.etag, sizeof(f.etag), STR_FMT, STR_ARG(etag));
                cache_name(c, e, key, &f, confirmed_ms);
        }
}

static void read_index(struct cache *c)
{
        BUF_CLEANUP struct buf b = {0};

        if (fs_read(c->dir, INDEX, INDEX_MAX, &b, NULL) < 0)
                return;
        struct unpack u = unpack_from(buf_view(&b));
        struct str magic = unpack_str(&u);
        uint64_t crc = unpack_u64(&u);
        if (u.bad || !str_eqz(magic, INDEX_MAGIC) || crc != pack_crc32c(0, u.p, (size_t)(u.end - u.p)))
                return;
        uint64_t count = unpack_u64(&u);
        for (uint64_t i = 0; i < count && !u.bad; i++)
                unpack_names(c, unpack_entry(c, &u), &u);
}

/* Reads contents that the index does not name: they are known by their checksum; all other files are
 * removed. */
static void read_folder(struct cache *c)
{
        int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        unsigned char sum[32];
        struct stat st;

        while (dir && (e = readdir(dir))) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, INDEX))
                        continue;
                if (!unhex(e->d_name, sum) || fstatat(c->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        unlinkat(c->dir, e->d_name, 0);
                else if (!cache_find(c, sum))
                        cache_entry_add(c, sum, (uint64_t)st.st_size, (int64_t)st.st_mtim.tv_sec * 1000);
        }
        if (dir)
                closedir(dir);
}

struct cache *cache_open(int dirfd, const char *name, const char *path, uint64_t limit, struct err *err)
{
        if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST) {
                err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
                return NULL;
        }
        int dir = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0) {
                err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
                return NULL;
        }
        struct cache *c = mem_new(struct cache);
        c->dir = dir;
        c->path = mem_dupz(path);
        c->limit = limit;
        c->contents = map_new();
        c->names = map_new();
        c->numbers = idmap_new();
        read_index(c);
        read_folder(c);
        c->dirty = false;
        cache_trim(c, limit);
        return c;
}

void cache_close(struct cache *c)
{
        void *v;

        if (!c)
                return;
        cache_write(c);
        while (c->contents_by_use.oldest)
                entry_free(c, cached_of(c->contents_by_use.oldest));
        for (size_t at = 0; idmap_next(c->numbers, &at, NULL, &v);)
                free(v);
        map_free(c->contents);
        map_free(c->names);
        idmap_free(c->numbers);
        free(c->changed);
        free(c->path);
        close(c->dir);
        free(c);
}
