/* Draws with the same text are one object, found by the text, so that a million jobs with one limit cost a
 * pointer each. The number of a pool is looked up when the pool is created or the settings change, not at
 * each use.
 */
#include "core/accounts/limit.h"

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"

struct limits {
        struct map *pools, *draws;
        struct map *numbers; /* from "sw", "large.*" or "default" to a struct number */
};
struct number {
        int64_t max;
};

struct limits *limits_new(void)
{
        struct limits *l = mem_new(struct limits);

        l->pools = map_new_nocase();
        l->draws = map_new();
        l->numbers = map_new_nocase();
        return l;
}

void limits_free(struct limits *l)
{
        void *value;

        if (!l)
                return;
        assert(map_count(l->draws) == 0);
        for (size_t at = 0; map_next(l->pools, &at, NULL, &value);) {
                struct limit *x = value;

                free(x->name);
                free(x);
        }
        for (size_t at = 0; map_next(l->numbers, &at, NULL, &value);)
                free(value);
        map_free(l->pools);
        map_free(l->draws);
        map_free(l->numbers);
        free(l);
}

static const struct number *number_of(const struct limits *l, struct str name)
{
        struct buf BUF_CLEANUP family = {0};
        const struct number *n = map_get(l->numbers, name);
        ptrdiff_t slash = str_find(name, '/'), end = slash < 0 ? str_find(name, '.') : slash;

        if (!n && end > 0) {
                buf_str(&family, str_head(name, (size_t)end + 1));
                buf_char(&family, '*');
                n = map_get(l->numbers, buf_view(&family));
        }
        if (!n && slash < 0)
                n = map_get(l->numbers, STR("default"));
        return n;
}

static void number_pool(const struct limits *l, struct limit *x)
{
        const struct number *n = number_of(l, str_of(x->name));

        x->max = n ? n->max : LIMIT_NONE;
        x->named = map_get(l->numbers, str_of(x->name)) != NULL;
}

void limits_set(struct limits *l, struct str name, int64_t max)
{
        struct number *n = map_get(l->numbers, name);
        void *value;

        if (!n) {
                n = mem_new(struct number);
                map_put(l->numbers, name, n);
        }
        n->max = max;
        if (!str_ends(name, STR("*")) && !str_ieqz(name, "default"))
                limits_get(l, name);
        for (size_t at = 0; map_next(l->pools, &at, NULL, &value);)
                number_pool(l, value);
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

static struct limit *find_or_make(struct limits *l, struct str name)
{
        struct limit *x = map_get(l->pools, name);

        if (x)
                return x;
        x = mem_new(struct limit);
        x->name = str_dupz(name);
        for (char *p = x->name; *p; p++)
                *p = lower(*p);
        number_pool(l, x);
        map_put(l->pools, name, x);
        return x;
}

struct limit *limits_get(struct limits *l, struct str name)
{
        struct limit *x = find_or_make(l, name);

        x->kept = true;
        return x;
}

struct limit *limits_find(const struct limits *l, struct str name)
{
        return map_get(l->pools, name);
}

/* Forgets pools that no job and no setting names, so that users cannot fill the memory by naming new
 * pools. */
static void drop_maybe(struct limits *l, struct limit *x)
{
        if (x->refs || x->kept)
                return;
        assert(x->used == 0 && !x->line);
        map_take(l->pools, str_of(x->name));
        free(x->name);
        free(x);
}

void limits_set_one(struct limits *l, struct limit *x, int64_t max)
{
        struct number *n = map_get(l->numbers, str_of(x->name));

        if (!n) {
                n = mem_new(struct number);
                map_put(l->numbers, str_of(x->name), n);
        }
        n->max = x->max = max;
        x->named = true;
}

void limits_unset(struct limits *l, struct limit *x)
{
        assert(x->used == 0);
        free(map_take(l->numbers, str_of(x->name)));
        x->kept = false;
        number_pool(l, x);
        drop_maybe(l, x);
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(struct limit *const *)a)->name, (*(struct limit *const *)b)->name);
}

void limits_each(struct limits *l, void (*fn)(void *arg, struct limit *x), void *arg)
{
        struct limit **all = mem_array(NULL, map_count(l->pools) + 1, sizeof(*all));
        size_t n = 0;
        void *value;

        for (size_t at = 0; map_next(l->pools, &at, NULL, &value);) {
                struct limit *x = value;

                if (x->named || x->used || (x->line && x->max != LIMIT_NONE))
                        all[n++] = x;
        }
        if (n)
                qsort(all, n, sizeof(*all), by_name);
        for (size_t i = 0; i < n; i++)
                fn(arg, all[i]);
        free(all);
}

bool limits_bind(const struct limits *l)
{
        void *value;

        for (size_t at = 0; map_next(l->pools, &at, NULL, &value);)
                if (((struct limit *)value)->used && ((struct limit *)value)->max != LIMIT_NONE)
                        return true;
        return false;
}

/* ---- draws of a job */

static bool name_ok(struct str s, bool own)
{
        if (s.n == 0 || s.n > LIMIT_NAME_MAX)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                char c = lower(s.p[i]);

                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                      (own && (c == '/' || c == '@' || c == '-'))))
                        return false;
        }
        return s.p[0] != '.' && s.p[s.n - 1] != '.';
}

struct named_draw {
        struct str name;
        int64_t units;
};

