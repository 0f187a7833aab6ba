/* A catalog of a million files (or as many as the first argument says) with three replicas and eight keys of
 * metadata each: how many files a second an import takes, durable every 10,000; how long queries take; and
 * how long it takes to read all files with their replicas. On $TMPDIR (or /var/tmp: it must be a real disk).
 * Prints `name value unit higher|lower` lines. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "catalog/catalog.h"

#define BATCH  10000u
#define KEYS   8u
#define COPIES 3u

static unsigned files = 1000000;

static void line(const char *name, double value, const char *unit, const char *better)
{
        printf("%s_%u %.6g %s %s\n", name, files, value, unit, better);
        fflush(stdout);
}

static void must(int r, const struct err *err)
{
        if (r == 0)
                return;
        fprintf(stderr, "bench_catalog: %s\n", err->text);
        exit(1);
}

struct made {
        struct catalog_file files[BATCH];
        struct catalog_meta meta[BATCH][KEYS];
        struct catalog_replica replicas[BATCH][COPIES];
        char names[BATCH][64], urls[BATCH][COPIES][128], hosts[BATCH][COPIES][16], productions[8][16];
};

static struct catalog_value integer(int64_t i)
{
        return (struct catalog_value){.type = CATALOG_INTEGER, .integer = i};
}

static void make(struct made *m, unsigned from)
{
        for (unsigned i = 0; i < BATCH; i++) {
                unsigned n = from + i;

                snprintf(m->names[i], sizeof(m->names[i]), "st_physics_%u_raw_%07u.MuDst.root",
                         5000 + n / 200, n);
                m->meta[i][0] = (struct catalog_meta){STR("production"),
                                                      {.text = str_of(m->productions[n / 130000 % 8])}};
                m->meta[i][1] = (struct catalog_meta){STR("filetype"), {.text = STR("daq_reco_MuDst")}};
                m->meta[i][2] = (struct catalog_meta){STR("runnumber"), integer(5000 + n / 200)};
                m->meta[i][3] =
                        (struct catalog_meta){STR("events"), integer((int64_t)(n * 2654435761u % 100000))};
                m->meta[i][4] = (struct catalog_meta){STR("tpc"), integer(n % 2)};
                m->meta[i][5] = (struct catalog_meta){STR("trgsetupname"),
                                                      {.text = n % 3 ? STR("proHigh") : STR("minbias")}};
                m->meta[i][6] = (struct catalog_meta){STR("magscale"), {.text = STR("FullField")}};
                m->meta[i][7] = (struct catalog_meta){STR("sanity"), integer(1)};
                for (unsigned k = 0; k < COPIES; k++) {
                        snprintf(m->hosts[i][k], sizeof(m->hosts[i][k]), "rcas%04u", (n * 7 + k * 131) % 500);
                        snprintf(m->urls[i][k], sizeof(m->urls[i][k]), "file://%s/data/starlib/%s",
                                 m->hosts[i][k], m->names[i]);
                        m->replicas[i][k] = (struct catalog_replica){
                                str_of(m->urls[i][k]), str_of(m->hosts[i][k]), k ? STR("local") : STR("nfs")};
                }
                m->files[i] = (struct catalog_file){.name = str_of(m->names[i]),
                                                    .has_size = true,
                                                    .size = 1000000 + n,
                                                    .meta = m->meta[i],
                                                    .meta_count = KEYS,
                                                    .replicas = m->replicas[i],
                                                    .replica_count = COPIES};
        }
}

static int count_it(void *arg, const struct catalog_file *f)
{
        *(uint64_t *)arg += f->replica_count;
        return 0;
}

/* The median of five, as if nothing else were asked. */
static void query(struct catalog *c, const char *name, const char *text, bool count, bool meta)
{
        int64_t took[5];
        struct err err = {0};

        for (unsigned i = 0; i < 5; i++) {
                struct catalog_find how = {.query = str_of(text), .count = count, .meta = meta};
                struct catalog_found found;
                uint64_t replicas = 0;

                took[i] = clock_mono_ns();
                must(catalog_find(c, &how, count_it, &replicas, &found, &err), &err);
                took[i] = clock_mono_ns() - took[i];
                if (found.files == 0)
                        must(1, &(struct err){"a query of the bench finds nothing"});
        }
        for (unsigned i = 0; i < 5; i++)
                for (unsigned k = i + 1; k < 5; k++)
                        if (took[k] < took[i]) {
                                int64_t t = took[i];

                                took[i] = took[k];
                                took[k] = t;
                        }
        line(name, (double)took[2] / 1e6, "ms", "lower");
}

int main(int argc, char **argv)
{
        const char *tmp = getenv("TMPDIR") ? getenv("TMPDIR") : "/var/tmp";
        BUF_CLEANUP struct buf folder = {0}, address = {0}, path = {0};
        static const char *const ends[] = {"", "-wal", "-shm"};
        struct made *m = mem_new(struct made);
        struct catalog *c;
        struct err err = {0};
        int64_t took = 0;
        uint64_t most = files;

        if (argc > 1 && (str_to_u64(str_of(argv[1]), &most) != 0 || most < 1000000 || most % BATCH))
                must(1, &(struct err){"how many files? a multiple of 10000, at least 1000000"});
        files = (unsigned)most;
        buf_printf(&folder, "%s/bench_catalog.XXXXXX", tmp);
        buf_z(&folder);
        if (!mkdtemp(folder.p))
                must(1, &(struct err){"cannot make a folder"});
        buf_printf(&path, "%s/catalog.db", buf_z(&folder));
        buf_printf(&address, "sqlite:%s", buf_z(&path));
        for (unsigned i = 0; i < 8; i++)
                snprintf(m->productions[i], sizeof(m->productions[i]), "P04i%c", 'a' + (int)i);
        must(catalog_open(buf_z(&address), &c, &err), &err);
        for (unsigned from = 0; from < files; from += BATCH) {
                struct catalog_counts counts;
                int64_t start;

                make(m, from);
                start = clock_mono_ns();
                must(catalog_put(c, m->files, BATCH, &(struct catalog_put){0}, &counts, &err), &err);
                took += clock_mono_ns() - start;
        }
        line("catalog_import", files / ((double)took / 1e9), "files/s", "higher");
        query(c, "catalog_count", "production=P04ib,filetype=daq_reco_MuDst,tpc=1,storage!=hpss", true,
              false);
        query(c, "catalog_query", "production=P04ib,runnumber=5700..5710,storage!=nfs,tpc=1", false, true);
        query(c, "catalog_events", "events>99990,storage=local", false, true);
        query(c, "catalog_where", "where=runnumber > 5700 && runnumber < 5710 && tpc == 1", false, true);
        query(c, "catalog_read_all", "", false, false);
        catalog_close(c);
        for (size_t i = 0; i < 3; i++) {
                BUF_CLEANUP struct buf file = {0};

                buf_printf(&file, "%s%s", buf_z(&path), ends[i]);
                unlink(buf_z(&file));
        }
        rmdir(buf_z(&folder));
        free(m);
        return 0;
}
