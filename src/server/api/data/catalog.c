/* /v1/catalog and the routes below it: the catalog of files.
 *
 * The catalog has a thread of its own (server.h), because an import writes for longer than a query of
 * history may wait. It is opened at the first call, so that a damaged catalog stops nothing else. A page
 * ends after PAGE_MS: a query of many files takes many pages, and other calls run between them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "catalog/catalog.h"
#include "server/api/routes.h"
#include "server/files/catalog_log.h"

#define PAGE_MS      250
#define PAGE_FILES   10000
#define PAGE_BYTES   (4u << 20)
#define PAGE_DEFAULT 1000
#define DATASETS_MAX 1000 /* on a page */

static void fail_call(struct call *c, int r, const struct err *err)
{
        switch (r) {
        case CATALOG_INVALID: call_fail_err(c, 400, "bad_catalog_request", err); break;
        case CATALOG_CONFLICT: call_fail_err(c, 409, "conflict", err); break;
        case CATALOG_NOT_FOUND: call_fail_err(c, 404, "not_found", err); break;
        case CATALOG_FULL:
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                break;
        case CATALOG_CORRUPT:
                if (catalog_log_distrust(c->server))
                        call_fail(c, 503, "catalog_damaged",
                                  "%s is damaged, and is made again from its log now: try again",
                                  c->server->paths.catalog);
                else
                        call_fail_err(c, 500, "catalog", err);
                break;
        default: call_fail_err(c, 500, "catalog", err); break;
        }
}

/* Catalog thread: opens the catalog at the first call. Returns false if the call has failed. */
static bool ready(struct server *s, struct call *c)
{
        struct err err = {0};
        int r = catalog_log_open(s, &err);

        if (r != 0)
                fail_call(c, r, &err);
        return r == 0;
}

static bool has_room(struct server *s, struct call *c)
{
        if (catalog_log_has_room(s))
                return true;
        call_fail(c, 503, "disk_full",
                  "the server's disk is nearly full, and the catalog takes nothing more");
        return false;
}

/* I/O thread: returns whether the caller may write; if not, the call has failed. */
static bool may_write(struct server *s, struct call *c)
{
        enum role least = server_settings(s)->catalog_write;

        if (c->role >= least)
                return true;
        call_fail(c, 403, "forbidden",
                  "the catalog is written by those who have the role %s here (catalog_write in droverd.yaml)",
                  role_name(least));
        return false;
}

static void reply_catalog(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* ---- description */

static void about(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        struct catalog_about a;
        struct err err = {0};
        enum role least = server_settings(s)->catalog_write;
        int r;

        if (!ready(s, c))
                return;
        r = catalog_about(s->catalog, &a, &err);
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "files", (int64_t)a.files);
        json_kint(&j, "keys", (int64_t)a.keys);
        json_kint(&j, "datasets", (int64_t)a.datasets);
        json_kstrz(&j, "write", role_name(least));
        json_kbool(&j, "may_write", c->role >= least);
        json_close(&j, '}');
        call_io(c, reply_catalog);
}

void api_catalog(struct server *s, struct call *c)
{
        (void)s;
        call_catalog(c, about);
}

/* ---- queries */

struct find {
        struct catalog_find how;
        struct catalog_found found;
        struct json json;
        struct call *call;
};

static void write_value(struct json *j, const struct catalog_value *v)
{
        switch (v->type) {
        case CATALOG_INTEGER: json_int(j, v->integer); break;
        case CATALOG_REAL: json_double(j, v->real); break;
        case CATALOG_BOOLEAN: json_bool(j, v->boolean); break;
        default: json_str(j, v->text); break;
        }
}

static void catalog_write_file(struct json *j, const struct catalog_file *f, bool meta)
{
        json_open(j, '{');
        json_kstr(j, "name", f->name);
        if (f->has_size)
                json_kint(j, "size", (int64_t)f->size);
        if (f->checksum.n)
                json_kstr(j, "checksum", f->checksum);
        if (meta) {
                json_key(j, "metadata");
                json_open(j, '{');
                for (size_t i = 0; i < f->meta_count; i++) {
                        json_keys(j, f->meta[i].key);
                        write_value(j, &f->meta[i].value);
                }
                json_close(j, '}');
        }
        json_key(j, "replicas");
        json_open(j, '[');
        for (size_t i = 0; i < f->replica_count; i++) {
                json_open(j, '{');
                json_kstr(j, "url", f->replicas[i].url);
                if (f->replicas[i].host.n)
                        json_kstr(j, "host", f->replicas[i].host);
                if (f->replicas[i].store.n)
                        json_kstr(j, "store", f->replicas[i].store);
                json_close(j, '}');
        }
        json_close(j, ']');
        json_close(j, '}');
}

