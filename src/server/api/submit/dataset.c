#include "server/api/submit/dataset.h"

#include <errno.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "catalog/catalog.h"
#include "server/files/catalog_log.h"

_Static_assert(DATASET_MS == 1000, "an error says that it is a second");
_Static_assert((int)FORM_PRESET_KINDS == (int)PRESET_KINDS && (int)FORM_PRESET_POLICY == (int)PRESET_POLICY,
               "the kinds of presets have the same numbers in jdl/form and in the settings");

struct finding {
        struct dataset *dataset;
        const char *order; /* NULL: none */
        void (*fn)(void *to, const struct form_found *f);
        void *to;
};

static bool read_order(const struct catalog_value *v, struct buf *to)
{
        struct json j = {.out = to};

        switch (v->type) {
        case CATALOG_TEXT: buf_str(to, v->text); break;
        case CATALOG_INTEGER: json_int(&j, v->integer); break;
        case CATALOG_REAL: json_double(&j, v->real); break;
        case CATALOG_BOOLEAN: json_bool(&j, v->boolean); break;
        }
        return true;
}

static int on_file(void *arg, const struct catalog_file *file)
{
        struct finding *f = arg;
        struct form_replica replicas[CATALOG_REPLICAS_MAX];
        struct form_found found = {.has_size = file->has_size,
                                   .bytes = file->size,
                                   .replicas = replicas,
                                   .replica_count = file->replica_count};
        BUF_CLEANUP struct buf order = {0};

        if (++f->dataset->files > DATASET_FILES_MAX)
                return -E2BIG;
        for (size_t i = 0; i < file->meta_count; i++) {
                const struct catalog_meta *m = &file->meta[i];

                if (str_ieqz(m->key, "events") && m->value.type == CATALOG_INTEGER && m->value.integer > 0)
                        found.events = (uint64_t)m->value.integer;
                if (f->order && str_ieqz(m->key, f->order) && read_order(&m->value, &order))
                        found.order = buf_view(&order);
        }
        for (size_t i = 0; i < file->replica_count; i++) {
                f->dataset->bytes += file->replicas[i].url.n;
                replicas[i] = (struct form_replica){file->replicas[i].url, file->replicas[i].host,
                                                    file->replicas[i].store};
        }
        if (f->dataset->bytes > DATASET_BYTES_MAX)
                return -E2BIG;
        f->fn(f->to, &found);
        return 0;
}

int dataset_find(void *arg, struct str name, struct str query, bool events, const char *order,
                 void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        struct dataset *d = arg;
        struct finding f = {.dataset = d, .order = order, .fn = fn, .to = to};
        BUF_CLEANUP struct buf whole = {0};
        struct catalog_find how = {.deadline_ms = d->until_ms, .meta = events || order};
        struct catalog_found found;
        int r = presets_catalog_query(&server_settings(d->server)->presets, d->who, name, query, &whole, err);

        if (r == 0)
                r = catalog_log_open(d->server, err) == 0 ? 0 : -EIO;
        if (r != 0)
                return r;
        how.query = buf_view(&whole);
        r = catalog_find(d->server->catalog, &how, on_file, &f, &found, err);
        if (r == CATALOG_CORRUPT && catalog_log_distrust(d->server))
                return err_set(err, -EIO,
                               "the catalog is damaged, and is made again from its log: try again");
        if (r == -E2BIG)
                return err_set(err, r,
                               "the dataset has more than %u files or %u MiB of URLs, which drover submit "
                               "takes, but not a description that comes by the API",
                               DATASET_FILES_MAX, DATASET_BYTES_MAX >> 20);
        if (r == 0 && found.next)
                return err_set(
                        err, -E2BIG,
                        "the query of the dataset takes more than a second, for which drover submit has "
                        "the time, but not a description that comes by the API");
        return r == 0 ? 0 : r == CATALOG_INVALID ? -EINVAL : r == CATALOG_NOT_FOUND ? -ENOENT : -EIO;
}

int dataset_time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                       struct err *err)
{
        struct dataset *d = arg;
        struct preset_time limit;
        int r = presets_time_limit(&server_settings(d->server)->presets, d->who, named, &limit, err);

        *ret = (struct form_time_limit){.seconds = r == 0 ? limit.seconds : 0};
        if (r == 0)
                snprintf(ret->of, sizeof(ret->of), "%s", limit.of);
        return r;
}
