#include "server/config/stores.h"

#include <errno.h>

#define WORDS_MAX 10000u

enum word_kind { WORD_PREFIX, WORD_LABEL, WORD_AGENT };
struct words {
        struct config_stores *stores;
        struct str *v;
        size_t n, cap;
        enum word_kind kind;
};

static int stores_add_word(void *arg, struct str word, struct err *err)
{
        BUF_CLEANUP struct buf b = {0};
        struct words *w = arg;

        if (w->n == WORDS_MAX)
                return err_set(err, -E2BIG, "more than %u values", WORDS_MAX);
        if (word.n == 0)
                return err_set(err, -EINVAL, "an empty word");
        if (w->kind == WORD_PREFIX && !file_prefix(word, &b))
                return err_set(err, -EINVAL, "'" STR_FMT "' is neither a URL nor an absolute path",
                               STR_ARG(word));
        if (w->kind == WORD_LABEL && str_find(word, ',') >= 0)
                return err_set(err, -EINVAL, "'" STR_FMT "': a label's name has no comma", STR_ARG(word));
        if (w->kind == WORD_AGENT && str_find(str_head(word, word.n - 1), '*') >= 0)
                return err_set(err, -EINVAL, "'" STR_FMT "': a * stands at the end of a name", STR_ARG(word));
        MEM_GROW(w->v, w->cap, w->n + 1);
        w->v[w->n++] = arena_str(&w->stores->arena, w->kind == WORD_PREFIX ? buf_view(&b) : word);
        return 0;
}

static int stores_read_words(struct config_stores *s, const struct doc *d, enum word_kind kind,
                             const struct str **ret, size_t *ret_count, struct err *err)
{
        struct words w = {.stores = s, .kind = kind};
        int r = d ? doc_words(d, stores_add_word, &w, err) : 0;

        if (r == 0 && w.n) {
                *ret = (const struct str *)(void *)arena_dup(&s->arena, w.v, w.n * sizeof(*w.v));
                *ret_count = w.n;
        }
        free(w.v);
        return r;
}

static int bad(const struct doc *d, struct err *err, const char *what)
{
        err_set(err, -EINVAL, STR_FMT ": %s", STR_ARG(d->key), what);
        return doc_where(err, -EINVAL, d);
}

/* Checks that no two stores have the same URL prefix, because the prefix identifies the store of a file. */
static int check_prefixes(const struct config_stores *s, const struct core_store *x, const struct doc *d,
                          struct err *err)
{
        for (size_t i = 0; i < s->store_count; i++) {
                const struct store_urls *other = &s->stores[i].urls;

                for (size_t k = 0; k < other->prefix_count; k++)
                        for (size_t n = 0; n < x->urls.prefix_count; n++)
                                if (str_eq(other->prefixes[k], x->urls.prefixes[n])) {
                                        err_set(err, -EINVAL,
                                                STR_FMT ": '" STR_FMT "' is store " STR_FMT "'s already",
                                                STR_ARG(d->key), STR_ARG(other->prefixes[k]),
                                                STR_ARG(other->name));
                                        return doc_where(err, -EINVAL, d);
                                }
        }
        return 0;
}

static int read_probe(struct config_stores *s, const struct core_store *x, const struct doc *d,
                      struct err *err)
{
        BUF_CLEANUP struct buf name = {0};
        struct str probe = STR_NONE;
        size_t store = FILE_STORE_NONE;
        int r = d ? doc_text(d, &probe, err) : 0;

        if (r == 0 && d && (!file_url(probe, &x->urls, 1, &name, &store) || store != 0))
                r = bad(d, err, "must be the URL of a file of this store");
        if (r == 0)
                s->probes[s->store_count] = arena_str(&s->arena, probe);
        return r;
}

/* Refuses 0, which would be read as no limit. */
static int check_count(const struct doc *d, uint64_t n, uint64_t max, struct err *err)
{
        if (d && n == 0)
                return bad(d, err, "must be 1 or more; without it there is no limit");
        return n > max ? bad(d, err, "is too large") : 0;
}

static int stores_need_map(const struct doc *d, size_t max, struct err *err)
{
        if (d->kind != DOC_MAP && !(d->kind == DOC_WORD && d->empty))
                return bad(d, err, "must be a map of names");
        if (d->count > max)
                return bad(d, err, "too many of them");
        return 0;
}

/* Reads a limit on simultaneous jobs; a missing key leaves the value unchanged. */
static int read_concurrency(const struct doc *d, uint32_t *ret, struct err *err)
{
        uint64_t n = 0;
        int r = d ? doc_count(d, &n, err) : 0;

        if (r == 0)
                r = check_count(d, n, INT32_MAX, err);
        *ret = (uint32_t)n;
        return r;
}

static int stores_read_from(struct config_stores *s, const struct doc *d, struct core_store *x,
                            struct err *err)
{
        struct core_store_from *v;
        int r = d ? stores_need_map(d, CORE_STORES_MAX, err) : 0;