static int on_file(void *arg, const struct catalog_file *file)
{
        struct find *f = arg;

        catalog_write_file(&f->json, file, f->how.meta);
        return f->call->out.n > PAGE_BYTES;
}

static void find_files(struct server *s, struct call *c)
{
        struct find *f = c->state;
        struct err err = {0};
        char next[64];
        int r;

        if (!ready(s, c))
                return;
        f->call = c;
        f->json.out = &c->out;
        f->how.deadline_ms = clock_boot_ms() + PAGE_MS;
        json_open(&f->json, '{');
        if (!f->how.count) {
                json_key(&f->json, "files");
                json_open(&f->json, '[');
        }
        r = catalog_find(s->catalog, &f->how, on_file, f, &f->found, &err);
        if (r != 0 && !(f->found.next && c->out.n > PAGE_BYTES)) {
                buf_reset(&c->out);
                fail_call(c, r, &err);
                return;
        }
        if (f->how.count) {
                json_kint(&f->json, "count", (int64_t)f->found.files);
                json_kint(&f->json, "bytes", (int64_t)f->found.bytes);
        } else {
                json_close(&f->json, ']');
        }
        snprintf(next, sizeof(next), "%" PRIu64 ".%" PRIu64, f->found.next, f->how.given + f->found.files);
        json_kstrz(&f->json, "next", f->found.next ? next : NULL);
        json_close(&f->json, '}');
        call_io(c, reply_catalog);
}

/* Reads where the previous page ended, and how many files there were up to there: "81920.4711" */
static bool read_cursor(struct call *c, struct find *f)
{
        struct str rest = call_query(c, "after"), first;

        if (rest.n == 0)
                return true;
        if (str_cut(&rest, '.', &first) && str_to_u64(first, &f->how.after) == 0 &&
            str_to_u64(rest, &f->how.given) == 0 && f->how.after < UINT64_MAX / 2 &&
            f->how.given < UINT64_MAX / 2)
                return true;
        call_fail(c, 400, "bad_parameter", "'after' is what a page gave as \"next\"");
        return false;
}

static bool read_query(struct server *s, struct call *c, struct find *f)
{
        BUF_CLEANUP struct buf query = {0};
        struct err err = {0};
        int r = presets_catalog_query(&server_settings(s)->presets, c->who, call_query(c, "catalog"),
                                      call_query(c, "query"), &query, &err);

        if (r == -EACCES)
                call_fail_err(c, 403, "forbidden", &err);
        else if (r != 0)
                call_fail_err(c, 404, "not_found", &err);
        else
                f->how.query = arena_str(&c->arena, buf_view(&query));
        return r == 0;
}

void api_catalog_files(struct server *s, struct call *c)
{
        struct find *f = call_state(c, sizeof(*f), NULL);
        uint64_t limit = PAGE_DEFAULT;

        if (!read_query(s, c, f) || !read_cursor(c, f) || !call_number(c, "limit", UINT32_MAX, &limit))
                return;
        f->how.page = limit == 0 || limit > PAGE_FILES ? PAGE_FILES : (uint32_t)limit;
        f->how.count = call_flag(c, "count");
        f->how.meta = call_flag(c, "metadata");
        call_catalog(c, find_files);
}

static void get_file(struct server *s, struct call *c)
{
        struct find *f = c->state;
        struct err err = {0};
        int r;

        if (!ready(s, c))
                return;
        f->call = c;
        f->how.meta = true;
        f->json.out = &c->out;
        r = catalog_get(s->catalog, f->how.query, on_file, f, &err);
        if (r != 0)
                fail_call(c, r, &err);
        else
                call_io(c, reply_catalog);
}

void api_catalog_file(struct server *s, struct call *c)
{
        struct find *f = call_state(c, sizeof(*f), NULL);

        (void)s;
        f->how.query = c->param[0];
        call_catalog(c, get_file);
}

/* ---- writing; the catalog's thread reads the body */

struct write {
        struct buf body;
        json_t *doc; /* in the arena */
        struct catalog_file *files;
        size_t count;
        struct arena arena;
};

static void write_free(void *arg)
{
        struct write *w = arg;

        buf_deinit(&w->body);
        free(w->files);
        arena_deinit(&w->arena);
        free(w);
}

/* I/O thread: passes the body to the catalog's thread. */
static void write_begin(struct server *s, struct call *c, call_fn *fn)
{
        struct write *w;

        if (!may_write(s, c))
                return;
        w = call_state(c, sizeof(*w), write_free);
        if (call_body(c, &w->body))
                call_catalog(c, fn);
}

