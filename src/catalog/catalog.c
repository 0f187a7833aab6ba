/* The part common to all back ends: it checks limits and names. */
#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "catalog/catalog_backend.h"

int catalog_open(const char *address, struct catalog **ret, struct err *err)
{
        static const struct {
                const char *name;
                const struct catalog_ops *ops;
        } kinds[] = {{"sqlite:", &catalog_sqlite}};

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (str_starts(str_of(address), str_of(kinds[i].name)))
                        return kinds[i].ops->open(address + strlen(kinds[i].name), ret, err);
        return err_set(err, CATALOG_INVALID, "\"%s\" is not a catalog's address: write sqlite:/path/of/file",
                       address);
}

void catalog_close(struct catalog *c)
{
        if (c)
                c->ops->close(c);
}

/* ---- checks */

static int check_text(struct str s, size_t max, const char *what, struct err *err)
{
        if (s.n > max)
                return err_set(err, CATALOG_INVALID, "%s has more than %zu bytes", what, max);
        for (size_t i = 0; i < s.n;) {
                size_t n = str_utf8(str_skip(s, i));

                if (n == 0 || iscntrl((unsigned char)s.p[i]))
                        return err_set(
                                err, CATALOG_INVALID,
                                "%s has a character that is not allowed: text is UTF-8 without control "
                                "characters",
                                what);
                i += n;
        }
        return 0;
}

static int check_meta(const struct catalog_file *f, struct err *err)
{
        if (f->meta_count > CATALOG_META_MAX)
                return err_set(err, CATALOG_INVALID, "more than %u keys", CATALOG_META_MAX);
        for (size_t i = 0; i < f->meta_count; i++) {
                const struct catalog_meta *m = &f->meta[i];
                int r = 0;

                if (!catalog_key_is_valid(m->key))
                        return err_set(err, CATALOG_INVALID,
                                       "\"" STR_FMT
                                       "\" is not a metadata key: letters, digits and _, at most "
                                       "%u, and no word of queries (name, size, storage, host, …)",
                                       STR_ARG(str_head(m->key, 80)), CATALOG_KEY_MAX);
                if (m->value.type == CATALOG_TEXT)
                        r = check_text(m->value.text, CATALOG_VALUE_MAX, "a value", err);
                else if (m->value.type == CATALOG_REAL && !isfinite(m->value.real))
                        r = err_set(err, CATALOG_INVALID, "a value is not a number");
                if (r != 0)
                        return err_prefix(err, r, STR_FMT, STR_ARG(m->key));
        }
        return 0;
}

static int check_replicas(const struct catalog_file *f, struct err *err)
{
        if (f->replica_count > CATALOG_REPLICAS_MAX)
                return err_set(err, CATALOG_INVALID, "more than %u replicas", CATALOG_REPLICAS_MAX);
        for (size_t i = 0; i < f->replica_count; i++) {
                const struct catalog_replica *p = &f->replicas[i];
                int r = check_text(p->url, CATALOG_URL_MAX, "a URL", err);

                if (r == 0 && str_find(p->url, ':') < 1)
                        r = err_set(err, CATALOG_INVALID, "\"" STR_FMT "\" is no URL",
                                    STR_ARG(str_head(p->url, 100)));
                if (r == 0)
                        r = check_text(p->host, CATALOG_NAME_MAX, "a host", err);
                if (r == 0)
                        r = check_text(p->store, CATALOG_NAME_MAX, "a store", err);
                for (size_t k = 0; r == 0 && k < i; k++)
                        if (str_eq(f->replicas[k].url, p->url))
                                r = err_set(err, CATALOG_INVALID, "the URL " STR_FMT " is there twice",
                                            STR_ARG(str_head(p->url, 200)));
                if (r != 0)
                        return r;
        }
        return 0;
}