/* Reads "sw:2" or "db". */
static int parse_one(struct str word, bool own, struct named_draw *ret, struct err *err)
{
        ptrdiff_t colon = str_rfind(word, ':');

        *ret = (struct named_draw){word, 1};
        if (colon >= 0) {
                struct str number = str_trim(str_skip(word, (size_t)colon + 1));

                ret->name = str_trim(str_head(word, (size_t)colon));
                if (str_to_i64(number, &ret->units) != 0 || ret->units < 1 || ret->units > INT32_MAX)
                        return err_set(err, -EINVAL,
                                       "'" STR_FMT "': the number of units after the colon must be a whole "
                                       "number from 1 on",
                                       STR_ARG(word));
        }
        if (!name_ok(ret->name, own))
                return err_set(err, -EINVAL,
                               "'" STR_FMT "' is not the name of a limit: letters, digits, _ and dots within",
                               STR_ARG(ret->name));
        return 0;
}

static int by_draw_name(const void *a, const void *b)
{
        return str_icmp(((const struct named_draw *)a)->name, ((const struct named_draw *)b)->name);
}

static struct draws *draws_new(struct limits *l, const struct named_draw *v, size_t count, struct str key)
{
        struct draws *d = mem_zalloc(sizeof(*d) + count * sizeof(d->v[0]));

        d->count = count;
        d->text = str_dupz(key);
        for (size_t i = 0; i < count; i++) {
                d->v[i] = (struct draw){find_or_make(l, v[i].name), v[i].units};
                d->v[i].limit->refs++;
        }
        map_put(l->draws, key, d);
        return d;
}

int limits_parse(struct limits *l, struct str text, bool own, struct draws **ret, struct err *err)
{
        struct buf BUF_CLEANUP key = {0};
        struct named_draw v[LIMIT_DRAWS_MAX];
        struct draws *d;
        struct str word;
        size_t n = 0, kept = 0;

        while (str_cut(&text, ',', &word)) {
                int r;

                word = str_trim(word);
                if (word.n == 0)
                        continue;
                if (n == LIMIT_DRAWS_MAX)
                        return err_set(err, -E2BIG, "a job may name at most %u limits", LIMIT_DRAWS_MAX);
                r = parse_one(word, own, &v[n], err);
                if (r)
                        return r;
                n++;
        }
        *ret = NULL;
        if (n == 0)
                return 0;
        qsort(v, n, sizeof(v[0]), by_draw_name);
        for (size_t i = 0; i < n; i++)
                if (kept && str_ieq(v[kept - 1].name, v[i].name))
                        v[kept - 1].units += v[i].units;
                else
                        v[kept++] = v[i];
        for (size_t i = 0; i < kept; i++) {
                for (size_t c = 0; c < v[i].name.n; c++)
                        buf_char(&key, lower(v[i].name.p[c]));
                buf_printf(&key, ":%lld%s", (long long)v[i].units, i + 1 < kept ? "," : "");
        }
        d = map_get(l->draws, buf_view(&key));
        *ret = draws_ref(d ? d : draws_new(l, v, kept, buf_view(&key)));
        return 0;
}

struct draws *draws_ref(struct draws *d)
{
        if (d)
                d->refs++;
        return d;
}

void draws_unref(struct limits *l, struct draws *d)
{
        if (!d || --d->refs)
                return;
        map_take(l->draws, str_of(d->text));
        for (size_t i = 0; i < d->count; i++) {
                d->v[i].limit->refs--;
                drop_maybe(l, d->v[i].limit);
        }
        free(d->text);
        free(d);
}

static uint32_t room_for(const struct limit *x, int64_t units)
{
        int64_t room = x->max == LIMIT_NONE ? UINT32_MAX : (x->max - x->used) / units;

        return room < 0 ? 0 : room > UINT32_MAX ? UINT32_MAX : (uint32_t)room;
}

uint32_t limit_room(const struct limit *x)
{
        return room_for(x, 1);
}

uint32_t draws_room(const struct draws *d, struct limit **ret_short)
{
        uint32_t room = UINT32_MAX;

        if (ret_short)
                *ret_short = NULL;
        for (size_t i = 0; d && i < d->count; i++) {
                uint32_t here = room_for(d->v[i].limit, d->v[i].units);

                if (here < room) {
                        room = here;
                        if (ret_short)
                                *ret_short = d->v[i].limit;
                }
        }
        return room;
}

void draws_take(const struct draws *d)
{
        for (size_t i = 0; d && i < d->count; i++)
                d->v[i].limit->used += d->v[i].units;
}

void draws_give_back(const struct draws *d, void (*woken)(void *arg, struct limit_waiter *w), void *arg)
{
        for (size_t i = 0; d && i < d->count; i++)
                limit_give_back(d->v[i].limit, d->v[i].units, woken, arg);
}

void limit_give_back(struct limit *x, int64_t units, void (*woken)(void *arg, struct limit_waiter *w),
                     void *arg)
{
        assert(x->used >= units);
        x->used -= units;
        while (x->line) {
                struct limit_waiter *w = x->line;

                limit_leave(w);
                woken(arg, w);
        }
}

void limit_wait(struct limit *x, struct limit_waiter *w)
{
        if (w->limit == x)
                return;
        limit_leave(w);
        w->limit = x;
        w->prev = NULL;
        w->next = x->line;
        if (w->next)
                w->next->prev = w;
        x->line = w;
}

void limit_leave(struct limit_waiter *w)
{
        if (!w->limit)
                return;
        if (w->next)
                w->next->prev = w->prev;
        if (w->prev)
                w->prev->next = w->next;
        else
                w->limit->line = w->next;
        *w = (struct limit_waiter){0};
}
