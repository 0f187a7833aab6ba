/* Queries: chunk by chunk of COLUMN_FILES files. A condition on metadata is evaluated for the values of a
 * column, and each file gets its result by number. Expressions are evaluated once for each combination of
 * values. A row is read only for files that are returned, or when the query uses names or URLs. */
#include "catalog/db.h"

#include <errno.h>
#include <stdio.h>

#include "base/set.h"
#include "base/system/clock.h"
#include "classad/eval.h"

#define NESTED_MAX     8    /* depth of datasets that are queries that name datasets */
#define USED_MAX       32   /* attributes in expressions */
#define LOOK_EVERY     64   /* files between two checks of the clock */
#define COSTLY         50   /* values in the conditions of a query that checks the clock at each file */
#define LATE_MS        2000 /* how far after its deadline a page may end, to complete one chunk */
#define STEPS_MAX      20000
#define REMEMBERED_MAX 8192 /* results of expressions kept in one chunk */

/* A query with the datasets that it names expanded. */
struct plan {
        struct catalog_query *owned[NESTED_MAX];
        const struct catalog_query *queries[NESTED_MAX + 1];
        size_t count;
        struct set listed;
        bool has_list;
        uint64_t limit; /* 0: none */
        bool rows;      /* has conditions on names or URLs: each file's row is read */
        bool replicas;  /* has conditions on replicas */

        /* for expressions */
        struct symbols *symbols;
        struct ad *ad;
        struct expr *where[NESTED_MAX + 1];
        size_t where_count;
        struct used {
                symbol symbol;
                uint32_t key; /* of a column; 0: no file has it */
                bool name;    /* the attribute Name, which is in the row */
        } used[USED_MAX];
        size_t used_count;
        bool too_many, names;
        bool costly;
        struct eval eval;
};

struct search {
        struct db *q;
        const struct catalog_find *how;
        struct plan plan;
        catalog_file_fn *fn;
        void *arg;
        struct catalog_found found;
        struct err *err;
        uint64_t chunk;
        bool flags[COLUMN_FILES];
        struct column places, size, scratch;
        struct column used[USED_MAX];
        struct map *remembered; /* codes of used columns -> 1 false, 2 true */
        /* all metadata of the chunk, when files are returned with it */
        struct column *meta;
        uint32_t *meta_keys;
        size_t meta_count, meta_cap;
        bool meta_read;
        struct catalog_meta told_meta[CATALOG_META_MAX];
        struct file_row *row;
};

/* ---- the plan */

static int load_dataset(struct db *q, struct plan *p, struct str name, struct err *err)
{
        sqlite3_stmt *st = q->st[ST_DATASET];
        int r;

        if (p->count > NESTED_MAX)
                return err_set(err, CATALOG_INVALID,
                               "datasets name each other more than %d deep, or in a circle", NESTED_MAX);
        db_bind(st, 1, name);
        r = db_step(q, ST_DATASET, err);
        if (r == 0) {
                r = err_set(err, CATALOG_NOT_FOUND, "there is no dataset " STR_FMT,
                            STR_ARG(str_head(name, 300)));
        } else if (r == 1 && sqlite3_column_type(st, 0) != SQLITE_NULL) {
                r = catalog_query_parse(db_column(st, 0), &p->owned[p->count - 1], err);
                if (r == 0) {
                        p->queries[p->count] = p->owned[p->count - 1];
                        p->count++;
                }
        } else if (r == 1) {
                struct unpack u = unpack_from(db_column(st, 1));

                p->has_list = true;
                r = set_unpack(&p->listed, &u) == 0 ? 0 : db_corrupt(q, "a dataset's list is damaged", err);
        }
        sqlite3_reset(st);
        return r;
}

static void on_reference(void *arg, symbol name, bool target)
{
        struct plan *p = arg;

        (void)target;
        for (size_t i = 0; i < p->used_count; i++)
                if (p->used[i].symbol == name)
                        return;
        if (p->used_count == USED_MAX)
                p->too_many = true;
        else
                p->used[p->used_count++].symbol = name;
}