static int check_file(const struct catalog_file *f, struct err *err)
{
        int r = check_text(f->name, CATALOG_NAME_MAX, "a file's name", err);

        if (r != 0)
                return r;
        if (f->name.n == 0)
                return err_set(err, CATALOG_INVALID, "a file has no name");
        r = check_text(f->checksum, CATALOG_CHECKSUM_MAX, "the checksum", err);
        if (r == 0 && f->has_size && f->size > INT64_MAX)
                r = err_set(err, CATALOG_INVALID, "the size is out of range");
        if (r == 0)
                r = check_meta(f, err);
        if (r == 0)
                r = check_replicas(f, err);
        return r == 0 ? 0 : err_prefix(err, r, STR_FMT, STR_ARG(str_head(f->name, 200)));
}

static int check_writing(bool writes, size_t count, struct err *err)
{
        if (!writes)
                return err_set(err, CATALOG_INVALID, "this catalog can only be read");
        if (count > CATALOG_BATCH_MAX)
                return err_set(err, CATALOG_INVALID, "more than %u files in one call", CATALOG_BATCH_MAX);
        return 0;
}

/* ---- the calls */

int catalog_put(struct catalog *c, const struct catalog_file *files, size_t count,
                const struct catalog_put *how, struct catalog_counts *ret, struct err *err)
{
        int r = check_writing(c->ops->put != NULL, count, err);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = check_file(&files[i], err);
        return r == 0 ? c->ops->put(c, files, count, how, ret, err) : r;
}

int catalog_remove(struct catalog *c, const struct str *names, size_t count, struct str url,
                   uint64_t *ret_removed, struct err *err)
{
        int r = check_writing(c->ops->remove != NULL, count, err);

        return r == 0 ? c->ops->remove(c, names, count, url, ret_removed, err) : r;
}

int catalog_find(struct catalog *c, const struct catalog_find *how, catalog_file_fn *fn, void *arg,
                 struct catalog_found *ret, struct err *err)
{
        struct catalog_query *q;
        int r = catalog_query_parse(how->query, &q, err);

        if (r == 0) {
                r = c->ops->find(c, q, how, fn, arg, ret, err);
                catalog_query_free(q);
        }
        return r;
}

int catalog_get(struct catalog *c, struct str name, catalog_file_fn *fn, void *arg, struct err *err)
{
        return c->ops->get(c, name, fn, arg, err);
}

int catalog_dataset_put(struct catalog *c, const struct catalog_dataset *d, struct err *err)
{
        struct catalog_query *q = NULL;
        int r = check_writing(c->ops->dataset_put != NULL, d->file_count, err);

        if (r == 0)
                r = check_text(d->name, CATALOG_NAME_MAX, "the name of a dataset", err);
        if (r == 0 && (d->name.n == 0 || str_find(d->name, ',') >= 0))
                r = err_set(err, CATALOG_INVALID, "the name of a dataset is empty, or has a comma in it");
        if (r == 0)
                r = check_text(d->owner, CATALOG_NAME_MAX, "the owner", err);
        if (r == 0 && d->file_count == 0)
                r = catalog_query_parse(d->query, &q, err);
        if (r == 0 && q && str_eq(q->dataset, d->name))
                r = err_set(err, CATALOG_INVALID, "the dataset " STR_FMT " names itself", STR_ARG(d->name));
        catalog_query_free(q);
        return r == 0 ? c->ops->dataset_put(c, d, err) : r;
}

int catalog_dataset_remove(struct catalog *c, struct str name, struct err *err)
{
        int r = check_writing(c->ops->dataset_remove != NULL, 0, err);

        return r == 0 ? c->ops->dataset_remove(c, name, err) : r;
}

int catalog_datasets(struct catalog *c, struct str after, catalog_dataset_fn *fn, void *arg, struct err *err)
{
        return c->ops->datasets(c, after, fn, arg, err);
}

int catalog_about(struct catalog *c, struct catalog_about *ret, struct err *err)
{
        return c->ops->about(c, ret, err);
}
