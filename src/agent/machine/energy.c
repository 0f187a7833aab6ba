#include "agent/machine/energy.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/system/fs.h"

#define ZONES_MAX 256u
#define TEXT_MAX  64u

struct zone {
        int fd;
        uint64_t range_uj; /* the counter begins again behind this; 0: not known */
        uint64_t last_uj;
};
struct energy {
        struct zone *zones;
        size_t count, cap;
        uint64_t total_uj, cpus_milli;
        int64_t read_ms;
};

/* Reads a number from the beginning of the file. Returns whether there was one. */
static bool read_number(int fd, uint64_t *ret)
{
        char text[TEXT_MAX];
        ssize_t n = pread(fd, text, sizeof(text), 0);

        return n > 0 && str_to_u64(str_trim(str_make(text, (size_t)n)), ret) == 0;
}

static bool is_counted(int dir, const char *zone)
{
        BUF_CLEANUP struct buf path = {0}, name = {0};

        if (strncmp(zone, "intel-rapl:", 11) != 0) /* as with AMD's processors; intel-rapl-mmio repeats it */
                return false;
        buf_printf(&path, "%s/name", zone);
        return fs_read(dir, buf_z(&path), TEXT_MAX, &name, NULL) == 0 &&
               (str_starts(buf_view(&name), STR("package")) || str_eqz(str_trim(buf_view(&name)), "dram"));
}

static void add_zone(struct energy *e, int dir, const char *name)
{
        BUF_CLEANUP struct buf path = {0};
        struct zone z = {.fd = -1};
        int range;

        buf_printf(&path, "%s/energy_uj", name);
        z.fd = openat(dir, buf_z(&path), O_RDONLY | O_CLOEXEC);
        if (z.fd < 0 || !read_number(z.fd, &z.last_uj)) {
                if (z.fd >= 0)
                        close(z.fd);
                return;
        }
        buf_reset(&path);
        buf_printf(&path, "%s/max_energy_range_uj", name);
        range = openat(dir, buf_z(&path), O_RDONLY | O_CLOEXEC);
        if (range >= 0) {
                if (!read_number(range, &z.range_uj))
                        z.range_uj = 0;
                close(range);
        }
        MEM_GROW(e->zones, e->cap, e->count + 1);
        e->zones[e->count++] = z;
}

struct energy *energy_open(const char *folder)
{
        DIR *dir = opendir(folder);
        struct energy *e = mem_new(struct energy);
        long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        struct dirent *one;

        e->cpus_milli = cpus > 0 ? (uint64_t)cpus * 1000 : 1000;
        while (dir && e->count < ZONES_MAX && (one = readdir(dir)) != NULL)
                if (is_counted(dirfd(dir), one->d_name))
                        add_zone(e, dirfd(dir), one->d_name);
        if (dir)
                closedir(dir);
        if (e->count > 0)
                return e;
        energy_close(e);
        return NULL;
}

void energy_close(struct energy *e)
{
        for (size_t i = 0; e && i < e->count; i++)
                close(e->zones[i].fd);
        if (e)
                free(e->zones);
        free(e);
}

static void zone_read(struct energy *e, struct zone *z)
{
        uint64_t now_uj;

        if (!read_number(z->fd, &now_uj))
                return;
        if (now_uj >= z->last_uj)
                e->total_uj += now_uj - z->last_uj;
        else if (z->range_uj >= z->last_uj)
                e->total_uj += z->range_uj - z->last_uj + now_uj;
        z->last_uj = now_uj;
}

uint64_t energy_look(struct energy *e, int64_t now_ms)
{
        if (!e)
                return 0;
        if (now_ms - e->read_ms >= ENERGY_EVERY_MS) {
                for (size_t i = 0; i < e->count; i++)
                        zone_read(e, &e->zones[i]);
                e->read_ms = now_ms;
        }
        return e->total_uj;
}

uint64_t energy_share(const struct energy *e, uint64_t uj, uint64_t cpus_milli)
{
        if (cpus_milli >= e->cpus_milli)
                return uj;
        return (uint64_t)((double)uj * (double)cpus_milli / (double)e->cpus_milli);
}