/* Catalog thread. Returns false if the call has failed. */
static bool write_ready(struct server *s, struct call *c)
{
        struct write *w = c->state;

        if (!ready(s, c) || !has_room(s, c))
                return false;
        w->doc = call_json_in(c, buf_view(&w->body), &w->arena);
        return w->doc != NULL;
}

static struct str text_of(const json_t *v)
{
        return str_make(json_string_value(v), json_string_length(v));
}

static int read_value(const json_t *v, struct catalog_value *ret)
{
        if (json_is_string(v))
                *ret = (struct catalog_value){.type = CATALOG_TEXT, .text = text_of(v)};
        else if (json_is_integer(v))
                *ret = (struct catalog_value){.type = CATALOG_INTEGER, .integer = json_integer_value(v)};
        else if (json_is_real(v))
                *ret = (struct catalog_value){.type = CATALOG_REAL, .real = json_real_value(v)};
        else if (json_is_boolean(v))
                *ret = (struct catalog_value){.type = CATALOG_BOOLEAN, .boolean = json_is_true(v)};
        else
                return -EINVAL;
        return 0;
}

static int read_meta(struct write *w, const json_t *object, struct catalog_file *f, struct err *err)
{
        size_t n = json_object_size(object);
        struct catalog_meta *meta = arena_alloc(&w->arena, (n + 1) * sizeof(*meta));
        const char *key;
        json_t *v;

        json_object_foreach ((json_t *)(uintptr_t)object, key, v) {
                meta[f->meta_count].key = str_of(key);
                if (read_value(v, &meta[f->meta_count].value) != 0)
                        return err_set(err, CATALOG_INVALID,
                                       STR_FMT ": the value of %.80s is a text, a number, true or false",
                                       STR_ARG(str_head(f->name, 200)), key);
                f->meta_count++;
        }
        f->meta = meta;
        return 0;
}

static void read_replicas(struct write *w, const json_t *list, struct catalog_file *f)
{
        struct catalog_replica *replicas =
                arena_alloc(&w->arena, (json_array_size(list) + 1) * sizeof(*replicas));
        size_t i;
        json_t *v;

        json_array_foreach (list, i, v)
                replicas[f->replica_count++] = (struct catalog_replica){.url = call_json_text(v, "url"),
                                                                        .host = call_json_text(v, "host"),
                                                                        .store = call_json_text(v, "store")};
        f->replicas = replicas;
}

static int read_files(struct write *w, struct err *err)
{
        const json_t *files = json_object_get(w->doc, "files");
        size_t i;
        json_t *v;

        if (!json_is_array(files))
                return err_set(err, CATALOG_INVALID, "\"files\" is missing: a list of files");
        w->files = mem_array(NULL, json_array_size(files) + 1, sizeof(*w->files));
        json_array_foreach (files, i, v) {
                struct catalog_file *f = &w->files[w->count++];
                const json_t *size = json_object_get(v, "size");
                int r;

                *f = (struct catalog_file){.name = call_json_text(v, "name"),
                                           .has_size = json_is_integer(size),
                                           .checksum = call_json_text(v, "checksum")};
                if (f->has_size && json_integer_value(size) < 0)
                        return err_set(err, CATALOG_INVALID, STR_FMT ": the size is below 0",
                                       STR_ARG(str_head(f->name, 200)));
                f->size = f->has_size ? (uint64_t)json_integer_value(size) : 0;
                r = read_meta(w, json_object_get(v, "metadata"), f, err);
                if (r != 0)
                        return r;
                read_replicas(w, json_object_get(v, "replicas"), f);
        }
        return 0;
}

static void put_files(struct server *s, struct call *c)
{
        struct write *w = c->state;
        struct json j = {.out = &c->out};
        struct catalog_counts counts;
        struct err err = {0};
        int r;

        if (!write_ready(s, c))
                return;
        r = read_files(w, &err);
        if (r == 0)
                r = catalog_put(
                        s->catalog, w->files, w->count,
                        &(struct catalog_put){.replace = json_is_true(json_object_get(w->doc, "replace"))},
                        &counts, &err);
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "added", (int64_t)counts.added);
        json_kint(&j, "changed", (int64_t)counts.changed);
        json_close(&j, '}');
        call_io(c, reply_catalog);
}

void api_catalog_put(struct server *s, struct call *c)
{
        write_begin(s, c, put_files);
}

/* Returns the texts of the list under a key, or NULL. */
static struct str *read_names(struct write *w, const char *key, size_t *ret)
{
        const json_t *list = json_object_get(w->doc, key);
        struct str *names;
        size_t i;
        json_t *v;

