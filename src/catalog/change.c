#include "catalog/change.h"

#include "base/arena.h"

enum kind { PUT = 1, REPLACE, REMOVE, DATASET, DATASET_REMOVED };

/* ---- writing */

static void pack_value(struct buf *to, const struct catalog_value *v)
{
        pack_u64(to, v->type);
        switch (v->type) {
        case CATALOG_TEXT: pack_str(to, v->text); break;
        case CATALOG_INTEGER: pack_i64(to, v->integer); break;
        case CATALOG_REAL: pack_double(to, v->real); break;
        case CATALOG_BOOLEAN: pack_u64(to, v->boolean); break;
        }
}

static void pack_file(struct buf *to, const struct catalog_file *f)
{
        pack_str(to, f->name);
        pack_u64(to, f->has_size ? f->size + 1 : 0);
        pack_str(to, f->checksum);
        pack_u64(to, f->meta_count);
        for (size_t i = 0; i < f->meta_count; i++) {
                pack_str(to, f->meta[i].key);
                pack_value(to, &f->meta[i].value);
        }
        pack_u64(to, f->replica_count);
        for (size_t i = 0; i < f->replica_count; i++) {
                pack_str(to, f->replicas[i].url);
                pack_str(to, f->replicas[i].host);
                pack_str(to, f->replicas[i].store);
        }
}

static void pack_names(struct buf *to, const struct str *names, size_t count)
{
        pack_u64(to, count);
        for (size_t i = 0; i < count; i++)
                pack_str(to, names[i]);
}

void change_put(struct buf *to, const struct catalog_file *files, size_t count, bool replace)
{
        pack_u64(to, replace ? REPLACE : PUT);
        pack_u64(to, count);
        for (size_t i = 0; i < count; i++)
                pack_file(to, &files[i]);
}

void change_remove(struct buf *to, const struct str *names, size_t count, struct str url)
{
        pack_u64(to, REMOVE);
        pack_str(to, url);
        pack_names(to, names, count);
}

void change_dataset(struct buf *to, const struct catalog_dataset *d)
{
        pack_u64(to, DATASET);
        pack_str(to, d->name);
        pack_str(to, d->owner);
        pack_str(to, d->query);
        pack_names(to, d->files, d->file_count);
}

void change_dataset_removed(struct buf *to, struct str name)
{
        pack_u64(to, DATASET_REMOVED);
        pack_str(to, name);
}

/* ---- reading: texts point into the change, arrays are in the arena */

static struct catalog_value read_value(struct unpack *u)
{
        struct catalog_value v = {.type = (enum catalog_type)unpack_max(u, CATALOG_BOOLEAN)};

        switch (v.type) {
        case CATALOG_TEXT: v.text = unpack_str(u); break;
        case CATALOG_INTEGER: v.integer = unpack_i64(u); break;
        case CATALOG_REAL: v.real = unpack_double(u); break;
        case CATALOG_BOOLEAN: v.boolean = unpack_max(u, 1) == 1; break;
        }
        return v;
}

static void read_file(struct unpack *u, struct arena *a, struct catalog_file *f)
{
        struct catalog_meta *meta;
        struct catalog_replica *replicas;
        uint64_t size;

        f->name = unpack_str(u);
        size = unpack_max(u, (uint64_t)INT64_MAX + 1);
        f->has_size = size > 0;
        f->size = size ? size - 1 : 0;
        f->checksum = unpack_str(u);
        f->meta_count = unpack_max(u, CATALOG_META_MAX);
        f->meta = meta = arena_alloc(a, (f->meta_count + 1) * sizeof(*meta));
        for (size_t i = 0; i < f->meta_count; i++) {
                meta[i].key = unpack_str(u);
                meta[i].value = read_value(u);
        }
        f->replica_count = unpack_max(u, CATALOG_REPLICAS_MAX);
        f->replicas = replicas = arena_alloc(a, (f->replica_count + 1) * sizeof(*replicas));
        for (size_t i = 0; i < f->replica_count; i++) {
                replicas[i].url = unpack_str(u);
                replicas[i].host = unpack_str(u);
                replicas[i].store = unpack_str(u);
        }
}

static struct str *read_names(struct unpack *u, struct arena *a, size_t *ret)
{
        struct str *names;

        *ret = unpack_max(u, CATALOG_BATCH_MAX);
        names = arena_alloc(a, (*ret + 1) * sizeof(*names));
        for (size_t i = 0; i < *ret; i++)
                names[i] = unpack_str(u);
        return names;
}

static int no_change(struct err *err)
{
        return err_set(err, CATALOG_CORRUPT, "a change of the catalog is damaged in the log");
}

static int call_put(struct catalog *c, struct unpack *u, struct arena *a, bool replace, struct err *err)
{
        size_t n = unpack_max(u, CATALOG_BATCH_MAX);
        struct catalog_file *files = arena_alloc(a, (n + 1) * sizeof(*files));
        struct catalog_counts counts;

        memset(files, 0, (n + 1) * sizeof(*files));
        for (size_t i = 0; i < n && !u->bad; i++)
                read_file(u, a, &files[i]);
        if (!unpack_done(u))
                return no_change(err);
        return catalog_put(c, files, n, &(struct catalog_put){.replace = replace}, &counts, err);
}

static int call_remove(struct catalog *c, struct unpack *u, struct arena *a, struct err *err)
{
        struct str url = unpack_str(u);
        uint64_t removed;
        size_t n;
        struct str *names = read_names(u, a, &n);

        return unpack_done(u) ? catalog_remove(c, names, n, url, &removed, err) : no_change(err);
}

static int call_dataset(struct catalog *c, struct unpack *u, struct arena *a, struct err *err)
{
        struct catalog_dataset d = {.name = unpack_str(u)};

        d.owner = unpack_str(u);
        d.query = unpack_str(u);
        d.files = read_names(u, a, &d.file_count);
        return unpack_done(u) ? catalog_dataset_put(c, &d, err) : no_change(err);
}

int change_call(struct catalog *c, struct str change, struct err *err)
{
        struct unpack u = unpack_from(change);
        uint64_t kind = unpack_u64(&u);
        struct arena a = {0};
        struct str name;
        int r;

        switch (kind) {
        case PUT:
        case REPLACE: r = call_put(c, &u, &a, kind == REPLACE, err); break;
        case REMOVE: r = call_remove(c, &u, &a, err); break;
        case DATASET: r = call_dataset(c, &u, &a, err); break;
        case DATASET_REMOVED:
                name = unpack_str(&u);
                r = unpack_done(&u) ? catalog_dataset_remove(c, name, err) : no_change(err);
                break;
        default: r = no_change(err);
        }
        arena_deinit(&a);
        return r;
}