static int add_where(struct db *q, struct plan *p, struct str text, struct err *err)
{
        struct expr_uses uses = {0};
        struct expr *x;

        if (!p->symbols) {
                p->symbols = symbols_new();
                p->ad = ad_new(p->symbols);
                eval_init(&p->eval, clock_wall_ms() / 1000, 0);
                p->eval.steps_max = STEPS_MAX;
        }
        if (expr_parse(p->symbols, text, &x, err) != 0)
                return err_prefix(err, CATALOG_INVALID, "where");
        p->where[p->where_count++] = x;
        expr_references(x, p->ad, on_reference, p, &uses);
        if (uses.uses_more || p->too_many)
                return err_set(err, CATALOG_INVALID,
                               "where: the expression uses %s; name the keys that it looks at",
                               p->too_many ? "more than 32 keys" : "eval or the ad as a whole");
        for (size_t i = 0; i < p->used_count; i++) {
                struct str name = symbols_name(p->symbols, p->used[i].symbol);

                p->used[i].name = str_ieqz(name, "Name");
                p->used[i].key = str_ieqz(name, "Size") ? KEY_SIZE : db_key(q, name);
                p->names |= p->used[i].name;
        }
        return 0;
}

static int plan_make(struct db *q, struct plan *p, const struct catalog_query *query, struct err *err)
{
        size_t operands = 0;
        int r = 0;

        p->queries[p->count++] = query;
        for (size_t i = 0; r == 0 && i < p->count; i++) {
                const struct catalog_query *one = p->queries[i];

                if (one->limit && (p->limit == 0 || one->limit < p->limit))
                        p->limit = one->limit;
                for (size_t k = 0; k < one->condition_count; k++) {
                        enum catalog_key key = one->conditions[k].key;

                        operands += one->conditions[k].operand_count;

                        p->rows |= key == CATALOG_NAME || key == CATALOG_URL;
                        p->replicas |= key == CATALOG_STORE || key == CATALOG_HOST || key == CATALOG_URL;
                }
                if (one->where.n)
                        r = add_where(q, p, one->where, err);
                if (r == 0 && one->dataset.n)
                        r = load_dataset(q, p, one->dataset, err);
        }
        p->costly = operands > COSTLY || p->where_count;
        return r;
}

static void plan_deinit(struct plan *p)
{
        for (size_t i = 0; i < p->where_count; i++)
                expr_free(p->where[i]);
        if (p->symbols) {
                eval_deinit(&p->eval);
                ad_free(p->ad);
                symbols_free(p->symbols);
        }
        for (size_t i = 0; i < NESTED_MAX; i++)
                catalog_query_free(p->owned[i]);
        set_deinit(&p->listed);
}

/* ---- a chunk */

/* Returns whether a replica with this host and store may match. Conditions on its URL are checked with its
 * row. */
static bool place_holds(const struct plan *p, struct str host, struct str store, const struct str *url)
{
        for (size_t i = 0; i < p->count; i++)
                for (size_t k = 0; k < p->queries[i]->condition_count; k++) {
                        const struct catalog_condition *c = &p->queries[i]->conditions[k];
                        struct catalog_value v = {.type = CATALOG_TEXT};

                        if (c->key == CATALOG_STORE)
                                v.text = store;
                        else if (c->key == CATALOG_HOST)
                                v.text = host;
                        else if (c->key == CATALOG_URL && url)
                                v.text = *url;
                        else
                                continue;
                        if (!catalog_condition_holds(c, &v))
                                return false;
                }
        return true;
}

static bool any_place_holds(const struct plan *p, struct str places)
{
        struct unpack u = unpack_from(places);

        while (u.p < u.end && !u.bad) {
                struct str host = unpack_str(&u), store = unpack_str(&u);

                if (place_holds(p, host, store, NULL))
                        return true;
        }
        return false;
}

/* Clears the flags of files whose value in the column is not marked in `good`. */
static void keep_good(struct search *s, const struct column *c, const bool *good)
{
        for (unsigned i = 0; i < COLUMN_FILES; i++)
                s->flags[i] = s->flags[i] && good[c->codes[i]];
}

/* A chunk is processed in one go, so a query that takes much longer for one than a page may take is
 * refused. Returns 0, or CATALOG_INVALID with the search's err. */
