/* The part common to all back ends: it checks limits and names. */
#include <ctype.h>
#include <errno.h>
#include <math.h>

#include <sys/random.h>

#include "catalog/catalog_backend.h"
#include "catalog/change.h"

#define CHANGE_VERSION 1

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
        if (!c)
                return;
        buf_deinit(&c->change);
        c->ops->close(c);
}

/* ---- the log */

static uint64_t random_id(void) /* fits a signed integer of 64 bits */
{
        uint64_t id;

        while (getrandom(&id, sizeof(id), 0) != sizeof(id))
                continue;
        return id >> 1;
}

int catalog_log(struct catalog *c, catalog_log_fn *fn, void *arg, struct err *err)
{
        struct catalog_position before = c->position;
        int r;

        if (!fn)
                c->position = (struct catalog_position){0};
        else if (c->position.number == 0)
                c->position = (struct catalog_position){1, random_id()};
        r = c->ops->set_logged(c, fn != NULL, err);
        if (r != 0) {
                c->position = before;
                return r;
        }
        c->log = fn;
        c->log_arg = arg;
        return 0;
}

struct catalog_position catalog_position(const struct catalog *c)
{
        return c->position;
}

bool catalog_is_behind(const struct catalog *c)
{
        return c->behind;
}

/* Begins the bytes of a change. Returns whether the call is to be logged; if so, what it does follows. */
static bool begin_change(struct catalog *c)
{
        if (c->applying)
                return false;
        buf_reset(&c->change);
        if (!c->log)
                return false;
        pack_u64(&c->change, CHANGE_VERSION);
        pack_u64(&c->change, c->position.number + 1);
        pack_u64(&c->change, random_id());
        return true;
}

/* Reads the head of a change. *ret_call: the rest, which change_call takes. */
static int read_head(struct str change, struct catalog_position *ret, struct str *ret_call, struct err *err)
{
        struct unpack u = unpack_from(change);
        uint64_t version = unpack_u64(&u);

        ret->number = unpack_u64(&u);
        ret->id = unpack_max(&u, INT64_MAX);
        if (u.bad)
                return err_set(err, CATALOG_CORRUPT, "a change of the catalog is damaged in the log");
        if (version > CHANGE_VERSION)
                return err_set(err, CATALOG_TOO_NEW,
                               "a change of the catalog was logged by a newer version: run that version");
        *ret_call = str_make((const char *)u.p, (size_t)(u.end - u.p));
        return 0;
}

int catalog_change_at(struct str change, struct catalog_position *ret, struct err *err)
{
        struct str call;

        return read_head(change, ret, &call, err);
}

int catalog_write_log(struct catalog *c, struct err *err)
{
        struct catalog_position at;
        struct str call;
        int r;

        if (c->change.n == 0)
                return 0;
        r = read_head(buf_view(&c->change), &at, &call, err);
        if (r == 0 && !c->applying)
                r = c->log(c->log_arg, at, buf_view(&c->change), err);
        if (r == 0)
                c->position = at;
        else if (r != CATALOG_FULL)
                c->behind = true;
        return r;
}

/* Ends a writing call with this result. `before`: the position at its beginning. */
static int end_change(struct catalog *c, uint64_t before, int r)
{
        if (r != 0 && c->position.number != before) {
                c->position.number = before;
                c->behind = true;
        }
        return r;
}

int catalog_apply(struct catalog *c, struct str change, struct err *err)
{
        struct catalog_position at, before = c->position;
        struct str call;
        int r = read_head(change, &at, &call, err);

        if (r == 0 && at.number != before.number + 1)
                return err_set(err, CATALOG_CORRUPT, "the log of the catalog's changes has a gap before %llu",
                               (unsigned long long)at.number);
        if (r != 0)
                return r;
        buf_reset(&c->change);
        buf_str(&c->change, change);
        c->applying = true;
        r = change_call(c, call, err);
        c->applying = false;
        if (r == CATALOG_INVALID || r == CATALOG_CONFLICT || r == CATALOG_NOT_FOUND)
                return err_prefix(err, CATALOG_CORRUPT, "a logged change of the catalog does not fit it");
        return r;
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

static int check_writing(const struct catalog *c, bool writes, size_t count, struct err *err)
{
        if (!writes)
                return err_set(err, CATALOG_INVALID, "this catalog can only be read");
        if (c->behind)
                return err_set(err, -EAGAIN, "the catalog lacks a change that its log may have");
        if (count > CATALOG_BATCH_MAX)
                return err_set(err, CATALOG_INVALID, "more than %u files in one call", CATALOG_BATCH_MAX);
        return 0;
}

/* ---- the calls */

int catalog_put(struct catalog *c, const struct catalog_file *files, size_t count,
                const struct catalog_put *how, struct catalog_counts *ret, struct err *err)
{
        uint64_t before = c->position.number;
        int r = check_writing(c, c->ops->put != NULL, count, err);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = check_file(&files[i], err);
        if (r != 0)
                return r;
        if (begin_change(c))
                change_put(&c->change, files, count, how->replace);
        return end_change(c, before, c->ops->put(c, files, count, how, ret, err));
}

int catalog_remove(struct catalog *c, const struct str *names, size_t count, struct str url,
                   uint64_t *ret_removed, struct err *err)
{
        uint64_t before = c->position.number;
        int r = check_writing(c, c->ops->remove != NULL, count, err);

        if (r != 0)
                return r;
        if (begin_change(c))
                change_remove(&c->change, names, count, url);
        return end_change(c, before, c->ops->remove(c, names, count, url, ret_removed, err));
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
        uint64_t before = c->position.number;
        int r = check_writing(c, c->ops->dataset_put != NULL, d->file_count, err);

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
        if (r != 0)
                return r;
        if (begin_change(c))
                change_dataset(&c->change, d);
        return end_change(c, before, c->ops->dataset_put(c, d, err));
}

int catalog_dataset_remove(struct catalog *c, struct str name, struct err *err)
{
        uint64_t before = c->position.number;
        int r = check_writing(c, c->ops->dataset_remove != NULL, 0, err);

        if (r != 0)
                return r;
        if (begin_change(c))
                change_dataset_removed(&c->change, name);
        return end_change(c, before, c->ops->dataset_remove(c, name, err));
}

int catalog_datasets(struct catalog *c, struct str after, catalog_dataset_fn *fn, void *arg, struct err *err)
{
        return c->ops->datasets(c, after, fn, arg, err);
}

int catalog_about(struct catalog *c, struct catalog_about *ret, struct err *err)
{
        return c->ops->about(c, ret, err);
}

static int on_any_file(void *arg, const struct catalog_file *file)
{
        (void)arg, (void)file;
        return 0;
}

static int on_any_dataset(void *arg, const struct catalog_dataset *d)
{
        (void)arg, (void)d;
        return 0;
}

int catalog_check(struct catalog *c, struct err *err)
{
        struct catalog_found found;
        int r = c->ops->check ? c->ops->check(c, err) : 0;

        if (r == 0)
                r = catalog_find(c, &(struct catalog_find){.meta = true}, on_any_file, NULL, &found, err);
        return r == 0 ? catalog_datasets(c, STR_NONE, on_any_dataset, NULL, err) : r;
}