        if (!json_is_array(list))
                return NULL;
        names = arena_alloc(&w->arena, (json_array_size(list) + 1) * sizeof(*names));
        json_array_foreach (list, i, v)
                names[i] = text_of(v);
        *ret = json_array_size(list);
        return names;
}

static void remove_files(struct server *s, struct call *c)
{
        struct write *w = c->state;
        struct json j = {.out = &c->out};
        struct err err = {0};
        uint64_t removed;
        struct str *names;
        size_t count = 0;
        int r;

        if (!write_ready(s, c))
                return;
        names = read_names(w, "names", &count);
        if (!names)
                r = err_set(&err, CATALOG_INVALID, "\"names\" is missing: a list of files' names");
        else
                r = catalog_remove(s->catalog, names, count, call_json_text(w->doc, "url"), &removed, &err);
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "removed", (int64_t)removed);
        json_close(&j, '}');
        call_io(c, reply_catalog);
}

void api_catalog_remove(struct server *s, struct call *c)
{
        write_begin(s, c, remove_files);
}

/* ---- datasets */

struct datasets {
        struct json json;
        struct str after;
        struct buf last;
        unsigned count;
        bool full; /* there are more than the page has room for */
};

static void datasets_free(void *arg)
{
        struct datasets *d = arg;

        buf_deinit(&d->last);
        free(d);
}

static int on_dataset(void *arg, const struct catalog_dataset *d)
{
        struct datasets *l = arg;

        l->full = l->count == DATASETS_MAX || l->json.out->n > PAGE_BYTES;
        if (l->full)
                return 1;
        l->count++;
        buf_reset(&l->last);
        buf_str(&l->last, d->name);
        json_open(&l->json, '{');
        json_kstr(&l->json, "name", d->name);
        json_kstr(&l->json, "owner", d->owner);
        if (d->file_count)
                json_kint(&l->json, "files", (int64_t)d->file_count);
        else
                json_kstr(&l->json, "query", d->query);
        json_close(&l->json, '}');
        return 0;
}

static void list_datasets(struct server *s, struct call *c)
{
        struct datasets *d = c->state;
        struct err err = {0};
        int r;

        if (!ready(s, c))
                return;
        d->json.out = &c->out;
        json_open(&d->json, '{');
        json_key(&d->json, "datasets");
        json_open(&d->json, '[');
        r = catalog_datasets(s->catalog, d->after, on_dataset, d, &err);
        if (r != 0 && !d->full) {
                buf_reset(&c->out);
                fail_call(c, r, &err);
                return;
        }
        json_close(&d->json, ']');
        json_key(&d->json, "next");
        if (r != 0)
                json_str(&d->json, buf_view(&d->last));
        else
                json_null(&d->json);
        json_close(&d->json, '}');
        call_io(c, reply_catalog);
}

void api_catalog_datasets(struct server *s, struct call *c)
{
        struct datasets *d = call_state(c, sizeof(*d), datasets_free);

        (void)s;
        d->after = call_query(c, "after");
        call_catalog(c, list_datasets);
}

static void put_dataset(struct server *s, struct call *c)
{
        struct write *w = c->state;
        struct catalog_dataset d = {.name = c->param[0], .owner = str_of(c->who)};
        struct err err = {0};
        int r;

        if (!write_ready(s, c))
                return;
        d.files = read_names(w, "files", &d.file_count);
        d.query = call_json_text(w->doc, "query");
        if (d.file_count && d.query.n)
                r = err_set(&err, CATALOG_INVALID,
                            "a dataset is a \"query\" or a list of \"files\", not both");
        else if (!d.file_count && !d.query.n)
                r = err_set(&err, CATALOG_INVALID, "a dataset is a \"query\" or a list of \"files\"");
        else
                r = catalog_dataset_put(s->catalog, &d, &err);
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        buf_addz(&c->out, "{}");
        call_io(c, reply_catalog);
}

void api_catalog_dataset_put(struct server *s, struct call *c)
{
        write_begin(s, c, put_dataset);
}

static void delete_dataset(struct server *s, struct call *c)
{
        struct err err = {0};
        int r;

        if (!ready(s, c))
                return;
        r = catalog_dataset_remove(s->catalog, c->param[0], &err);
        if (r != 0) {
                fail_call(c, r, &err);
                return;
        }
        buf_addz(&c->out, "{}");
        call_io(c, reply_catalog);
}

void api_catalog_dataset_delete(struct server *s, struct call *c)
{
        if (may_write(s, c))
                call_catalog(c, delete_dataset);
}