static int check_time(const struct search *s)
{
        int64_t end_ms = s->how->deadline_ms;

        if (!end_ms || !s->plan.costly || clock_boot_ms() < end_ms + LATE_MS)
                return 0;
        return err_set(s->err, CATALOG_INVALID,
                       "the query takes too long: it has too many conditions, or values in them");
}

static int try_condition(struct search *s, const struct catalog_condition *c)
{
        uint32_t key = c->key == CATALOG_SIZE ? KEY_SIZE : db_key(s->q, c->name);
        bool good[COLUMN_FILES + 1] = {false};
        int r = key ? db_column_read(s->q, column_id(s->chunk * COLUMN_FILES, key), &s->scratch, s->err) : 0;

        if (r < 0 || r > 1)
                return r;
        if (r == 0) {
                memset(s->flags, 0, sizeof(s->flags));
                return 0;
        }
        for (size_t i = 1; i <= s->scratch.count; i++) {
                struct catalog_value v;

                if (!column_value_unpack(s->scratch.values[i], &v))
                        return db_corrupt(s->q, "a metadata value is malformed", s->err);
                good[i] = catalog_condition_holds(c, &v);
                r = check_time(s);
                if (r != 0)
                        return r;
        }
        keep_good(s, &s->scratch, good);
        return 0;
}

static int try_places(struct search *s)
{
        bool good[COLUMN_FILES + 1];
        int r = db_column_read(s->q, column_id(s->chunk * COLUMN_FILES, KEY_PLACES), &s->places, s->err);

        if (r == 0)
                memset(s->flags, 0, sizeof(s->flags));
        if (r != 1)
                return r;
        good[0] = false;
        for (size_t i = 1; i <= s->places.count; i++) {
                good[i] = !s->plan.replicas || any_place_holds(&s->plan, s->places.values[i]);
                r = check_time(s);
                if (r != 0)
                        return r;
        }
        keep_good(s, &s->places, good);
        return 0;
}

static int read_used(struct search *s)
{
        struct plan *p = &s->plan;
        uint64_t first = s->chunk * COLUMN_FILES;
        int r = 0;

        map_free(s->remembered);
        s->remembered = NULL;
        for (size_t i = 0; i < p->used_count && r >= 0 && r <= 1; i++) {
                r = p->used[i].key
                            ? db_column_read(s->q, column_id(first, p->used[i].key), &s->used[i], s->err)
                            : 0;
                if (r == 0)
                        memset(s->used[i].codes, 0, sizeof(s->used[i].codes));
        }
        return r == 1 ? 0 : r;
}

/* Sets the flags of the files of this chunk that may match. */
static int begin_chunk(struct search *s)
{
        const struct plan *p = &s->plan;
        uint64_t first = s->chunk * COLUMN_FILES;
        int r;

        s->meta_read = false;
        for (unsigned i = 0; i < COLUMN_FILES; i++)
                s->flags[i] = first + i > s->how->after &&
                              (!p->has_list || set_has(&p->listed, (uint32_t)(first + i)));
        r = try_places(s);
        for (size_t i = 0; r == 0 && i < p->count; i++)
                for (size_t k = 0; r == 0 && k < p->queries[i]->condition_count; k++) {
                        const struct catalog_condition *c = &p->queries[i]->conditions[k];

                        if (c->key == CATALOG_META || c->key == CATALOG_SIZE)
                                r = try_condition(s, c);
                }
        if (r == 0 && p->where_count)
                r = read_used(s);
        if (r == 0 && s->how->count) {
                r = db_column_read(s->q, column_id(first, KEY_SIZE), &s->size, s->err);
                if (r == 0)
                        memset(s->size.codes, 0, sizeof(s->size.codes));
                r = r == 1 ? 0 : r;
        }
        return r;
}

/* ---- a file */

static void set_attribute(struct ad *ad, symbol name, const struct catalog_value *v)
{
        switch (v->type) {
        case CATALOG_INTEGER: ad_set_integer(ad, name, v->integer); break;
        case CATALOG_REAL: ad_set_real(ad, name, v->real); break;
        case CATALOG_BOOLEAN: ad_set_boolean(ad, name, v->boolean); break;
        default: ad_set_string(ad, name, v->text); break;
        }
}