        if (r != 0 || !d)
                return r;
        x->from = v = arena_alloc(&s->arena, (d->count + 1) * sizeof(*v));
        for (const struct doc *one = d->first; one && r == 0; one = one->next) {
                v[x->from_count].name = arena_str(&s->arena, one->key);
                r = read_concurrency(one, &v[x->from_count++].concurrency, err);
        }
        return r;
}

static int stores_read_store(struct config_stores *s, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"urls",  "labels",         "concurrency",      "capacity",
                                           "probe", "concurrency_in", "concurrency_from", "file_size",
                                           NULL};
        const struct doc *capacity = doc_get(d, "capacity"), *file = doc_get(d, "file_size");
        struct core_store x = {.urls.name = arena_str(&s->arena, d->key)};
        int r = doc_only(d, keys, err);

        if (r == 0)
                r = stores_read_words(s, doc_get(d, "urls"), WORD_PREFIX, &x.urls.prefixes,
                                      &x.urls.prefix_count, err);
        if (r == 0)
                r = stores_read_words(s, doc_get(d, "labels"), WORD_LABEL, &x.labels, &x.label_count, err);
        if (r == 0 && x.urls.prefix_count == 0)
                r = bad(d, err, "a store has 'urls', what its files' URLs begin with");
        if (r == 0)
                r = check_prefixes(s, &x, d, err);
        if (r == 0)
                r = read_concurrency(doc_get(d, "concurrency"), &x.concurrency, err);
        if (r == 0)
                r = read_concurrency(doc_get(d, "concurrency_in"), &x.concurrency_in, err);
        if (r == 0)
                r = stores_read_from(s, doc_get(d, "concurrency_from"), &x, err);
        if (r == 0 && capacity)
                r = doc_size(capacity, &x.capacity_bytes, err);
        if (r == 0)
                r = check_count(capacity, x.capacity_bytes, INT64_MAX / 4, err);
        if (r == 0 && file)
                r = doc_size(file, &x.file_bytes, err);
        if (r == 0)
                r = check_count(file, x.file_bytes, INT64_MAX / 4, err);
        if (r == 0 && file && !capacity)
                r = bad(file, err,
                        "goes with capacity: it is what a job claims that does not say what it writes");
        if (r == 0)
                r = read_probe(s, &x, doc_get(d, "probe"), err);
        if (r == 0)
                s->stores[s->store_count++] = x;
        return r;
}

static int read_label(struct config_stores *s, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"agents", "datasets", "spool", NULL};
        struct core_label x = {.name = arena_str(&s->arena, d->key)};
        const struct doc *spool = doc_get(d, "spool");
        bool spooled = true;
        int r = doc_only(d, keys, err);

        if (str_find(d->key, ',') >= 0)
                return bad(d, err, "a label's name has no comma");
        if (r == 0)
                r = stores_read_words(s, doc_get(d, "agents"), WORD_AGENT, &x.agents, &x.agent_count, err);
        if (r == 0)
                r = stores_read_words(s, doc_get(d, "datasets"), WORD_PREFIX, &x.datasets, &x.dataset_count,
                                      err);
        if (r == 0 && spool)
                r = doc_bool(spool, &spooled, err);
        x.not_spooled = !spooled;
        if (r == 0)
                s->labels[s->label_count++] = x;
        return r;
}

int config_stores_read(void *at, const struct doc *d, struct err *err)
{
        struct config_stores *s = at;
        int r = stores_need_map(d, CORE_STORES_MAX, err);

        if (r == 0)
                s->stores = arena_alloc(&s->arena, (d->count + 1) * sizeof(*s->stores));
        if (r == 0)
                s->probes = arena_alloc(&s->arena, (d->count + 1) * sizeof(*s->probes));
        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = stores_read_store(s, x, err);
        return r;
}

int config_clearance_read(void *at, const struct doc *d, struct err *err)
{
        struct config_stores *s = at;
        int r = stores_need_map(d, CORE_LABELS_MAX, err);

        if (r == 0)
                s->labels = arena_alloc(&s->arena, (d->count + 1) * sizeof(*s->labels));
        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = read_label(s, x, err);
        return r;
}

void config_stores_deinit(struct config_stores *s)
{
        arena_deinit(&s->arena);
        *s = (struct config_stores){0};
}

void config_stores_unclear(const struct config_stores *s,
                           void (*fn)(void *arg, struct str label, struct str store), void *arg)
{
        for (size_t i = 0; i < s->store_count; i++)
                for (size_t k = 0; k < s->stores[i].label_count; k++) {
                        struct str label = s->stores[i].labels[k];
                        bool cleared = false;

                        for (size_t n = 0; n < s->label_count; n++)
                                cleared |= str_eq(s->labels[n].name, label) && s->labels[n].agent_count > 0;
                        if (!cleared)
                                fn(arg, label, s->stores[i].urls.name);
                }
}

struct core_data config_stores_data(const struct config_stores *s)
{
        return (struct core_data){s->stores, s->store_count, s->labels, s->label_count};
}
