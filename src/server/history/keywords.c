#include "server/history/keywords.h"

#include <errno.h>
#include <time.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"
#include "core/model/submission.h"
#include "jdl/condor/keywords.h"
#include "jdl/sums/sums.h"
#include "server/config/presets.h"

#define MONTH_BYTES 7 /* "2026-11" */
#define VERSION     1u
#define PARTS_MAX   100u /* that are looked at: others of a graph have the same keywords */
#define WORDS_MAX   200u /* of one attribute */

struct count {
        char *key; /* month, owner and keyword, with \x1f between them */
        uint64_t requests, jobs;
};
struct keywords {
        struct map *by_key;
        struct map *names; /* keyword by attribute */
        uint64_t changes;
};

struct keywords *keywords_new(void)
{
        struct keywords *k = mem_new(struct keywords);

        k->by_key = map_new();
        k->names = map_new_nocase();
        k->changes = 0;
        for (size_t i = 0; i < keyword_count; i++)
                if (keywords[i].attribute && keywords[i].effect == KEYWORD_ACTS &&
                    !map_get(k->names, str_of(keywords[i].attribute)))
                        map_put(k->names, str_of(keywords[i].attribute), (void *)(uintptr_t)(i + 1));
        return k;
}

static void drop(struct keywords *k, struct count *c)
{
        map_take(k->by_key, str_of(c->key));
        free(c->key);
        free(c);
}

void keywords_free(struct keywords *k)
{
        struct str key;
        void *c;

        if (!k)
                return;
        for (size_t at = 0; map_next(k->by_key, &at, &key, &c);) {
                free(((struct count *)c)->key);
                free(c);
        }
        map_free(k->by_key);
        map_free(k->names);
        free(k);
}

static void drop_oldest_month(struct keywords *k)
{
        char oldest[MONTH_BYTES + 1] = "9999-99";
        struct count **found = mem_array(NULL, map_count(k->by_key) + 1, sizeof(struct count *));
        size_t n = 0;
        struct str key;
        void *c;

        for (size_t at = 0; map_next(k->by_key, &at, &key, &c);) {
                int r = strncmp(((struct count *)c)->key, oldest, MONTH_BYTES);

                if (r < 0)
                        n = 0;
                if (r < 0)
                        memcpy(oldest, ((struct count *)c)->key, MONTH_BYTES);
                if (r <= 0)
                        found[n++] = c;
        }
        for (size_t i = 0; i < n; i++)
                drop(k, found[i]);
        free(found);
}

static struct count *count_of(struct keywords *k, struct str key)
{
        struct count *c = map_get(k->by_key, key);

        if (c)
                return c;
        if (map_count(k->by_key) >= KEYWORDS_COUNTS_MAX)
                drop_oldest_month(k);
        c = mem_new(struct count);
        *c = (struct count){.key = str_dupz(key)};
        map_put(k->by_key, key, c);
        return c;
}

static void month_print(struct buf *out, int64_t at_ms)
{
        time_t s = (time_t)(at_ms / 1000);
        struct tm tm = {.tm_year = 70};

        gmtime_r(&s, &tm);
        buf_printf(out, "%04d-%02d", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1);
}

/* name empty and a NULL: the request itself. */
static void count(struct keywords *k, const struct submission *s, struct str name,
                  const struct submission_attribute *a, uint64_t jobs)
{
        BUF_CLEANUP struct buf key = {.max = 1024};
        struct count *c;

        month_print(&key, s->at_ms);
        buf_printf(&key, "\x1f" STR_FMT "\x1f" STR_FMT, STR_ARG(s->owner), STR_ARG(name));
        if (a && preset_is_attribute(a->name) && a->text.n > 2 && a->text.n <= 66)
                buf_printf(&key, "=" STR_FMT, (int)(a->text.n - 2), a->text.p + 1);
        if (buf_check(&key) != 0 || memchr(key.p, 0, key.n))
                return;
        c = count_of(k, buf_view(&key));
        c->requests++;
        c->jobs += jobs;
        k->changes++;
}

struct adding {
        struct keywords *k;
        const struct config_presets *presets;
        const struct submission *s;
        struct map *seen; /* a keyword of several parts counts once */
        uint64_t jobs;
        bool counted; /* some keyword was */
};

static void add(struct adding *x, struct str name, const struct submission_attribute *a)
{
        char z[80];

        if (name.n >= sizeof(z) || map_put(x->seen, name, x))
                return;
        memcpy(z, name.p, name.n);
        z[name.n] = 0;
        if (!presets_record(x->presets, x->s->owner, z))
                return;
        x->counted = true;
        count(x->k, x->s, name, a, x->jobs);
}