/* Returns 1, 0, or CATALOG_CORRUPT or another error. */
static int evaluate(struct search *s, unsigned slot)
{
        struct plan *p = &s->plan;

        for (size_t i = 0; i < p->used_count; i++) {
                uint16_t code = s->used[i].codes[slot];
                struct catalog_value v;

                if (p->used[i].name) {
                        ad_set_string(p->ad, p->used[i].symbol, s->row->file.name);
                } else if (code == 0) {
                        ad_remove(p->ad, p->used[i].symbol);
                } else {
                        if (!column_value_unpack(s->used[i].values[code], &v))
                                return db_corrupt(s->q, "a metadata value is malformed", s->err);
                        set_attribute(p->ad, p->used[i].symbol, &v);
                }
        }
        for (size_t i = 0; i < p->where_count; i++) {
                struct value v;
                bool holds;

                eval_expr(&p->eval, p->where[i], p->ad, NULL, &v);
                holds = value_is_true(&v);
                eval_reset(&p->eval);
                if (p->eval.limit_hit)
                        return err_set(s->err, CATALOG_INVALID, "where: the expression needs too many %s",
                                       p->eval.limit_hit);
                if (!holds)
                        return 0;
        }
        return 1;
}

static int where_holds(struct search *s, unsigned slot)
{
        uint16_t codes[USED_MAX];
        struct str key = str_make((const char *)codes, s->plan.used_count * sizeof(*codes));
        uintptr_t known;
        int r;

        if (s->plan.names)
                return evaluate(s, slot);
        for (size_t i = 0; i < s->plan.used_count; i++)
                codes[i] = s->used[i].codes[slot];
        if (!s->remembered || map_count(s->remembered) >= REMEMBERED_MAX) {
                map_free(s->remembered);
                s->remembered = map_new();
        }
        known = (uintptr_t)map_get(s->remembered, key);
        if (known)
                return known == 2;
        r = evaluate(s, slot);
        if (r == 0 || r == 1)
                map_put(s->remembered, key, (void *)(uintptr_t)(r + 1));
        return r;
}

/* Returns 1 when the row was read; or an error. */
static int read_row(struct search *s, uint64_t id)
{
        sqlite3_stmt *st = s->q->st[ST_FILE];
        int r;

        sqlite3_bind_int64(st, 1, (sqlite3_int64)id);
        r = db_step(s->q, ST_FILE, s->err);
        if (r == 1)
                r = file_row_unpack(s->q, s->row, db_column(st, 0), db_column(st, 1), s->err);
        else if (r == 0)
                r = db_corrupt(s->q, "a file's record is missing", s->err);
        sqlite3_reset(st);
        return r == 0 ? 1 : r;
}

/* Returns whether the conditions on the name and replicas are met; removes replicas that do not match. */
static bool row_holds(struct search *s)
{
        const struct plan *p = &s->plan;
        struct file_row *row = s->row;
        struct catalog_value name = {.type = CATALOG_TEXT, .text = row->file.name};
        size_t left = 0;

        for (size_t i = 0; i < p->count; i++)
                for (size_t k = 0; k < p->queries[i]->condition_count; k++) {
                        const struct catalog_condition *c = &p->queries[i]->conditions[k];

                        if (c->key == CATALOG_NAME && !catalog_condition_holds(c, &name))
                                return false;
                }
        if (!p->replicas)
                return true;
        for (size_t i = 0; i < row->file.replica_count; i++)
                if (place_holds(p, row->replicas[i].host, row->replicas[i].store, &row->replicas[i].url))
                        row->replicas[left++] = row->replicas[i];
        row->file.replica_count = left;
        return left > 0;
}

