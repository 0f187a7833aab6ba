/* GET /v1/usage/keywords: which keywords requests have had, summed by keyword, user and month. Users see
 * their own counts; operators and admins see all. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "server/api/routes.h"
#include "server/history/keywords.h"

#define TIME_MAX 4000000000000ll

enum { BY_KEYWORD, BY_USER, BY_MONTH, BYS };
static const char *const by_names[BYS] = {"keyword", "user", "month"};

struct sum {
        char *key; /* the values of the columns, with \x1f between them */
        uint64_t requests, jobs;
};
struct summing {
        struct call *call;
        struct str owner;
        bool by[BYS];
        struct map *by_key;
        struct sum *sums;
        size_t count, cap;
};

static void on_count(void *arg, const struct keyword_count *k)
{
        const struct str values[BYS] = {k->keyword, k->owner, k->month};
        BUF_CLEANUP struct buf key = {0};
        struct summing *x = arg;
        size_t at;

        if ((k->keyword.n > 0) != x->by[BY_KEYWORD]) /* without keywords each request counts once */
                return;
        if (!call_may(x->call, k->owner) || (x->owner.n && !call_owner_is(k->owner, x->owner)))
                return;
        for (int i = 0; i < BYS; i++)
                if (x->by[i])
                        buf_printf(&key, "%s" STR_FMT, key.n ? "\x1f" : "", STR_ARG(values[i]));
        at = (size_t)(uintptr_t)map_get(x->by_key, buf_view(&key));
        if (!at) {
                MEM_GROW(x->sums, x->cap, x->count + 1);
                x->sums[x->count++] = (struct sum){.key = str_dupz(buf_view(&key))};
                at = x->count;
                map_put(x->by_key, buf_view(&key), (void *)(uintptr_t)at);
        }
        x->sums[at - 1].requests += k->requests;
        x->sums[at - 1].jobs += k->jobs;
}

static int by_requests(const void *a, const void *b)
{
        const struct sum *x = a, *y = b;

        if (x->requests != y->requests)
                return x->requests > y->requests ? -1 : 1;
        return strcmp(x->key, y->key);
}

static void keywords_write_sums(struct call *c, const struct summing *x)
{
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_key(&j, "groups");
        json_open(&j, '[');
        for (size_t i = 0; i < x->count; i++) {
                struct str rest = str_of(x->sums[i].key), value;

                json_open(&j, '{');
                for (int k = 0; k < BYS; k++)
                        if (x->by[k] && str_cut(&rest, '\x1f', &value))
                                json_kstr(&j, by_names[k], value);
                json_kint(&j, "requests", (int64_t)x->sums[i].requests);
                json_kint(&j, "jobs", (int64_t)x->sums[i].jobs);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
}

/* Core. */
static void sum_keywords(struct server *s, struct call *c)
{
        struct summing x = {.call = c, .owner = call_query(c, "owner"), .by_key = map_new()};
        struct str by = call_query(c, "by"), rest = by.n ? by : STR("keyword"), one;
        uint64_t from_ms = 0, to_ms = TIME_MAX;

        while (rest.n && str_cut(&rest, ',', &one))
                for (int i = 0; i < BYS; i++)
                        x.by[i] |= str_eqz(one, by_names[i]);
        if (call_number(c, "from_ms", TIME_MAX, &from_ms) && call_number(c, "to_ms", TIME_MAX, &to_ms)) {
                keywords_each(s->keywords, (int64_t)from_ms, (int64_t)to_ms, on_count, &x);
                if (x.count > 1)
                        qsort(x.sums, x.count, sizeof(*x.sums), by_requests);
                keywords_write_sums(c, &x);
                call_reply(c);
        }
        for (size_t i = 0; i < x.count; i++)
                free(x.sums[i].key);
        free(x.sums);
        map_free(x.by_key);
}

void api_usage_keywords(struct server *s, struct call *c)
{
        struct str rest = call_query(c, "by"), one;

        (void)s;
        while (rest.n && str_cut(&rest, ',', &one))
                if (!str_eqz(one, "keyword") && !str_eqz(one, "user") && !str_eqz(one, "month")) {
                        call_fail(c, 400, "bad_request", "by must be some of keyword, user and month");
                        return;
                }
        call_core(c, sum_keywords);
}
