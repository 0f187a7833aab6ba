/* URLs, records, member lists, argument strings, $$() references and JSON text: what base/ reads from
 * outside. The first byte chooses. */
#include <stdint.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/job/args.h"
#include "base/job/file_id.h"
#include "base/job/match_macro.h"
#include "base/pack.h"
#include "base/set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must come back as the same text. */
static void set_again(const struct set *s)
{
        BUF_CLEANUP struct buf b = {0}, text = {0}, again = {0};
        struct unpack u;
        struct set t = {0};

        set_pack(&b, s);
        u = unpack_from(buf_view(&b));
        if (set_unpack(&t, &u) != 0 || !unpack_done(&u))
                abort();
        set_print(&text, s);
        set_print(&again, &t);
        if (!str_eq(buf_view(&text), buf_view(&again)))
                abort();
        set_deinit(&t);
}

static void args_again(struct str text, bool v2)
{
        BUF_CLEANUP struct buf joined = {0};
        ARGS_CLEANUP struct args a = {0}, b = {0};
        struct err err;

        if ((v2 ? args_split_v2(&a, text, &err) : args_split_v1(&a, text, &err)) != 0)
                return;
        args_join_v2(&joined, &a);
        if (args_split_v2(&b, buf_view(&joined), &err) != 0 || a.n != b.n)
                abort();
        for (size_t i = 0; i < a.n; i++)
                if (strcmp(a.v[i], b.v[i]) != 0)
                        abort();
}

/* A name is the name of itself, in its store; and a prefix of itself. */
static void url_again(struct str text)
{
        static const struct str prefixes[] = {
                {"https://se.lab/data/", 20}, {"root://se.lab/", 14}, {"file:///lab/", 12}};
        static const struct store_urls store = {{"lab", 3}, prefixes, 3};
        BUF_CLEANUP struct buf name = {0}, again = {0}, prefix = {0};
        size_t at, at_again;
        struct str path;

        if (!file_url(text, &store, 1, &name, &at))
                return;
        if (name.n > FILE_URL_MAX)
                return;
        if (!file_url(buf_view(&name), &store, 1, &again, &at_again) ||
            !str_eq(buf_view(&name), buf_view(&again)) || at != at_again)
                abort();
        path = buf_view(&name);
        if (!str_starts(path, STR("file:")) && str_find(path, '?') >= 0)
                path = str_head(path, (size_t)str_find(path, '?'));
        path = str_skip(path, (size_t)str_search(path, STR("://")) + 3);
        path = str_find(path, '/') < 0 ? STR_NONE : str_skip(path, (size_t)str_find(path, '/'));
        if (str_search(path, STR("/../")) >= 0)
                abort();
        if (file_prefix(buf_view(&name), &prefix) && !file_is_below(buf_view(&prefix), buf_view(&prefix)))
                abort();
}

static bool inside_itself(void *arg, struct str inside, struct buf *out)
{
        (void)arg;
        buf_str(out, inside);
        return inside.n % 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        BUF_CLEANUP struct buf out = {.max = 1 << 20};
        ARGS_CLEANUP struct args env = {0};
        struct json j = {.out = &out};
        struct set s = {0};
        struct unpack u;
        struct str text;
        struct err err;

        if (size == 0)
                return 0;
        text = str_make((const char *)data + 1, size - 1);
        switch (data[0]) {
        case 's':
                set_parse(&s, text, 1000000);
                set_again(&s);
                break;
        case 'u':
                u = unpack_from(text);
                if (set_unpack(&s, &u) == 0)
                        set_again(&s);
                break;
        case '1':
        case '2': args_again(text, data[0] == '2'); break;
        case 'e':
                args_env_v2(&env, text, &err);
                args_env_v1(&env, text, &err);
                break;
        case 'f': url_again(text); break;
        case '$': match_macro_fill(text, inside_itself, NULL, &out); break;
        case 'q': args_unquote_v2(text, &out, &err); break;
        default: json_str(&j, text);
        }
        set_deinit(&s);
        return 0;
}