static int read_meta(struct search *s)
{
        sqlite3_stmt *st = s->q->st[ST_COLUMNS];
        int r;

        s->meta_count = 0;
        sqlite3_bind_int64(st, 1, column_id(s->chunk * COLUMN_FILES, KEY_FIRST));
        sqlite3_bind_int64(st, 2, column_id((s->chunk + 1) * COLUMN_FILES, 0));
        while ((r = db_step(s->q, ST_COLUMNS, s->err)) == 1) {
                uint32_t key = (uint32_t)(db_number(st, 0) & 0xffff);

                if (s->meta_count == s->meta_cap) {
                        size_t cap = s->meta_cap;

                        MEM_GROW(s->meta, s->meta_cap, s->meta_count + 1);
                        memset(s->meta + cap, 0, (s->meta_cap - cap) * sizeof(*s->meta));
                        s->meta_keys = mem_array(s->meta_keys, s->meta_cap, sizeof(*s->meta_keys));
                }
                if (key - KEY_FIRST >= s->q->key_count ||
                    column_read(&s->meta[s->meta_count], db_column(st, 1)) != 0) {
                        r = db_corrupt(s->q, "a piece of metadata has a wrong checksum", s->err);
                        break;
                }
                s->meta_keys[s->meta_count++] = key;
        }
        sqlite3_reset(st);
        s->meta_read = r == 0;
        return r;
}

static int add_meta(struct search *s, unsigned slot)
{
        struct catalog_file *f = &s->row->file;
        int r = s->meta_read ? 0 : read_meta(s);

        f->meta = s->told_meta;
        for (size_t i = 0; r == 0 && i < s->meta_count && f->meta_count < CATALOG_META_MAX; i++) {
                uint16_t code = s->meta[i].codes[slot];
                struct catalog_meta *m = &s->told_meta[f->meta_count];

                if (code == 0)
                        continue;
                m->key = s->q->names[s->meta_keys[i] - KEY_FIRST];
                if (!column_value_unpack(s->meta[i].values[code], &m->value))
                        return db_corrupt(s->q, "a metadata value is malformed", s->err);
                f->meta_count++;
        }
        return r;
}

static int count_file(struct search *s, unsigned slot)
{
        struct catalog_value v;
        uint16_t code = s->size.codes[slot];

        if (code && column_value_unpack(s->size.values[code], &v) && v.type == CATALOG_INTEGER)
                s->found.bytes += (uint64_t)v.integer;
        s->found.files++;
        return 0;
}

/* Returns or counts a file if it matches. A nonzero result ends the search. */
static int look_at(struct search *s, unsigned slot)
{
        uint64_t id = s->chunk * COLUMN_FILES + slot;
        bool row = s->plan.rows || s->plan.names || !s->how->count;
        int r = 1;

        /* Reading rows costs more than evaluating expressions, unless these use names. */
        if (s->plan.where_count && !s->plan.names)
                r = where_holds(s, slot);
        if (r == 1 && row)
                r = read_row(s, id);
        if (r == 1 && s->plan.where_count && s->plan.names)
                r = where_holds(s, slot);
        if (r != 1 || (row && !row_holds(s)))
                return r == 1 ? 0 : r;
        if (s->how->count)
                return count_file(s, slot);
        if (s->how->meta) {
                r = add_meta(s, slot);
                if (r != 0)
                        return r;
        }
        s->found.files++;
        s->found.bytes += s->row->file.has_size ? s->row->file.size : 0;
        r = s->fn(s->arg, &s->row->file);
        if (r != 0)
                s->found.next = id;
        return r;
}

/* Returns whether the page is full or its time is over. */
static bool is_over(const struct search *s, unsigned looked)
{
        const struct catalog_find *how = s->how;

        if (!how->count && how->page && s->found.files >= how->page)
                return true;
        return how->deadline_ms && (looked % LOOK_EVERY == 0 || s->plan.costly) &&
               clock_boot_ms() >= how->deadline_ms;
}

static bool has_reached_limit(const struct search *s)
{
        return s->plan.limit && s->how->given + s->found.files >= s->plan.limit;
}

static int search_chunk(struct search *s, unsigned *looked)
{
        for (unsigned slot = 0; slot < COLUMN_FILES; slot++) {
                int r;

                if (!s->flags[slot])
                        continue;
                if (*looked && is_over(s, *looked)) {
                        s->found.next = s->chunk * COLUMN_FILES + slot - 1;
                        return 0;
                }
                ++*looked;
                r = look_at(s, slot);
                if (r != 0 || has_reached_limit(s))
                        return r;
        }
        return 0;
}

