#include "agent/transfer/link_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pack.h"
#include "base/system/fs.h"

#define MAGIC     "drover-links-1"
#define BYTES_MAX (1u << 20)
#define LINKS_MAX 256u
#define OLDEST_MS (LINK_FILE_DAYS * 86400000LL)

void link_file_deinit(struct link_file *l)
{
        for (size_t i = 0; i < l->count; i++) {
                free(l->v[i].name);
                free(l->v[i].prefix);
        }
        free(l->v);
        *l = (struct link_file){0};
}

const struct probe_estimate *link_file_find(const struct link_file *l, const char *name, struct str prefix)
{
        for (size_t i = 0; i < l->count; i++)
                if (!strcmp(l->v[i].name, name) && str_eqz(prefix, l->v[i].prefix))
                        return &l->v[i].estimate;
        return NULL;
}

void link_file_add(struct link_file *l, const char *name, struct str prefix, const struct probe_estimate *e)
{
        l->v = mem_array(l->v, l->count + 1, sizeof(*l->v));
        l->v[l->count++] = (struct link_kept){mem_dupz(name), str_dupz(prefix), *e};
}

/* ---- times */

struct clocks {
        int64_t boot_ms, wall_ms;
};

/* Packs a time; 0 stays 0, which means never. */
static void pack_time(struct buf *b, int64_t at_ms, const struct clocks *c)
{
        pack_i64(b, at_ms ? c->wall_ms - (c->boot_ms - at_ms) : 0);
}

static int64_t unpack_time(struct unpack *u, const struct clocks *c)
{
        int64_t at_ms = unpack_i64(u), age_ms = c->wall_ms - at_ms;

        if (at_ms <= 0 || age_ms > OLDEST_MS)
                return 0;
        if (age_ms < 0) /* the clock was set back */
                age_ms = 0;
        return c->boot_ms == age_ms ? -1 : c->boot_ms - age_ms;
}

/* ---- the file */

int link_file_write(const struct link_file *l, int dirfd, int64_t boot_ms, int64_t wall_ms)
{
        BUF_CLEANUP struct buf body = {0}, all = {0};
        const struct clocks c = {boot_ms, wall_ms};

        pack_u64(&body, l->count);
        for (size_t i = 0; i < l->count; i++) {
                const struct probe_estimate *e = &l->v[i].estimate;

                pack_str(&body, str_of(l->v[i].name));
                pack_str(&body, str_of(l->v[i].prefix));
                pack_u64(&body, e->latency_us);
                pack_time(&body, e->latency_ms, &c);
                for (int way = 0; way < PROBE_WAYS; way++) {
                        pack_u64(&body, e->bytes_per_s[way]);
                        pack_time(&body, e->rate_ms[way], &c);
                }
        }
        pack_str(&all, STR(MAGIC));
        pack_u64(&all, pack_crc32c(0, body.p, body.n));
        buf_str(&all, buf_view(&body));
        return fs_write(dirfd, LINK_FILE, buf_view(&all), 0600, false, NULL);
}

static void unpack_link(struct link_file *l, struct unpack *u, const struct clocks *c)
{
        struct str name = unpack_str(u), prefix = unpack_str(u);
        struct probe_estimate e = {.latency_us = unpack_u64(u)};

        e.latency_ms = unpack_time(u, c);
        if (!e.latency_ms)
                e.latency_us = 0;
        for (int way = 0; way < PROBE_WAYS; way++) {
                e.bytes_per_s[way] = unpack_u64(u);
                e.rate_ms[way] = unpack_time(u, c);
                if (!e.rate_ms[way])
                        e.bytes_per_s[way] = 0;
        }
        MEM_CLEANUP char *z = str_dupz(name);
        if (!u->bad)
                link_file_add(l, z, prefix, &e);
}

void link_file_read(struct link_file *l, int dirfd, int64_t boot_ms, int64_t wall_ms)
{
        BUF_CLEANUP struct buf b = {0};
        const struct clocks c = {boot_ms, wall_ms};

        *l = (struct link_file){0};
        if (fs_read(dirfd, LINK_FILE, BYTES_MAX, &b, NULL) < 0)
                return;
        struct unpack u = unpack_from(buf_view(&b));
        bool ours = str_eqz(unpack_str(&u), MAGIC);
        uint64_t sum = unpack_u64(&u);
        if (!ours || u.bad || sum != pack_crc32c(0, u.p, (size_t)(u.end - u.p)))
                return;
        uint64_t count = unpack_max(&u, LINKS_MAX);
        for (uint64_t i = 0; i < count && !u.bad; i++)
                unpack_link(l, &u, &c);
}
