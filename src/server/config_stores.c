#include "server/config_stores.h"

#include <errno.h>

#define WORDS_MAX 10000u

struct words {
        struct config_stores *stores;
        struct str *v;
        size_t n, cap;
        bool prefixes;
};

static int add_word(void *arg, struct str word, struct err *err)
{
        BUF_CLEANUP struct buf b = {0};
        struct words *w = arg;

        if (w->n == WORDS_MAX)
                return err_set(err, -E2BIG, "more than %u values", WORDS_MAX);
        if (word.n == 0)
                return err_set(err, -EINVAL, "an empty word");
        if (w->prefixes && !file_prefix(word, &b))
                return err_set(err, -EINVAL, "'" STR_FMT "' is neither a URL nor an absolute path",
                               STR_ARG(word));
        MEM_GROW(w->v, w->cap, w->n + 1);
        w->v[w->n++] = arena_str(&w->stores->arena, w->prefixes ? buf_view(&b) : word);
        return 0;
}

static int read_words(struct config_stores *s, const struct doc *d, bool prefixes, const struct str **ret,
                      size_t *ret_count, struct err *err)
{
        struct words w = {.stores = s, .prefixes = prefixes};
        int r = d ? doc_words(d, add_word, &w, err) : 0;

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

static int read_store(struct config_stores *s, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"urls", "labels", "concurrency", "capacity", "probe", NULL};
        const struct doc *concurrency = doc_get(d, "concurrency"), *capacity = doc_get(d, "capacity");
        struct core_store x = {.urls.name = arena_str(&s->arena, d->key)};
        struct str probe = STR_NONE;
        uint64_t n = 0;
        int r = doc_only(d, keys, err);

        if (r == 0)
                r = read_words(s, doc_get(d, "urls"), true, &x.urls.prefixes, &x.urls.prefix_count, err);
        if (r == 0)
                r = read_words(s, doc_get(d, "labels"), false, &x.labels, &x.label_count, err);
        if (r == 0 && concurrency)
                r = doc_count(concurrency, &n, err);
        if (r == 0 && capacity)
                r = doc_size(capacity, &x.capacity_bytes, err);
        if (r == 0 && doc_get(d, "probe"))
                r = doc_text(doc_get(d, "probe"), &probe, err);
        if (r != 0)
                return r;
        if (x.urls.prefix_count == 0)
                return bad(d, err, "a store has 'urls', what its files' URLs begin with");
        if (n > UINT32_MAX)
                return bad(d, err, "concurrency is too large");
        x.concurrency = (uint32_t)n;
        s->probes[s->store_count] = arena_str(&s->arena, probe);
        s->stores[s->store_count++] = x;
        return 0;
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
                r = read_words(s, doc_get(d, "agents"), false, &x.agents, &x.agent_count, err);
        if (r == 0)
                r = read_words(s, doc_get(d, "datasets"), true, &x.datasets, &x.dataset_count, err);
        if (r == 0 && spool)
                r = doc_bool(spool, &spooled, err);
        x.not_spooled = !spooled;
        if (r == 0)
                s->labels[s->label_count++] = x;
        return r;
}

static int need_map(const struct doc *d, size_t max, struct err *err)
{
        if (d->kind != DOC_MAP && !(d->kind == DOC_WORD && d->empty))
                return bad(d, err, "must be a map of names");
        if (d->count > max)
                return bad(d, err, "too many of them");
        return 0;
}

int config_stores_read(void *at, const struct doc *d, struct err *err)
{
        struct config_stores *s = at;
        int r = need_map(d, CORE_STORES_MAX, err);

        if (r == 0)
                s->stores = arena_alloc(&s->arena, (d->count + 1) * sizeof(*s->stores));
        if (r == 0)
                s->probes = arena_alloc(&s->arena, (d->count + 1) * sizeof(*s->probes));
        for (const struct doc *x = d->first; x && r == 0; x = x->next)
                r = read_store(s, x, err);
        return r;
}

int config_clearance_read(void *at, const struct doc *d, struct err *err)
{
        struct config_stores *s = at;
        int r = need_map(d, CORE_LABELS_MAX, err);

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

struct core_data config_stores_data(const struct config_stores *s)
{
        return (struct core_data){s->stores, s->store_count, s->labels, s->label_count};
}