static int search_all(struct search *s)
{
        uint64_t chunks = (s->q->next + COLUMN_FILES - 1) / COLUMN_FILES;
        unsigned looked = 0;
        int r = 0;

        for (s->chunk = (s->how->after + 1) / COLUMN_FILES; r == 0 && s->chunk < chunks; s->chunk++) {
                r = begin_chunk(s);
                if (r == 0)
                        r = search_chunk(s, &looked);
                if (r != 0 || s->found.next || has_reached_limit(s))
                        return r;
                if (s->chunk + 1 < chunks && s->how->deadline_ms && clock_boot_ms() >= s->how->deadline_ms) {
                        s->found.next = (s->chunk + 1) * COLUMN_FILES - 1;
                        return 0;
                }
        }
        return r;
}

static void search_deinit(struct search *s)
{
        plan_deinit(&s->plan);
        column_deinit(&s->places);
        column_deinit(&s->size);
        column_deinit(&s->scratch);
        for (size_t i = 0; i < USED_MAX; i++)
                column_deinit(&s->used[i]);
        for (size_t i = 0; i < s->meta_cap; i++)
                column_deinit(&s->meta[i]);
        free(s->meta);
        free(s->meta_keys);
        map_free(s->remembered);
        arena_deinit(&s->row->texts);
        free(s->row);
        free(s);
}

int db_find(struct catalog *c, const struct catalog_query *q, const struct catalog_find *how,
            catalog_file_fn *fn, void *arg, struct catalog_found *ret, struct err *err)
{
        struct search *s = mem_new(struct search);
        int r;

        s->q = (struct db *)c;
        s->how = how;
        s->fn = fn;
        s->arg = arg;
        s->err = err;
        s->row = mem_new(struct file_row);
        /* One transaction for all rows: without it SQLite locks and unlocks the file for each. */
        r = db_run(s->q, ST_BEGIN_READ, err);
        if (r == 0)
                r = plan_make(s->q, &s->plan, q, err);
        if (r == 0 && !has_reached_limit(s))
                r = search_all(s);
        if (!sqlite3_get_autocommit(s->q->db))
                db_run(s->q, ST_ROLLBACK, NULL); /* nothing was written */
        *ret = s->found;
        search_deinit(s);
        return r;
}

int db_get(struct catalog *c, struct str name, catalog_file_fn *fn, void *arg, struct err *err)
{
        struct db *q = (struct db *)c;
        struct search *s = mem_new(struct search);
        sqlite3_stmt *st = q->st[ST_FILE_BY_NAME];
        uint64_t id = 0;
        int r;

        s->q = q;
        s->err = err;
        s->row = mem_new(struct file_row);
        db_bind(st, 1, name);
        r = db_step(q, ST_FILE_BY_NAME, err);
        if (r == 1) {
                id = db_number(st, 0);
                r = file_row_unpack(q, s->row, name, db_column(st, 1), err);
        } else if (r == 0) {
                r = err_set(err, CATALOG_NOT_FOUND, "the catalog has no file " STR_FMT,
                            STR_ARG(str_head(name, 300)));
        }
        sqlite3_reset(st);
        s->chunk = id / COLUMN_FILES;
        if (r == 0)
                r = add_meta(s, file_slot(id));
        if (r == 0)
                r = fn(arg, &s->row->file);
        search_deinit(s);
        return r;
}

int db_datasets(struct catalog *c, struct str after, catalog_dataset_fn *fn, void *arg, struct err *err)
{
        struct db *q = (struct db *)c;
        sqlite3_stmt *st = q->st[ST_DATASETS];
        int r;

        db_bind(st, 1, after);
        while ((r = db_step(q, ST_DATASETS, err)) == 1) {
                struct catalog_dataset d = {.name = db_column(st, 0),
                                            .owner = db_column(st, 1),
                                            .query = db_column(st, 2),
                                            .file_count = (size_t)db_number(st, 3)};

                r = fn(arg, &d);
                if (r != 0)
                        break;
        }
        sqlite3_reset(st);
        return r;
}
