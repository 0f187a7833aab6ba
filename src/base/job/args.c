/* Words are collected in a buf and added when they end; a call that fails takes back what it had added, so
 * that the caller's args are as before. A NUL byte cannot be part of an argument and is refused. */
#include "base/job/args.h"

#include <errno.h>

#include "base/map.h"

static bool gap(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

void args_deinit(struct args *a)
{
        for (size_t i = 0; i < a->n; i++)
                free(a->v[i]);
        free(a->v);
        *a = (struct args){0};
}

void args_add(struct args *a, struct str word)
{
        MEM_GROW(a->v, a->cap, a->n + 2);
        a->v[a->n++] = str_dupz(word);
        a->v[a->n] = NULL;
}

static void drop_behind(struct args *a, size_t n)
{
        while (a->n > n) {
                free(a->v[--a->n]);
                a->v[a->n] = NULL;
        }
}

int args_add_word(void *args, struct str word, struct err *err)
{
        struct args *a = args;

        if (a->n >= ARGS_WORDS_MAX)
                return err_set(err, -EINVAL, "more than %u words", ARGS_WORDS_MAX);
        args_add(a, word);
        return 0;
}

static int add_checked(struct args *a, struct str word, struct err *err)
{
        if (a->n >= ARGS_MAX)
                return err_set(err, -E2BIG, "more than %d words", ARGS_MAX);
        if (word.n && memchr(word.p, '\0', word.n))
                return err_set(err, -EINVAL, "there is a NUL byte in it");
        args_add(a, word);
        return 0;
}

/* A word of an environment string must be NAME=value. */
static int check_assignment(struct str word, struct err *err)
{
        ptrdiff_t at = str_find(word, '=');

        if (at < 0)
                return err_set(err, -EINVAL, "'" STR_FMT "' is not NAME=value", STR_ARG(str_head(word, 80)));
        if (at == 0)
                return err_set(err, -EINVAL, "there is no name before the '=' in '" STR_FMT "'",
                               STR_ARG(str_head(word, 80)));
        return 0;
}

static int add_assignment(struct args *a, struct str word, struct err *err)
{
        int r = check_assignment(word, err);

        return r ? r : add_checked(a, word, err);
}

int args_split_v1(struct args *a, struct str text, struct err *err)
{
        size_t before = a->n, i = 0;

        while (i < text.n) {
                size_t start;
                int r;

                while (i < text.n && gap(text.p[i]))
                        i++;
                start = i;
                while (i < text.n && !gap(text.p[i]))
                        i++;
                if (i == start)
                        break;
                r = add_checked(a, str_make(text.p + start, i - start), err);
                if (r) {
                        drop_behind(a, before);
                        return r;
                }
        }
        return 0;
}

/* Takes one V2 word from the front of *rest into word. 1: a word, 0: no more, negative: an error. */
static int next_v2(struct str *rest, struct buf *word, struct err *err)
{
        struct str s = *rest;
        size_t i = 0, quote;
        bool any = false;

        buf_reset(word);
        while (i < s.n && gap(s.p[i]))
                i++;
        while (i < s.n && !gap(s.p[i])) {
                any = true;
                if (s.p[i] != '\'') {
                        buf_char(word, s.p[i++]);
                        continue;
                }
                quote = i++;
                for (;;) {
                        if (i >= s.n)
                                return err_set(err, -EINVAL,
                                               "the single quote that opens here is never closed: " STR_FMT,
                                               STR_ARG(str_head(str_skip(s, quote), 80)));
                        if (s.p[i] != '\'') {
                                buf_char(word, s.p[i++]);
                        } else if (i + 1 < s.n && s.p[i + 1] == '\'') {
                                buf_char(word, '\'');
                                i += 2;
                        } else {
                                i++;
                                break;
                        }
                }
        }
        *rest = str_skip(s, i);
        return any ? 1 : 0;
}

static int split_v2(struct args *a, struct str raw, struct err *err,
                    int (*add)(struct args *a, struct str word, struct err *err))
{
        BUF_CLEANUP struct buf word = {0};
        size_t before = a->n;
        int r;

        while ((r = next_v2(&raw, &word, err)) > 0) {
                r = add(a, buf_view(&word), err);
                if (r < 0)
                        break;
        }
        if (r < 0)
                drop_behind(a, before);
        return r;
}

int args_split_v2(struct args *a, struct str raw, struct err *err)
{
        return split_v2(a, raw, err, add_checked);
}

/* Programs differ in which one counts of a variable that is set twice; HTCondor's jobs have the last one
 * only. */
static void keep_last_assignments(struct args *a)
{
        struct map *seen = map_new();
        size_t kept = a->n;

        for (size_t i = a->n; i-- > 0;) {
                struct str word = str_of(a->v[i]);

                if (map_put(seen, str_head(word, (size_t)str_find(word, '=')), a))
                        free(a->v[i]);
                else
                        a->v[--kept] = a->v[i];
        }
        if (kept) {
                memmove(a->v, a->v + kept, (a->n - kept + 1) * sizeof(*a->v));
                a->n -= kept;
        }
        map_free(seen);
}

int args_env_v2(struct args *a, struct str raw, struct err *err)
{
        int r = split_v2(a, raw, err, add_assignment);

        if (r == 0)
                keep_last_assignments(a);
        return r;
}

/* Follows HTCondor: a newline separates assignments, too; white space is skipped before a name and kept
 * behind a value. A first character that can be a delimiter replaces ';', as in |A=1|B=2. */
int args_env_v1(struct args *a, struct str text, struct err *err)
{
        bool own = text.n && text.p[0] && strchr("!#$%&*+,-/:;<>?@^`|~\x1f", text.p[0]);
        size_t before = a->n, i = own ? 1 : 0;
        char between = own ? text.p[0] : ';';

        while (i < text.n) {
                size_t start;
                int r;

                while (i < text.n && gap(text.p[i]))
                        i++;
                start = i;
                while (i < text.n && text.p[i] != between && text.p[i] != '\n')
                        i++;
                if (i > start) {
                        r = add_assignment(a, str_make(text.p + start, i - start), err);
                        if (r) {
                                drop_behind(a, before);
                                return r;
                        }
                }
                i++;
        }
        keep_last_assignments(a);
        return 0;
}

static void join_word(struct buf *out, struct str word)
{
        bool quote = word.n == 0;

        for (size_t i = 0; i < word.n; i++)
                quote |= gap(word.p[i]) || word.p[i] == '\'';
        if (!quote) {
                buf_str(out, word);
                return;
        }
        buf_char(out, '\'');
        for (size_t i = 0; i < word.n; i++) {
                if (word.p[i] == '\'')
                        buf_char(out, '\'');
                buf_char(out, word.p[i]);
        }
        buf_char(out, '\'');
}

void args_join_v2(struct buf *out, const struct args *a)
{
        for (size_t i = 0; i < a->n; i++) {
                if (i)
                        buf_char(out, ' ');
                join_word(out, str_of(a->v[i]));
        }
}

int args_unquote_v2(struct str text, struct buf *out, struct err *err)
{
        size_t i = 1;

        text = str_trim(text);
        if (text.n == 0 || text.p[0] != '"')
                return err_set(err, -EINVAL, "a double quote is expected at the beginning");
        for (;;) {
                if (i >= text.n)
                        return err_set(err, -EINVAL, "the double quote at its beginning is never closed");
                if (text.p[i] != '"') {
                        buf_char(out, text.p[i++]);
                } else if (i + 1 < text.n && text.p[i + 1] == '"') {
                        buf_char(out, '"');
                        i += 2;
                } else {
                        break;
                }
        }
        if (i + 1 < text.n)
                return err_set(
                        err, -EINVAL,
                        "there is text behind the closing double quote (a double quote inside is written "
                        "twice): " STR_FMT,
                        STR_ARG(str_head(str_skip(text, i), 80)));
        return 0;
}
