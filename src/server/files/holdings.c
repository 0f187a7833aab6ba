#include "server/files/holdings.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/map.h"

#define BLOCK 4096u

struct held {
        uint64_t bytes;
        size_t files;
};
struct holdings {
        struct spool *spool;
        pthread_mutex_t lock;
        struct map *owners; /* owner → struct held, of owners with files */
        struct map *limits; /* owner → uint64_t */
        uint64_t otherwise;
};

struct holdings *holdings_new(struct spool *spool, const struct config_limits *limits, uint64_t otherwise)
{
        struct holdings *h = mem_new(struct holdings);

        h->spool = spool;
        h->owners = map_new();
        h->limits = map_new();
        h->otherwise = otherwise;
        pthread_mutex_init(&h->lock, NULL);
        for (size_t i = 0; i < limits->spool_count; i++) {
                uint64_t *bytes = mem_new(uint64_t);

                *bytes = limits->spool[i].bytes;
                if (strcmp(limits->spool[i].user, "*") == 0)
                        h->otherwise = *bytes;
                free(map_put(h->limits, str_of(limits->spool[i].user), bytes));
        }
        return h;
}

void holdings_free(struct holdings *h)
{
        if (!h)
                return;
        map_free_values(h->owners);
        map_free_values(h->limits);
        pthread_mutex_destroy(&h->lock);
        free(h);
}

static uint64_t blocks(uint64_t size)
{
        return size ? (size + BLOCK - 1) / BLOCK * BLOCK : BLOCK;
}

void holdings_add(struct holdings *h, struct str owner, uint64_t size)
{
        struct held *x;

        pthread_mutex_lock(&h->lock);
        x = map_get(h->owners, owner);
        if (!x) {
                x = mem_new(struct held);
                map_put(h->owners, owner, x);
        }
        x->bytes += blocks(size);
        x->files++;
        pthread_mutex_unlock(&h->lock);
}

void holdings_take(struct holdings *h, struct str owner, uint64_t size)
{
        struct held *x;

        pthread_mutex_lock(&h->lock);
        x = map_get(h->owners, owner);
        if (x) {
                x->bytes -= blocks(size);
                if (--x->files == 0)
                        free(map_take(h->owners, owner));
        }
        pthread_mutex_unlock(&h->lock);
}

/* To be called under the lock. */
static uint64_t max_of(struct holdings *h, struct str owner)
{
        const uint64_t *own = map_get(h->limits, owner);

        return own ? *own : h->otherwise;
}

static uint64_t uploading(struct holdings *h, struct str owner)
{
        size_t count;
        uint64_t bytes = spool_upload_held(h->spool, owner, &count);

        return bytes + count * HOLDINGS_UPLOAD;
}

/* "12 KiB", "1.5 GiB". */
static void say_size(struct buf *out, uint64_t bytes)
{
        static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
        double n = (double)bytes / 1024;
        size_t i = 0;

        for (; n >= 1024 && i < 3; i++)
                n /= 1024;
        buf_printf(out, n < 10 ? "%.1f %s" : "%.0f %s", n, units[i]);
}

int holdings_check(struct holdings *h, struct str owner, uint64_t more, struct err *err)
{
        BUF_CLEANUP struct buf has = {0}, may = {0};
        uint64_t bytes = uploading(h, owner), max;
        const struct held *x;

        pthread_mutex_lock(&h->lock);
        x = map_get(h->owners, owner);
        bytes += x ? x->bytes : 0;
        max = max_of(h, owner);
        pthread_mutex_unlock(&h->lock);
        if (bytes <= max && more <= max - bytes)
                return 0;
        say_size(&has, bytes);
        say_size(&may, max);
        return err_set(err, HOLDINGS_FULL,
                       STR_FMT
                       " has %s of uploaded files on the server and may have %s (max_spool). Files go "
                       "when the jobs that need them have ended or are removed, and a day has passed",
                       STR_ARG(owner), buf_z(&has), buf_z(&may));
}

static void write_one(struct holdings *h, struct json *j, struct str owner, uint64_t bytes)
{
        json_open(j, '{');
        json_kstr(j, "owner", owner);
        json_kint(j, "bytes", (int64_t)bytes);
        json_kint(j, "uploading", (int64_t)uploading(h, owner));
        json_kint(j, "max", (int64_t)max_of(h, owner));
        json_close(j, '}');
}

void holdings_write(struct holdings *h, struct json *j, const char *who, bool all)
{
        const struct held *own;
        struct str owner;
        size_t at = 0;
        void *v;

        json_open(j, '[');
        pthread_mutex_lock(&h->lock);
        own = map_get(h->owners, str_of(who));
        write_one(h, j, str_of(who), own ? own->bytes : 0);
        while (all && map_next(h->owners, &at, &owner, &v))
                if (!str_eqz(owner, who))
                        write_one(h, j, owner, ((const struct held *)v)->bytes);
        pthread_mutex_unlock(&h->lock);
        json_close(j, ']');
}