/* Adds the words of SubmitKeywords, or SumsKeywords: those that there are, since a user may write anything.
 */
static void add_words(struct adding *x, const struct submission_attribute *a, bool sums)
{
        struct str rest = a->text, word;

        if (rest.n < 2 || rest.p[0] != '"')
                return;
        rest = str_make(rest.p + 1, rest.n - 2);
        for (unsigned n = 0; n < WORDS_MAX && str_word(&rest, &word); n++) {
                BUF_CLEANUP struct buf name = {0};
                const struct keyword *k = sums ? NULL : keyword_find(word);

                if (sums && sums_is_keyword(word))
                        buf_printf(&name, SUMS_KEYWORD_PREFIX STR_FMT, STR_ARG(word));
                else if (k && k->effect == KEYWORD_ACTS && !k->attribute)
                        buf_addz(&name, k->name);
                if (name.n)
                        add(x, buf_view(&name), a);
        }
}

void keywords_add(struct keywords *k, const struct config_presets *p, const struct submission *s,
                  uint64_t jobs)
{
        struct adding x = {.k = k, .presets = p, .s = s, .seen = map_new(), .jobs = jobs};

        for (size_t i = 0; i < s->part_count && i < PARTS_MAX; i++)
                for (size_t n = 0; n < s->parts[i].attribute_count; n++) {
                        const struct submission_attribute *a = &s->parts[i].attributes[n];
                        size_t row = (size_t)(uintptr_t)map_get(k->names, a->name);

                        if (row)
                                add(&x, str_of(keywords[row - 1].name), a);
                        else if (str_ieqz(a->name, "SubmitKeywords"))
                                add_words(&x, a, false);
                        else if (str_ieqz(a->name, "SumsKeywords"))
                                add_words(&x, a, true);
                }
        if (x.counted)
                count(k, s, STR_NONE, NULL, jobs);
        map_free(x.seen);
}

uint64_t keywords_changes(const struct keywords *k)
{
        return k->changes;
}

void keywords_pack(const struct keywords *k, struct buf *out)
{
        struct str key;
        void *c;

        pack_u64(out, VERSION);
        pack_u64(out, map_count(k->by_key));
        for (size_t at = 0; map_next(k->by_key, &at, &key, &c);) {
                pack_str(out, str_of(((struct count *)c)->key));
                pack_u64(out, ((struct count *)c)->requests);
                pack_u64(out, ((struct count *)c)->jobs);
        }
}

static bool key_ok(struct str key)
{
        struct str month, owner;
        size_t rest;

        if (!str_cut(&key, '\x1f', &month) || month.n != MONTH_BYTES)
                return false;
        rest = key.n;
        return str_cut(&key, '\x1f', &owner) && owner.n < rest && !memchr(key.p, 0, key.n);
}

int keywords_unpack(struct keywords *k, struct str record, struct err *err)
{
        struct unpack u = unpack_from(record);
        bool good = unpack_u64(&u) == VERSION;
        uint64_t n = unpack_max(&u, KEYWORDS_COUNTS_MAX);

        for (; good && n > 0 && !u.bad; n--) {
                struct str key = unpack_str(&u);
                uint64_t requests = unpack_u64(&u), jobs = unpack_u64(&u);

                good = !u.bad && key_ok(key);
                if (good)
                        *count_of(k, key) = (struct count){count_of(k, key)->key, requests, jobs};
        }
        return good && unpack_done(&u) ? 0 : err_set(err, -EBADMSG, "the counts of keywords are damaged");
}

void keywords_each(const struct keywords *k, int64_t from_ms, int64_t to_ms,
                   void (*fn)(void *arg, const struct keyword_count *c), void *arg)
{
        BUF_CLEANUP struct buf from = {0}, to = {0};
        struct str key;
        void *c;

        month_print(&from, from_ms);
        month_print(&to, to_ms);
        for (size_t at = 0; map_next(k->by_key, &at, &key, &c);) {
                const struct count *x = c;
                struct keyword_count one = {.requests = x->requests, .jobs = x->jobs};

                key = str_of(x->key);
                str_cut(&key, '\x1f', &one.month);
                str_cut(&key, '\x1f', &one.owner);
                one.keyword = key;
                if (str_cmp(one.month, buf_view(&from)) >= 0 && str_cmp(one.month, buf_view(&to)) <= 0)
                        fn(arg, &one);
        }
}
