#include "cli/terminal/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "cli/terminal/human.h"

/* Classes of bytes between values. Most bytes of an answer are looked up here, hence a table. */
enum { PLAIN, BLANK, QUOTE, OPEN, SHUT, MARK };
static const unsigned char meaning[256] = {
        [' '] = BLANK, ['\t'] = BLANK, ['\n'] = BLANK, ['\r'] = BLANK, ['"'] = QUOTE, ['{'] = OPEN,
        ['['] = OPEN,  ['}'] = SHUT,   [']'] = SHUT,   [','] = MARK,   [':'] = MARK,
};

static bool blank(char c)
{
        return meaning[(unsigned char)c] == BLANK;
}

/* Returns how many of the eight bytes at p come before the first quote or backslash; 8: there is none. */
static unsigned plain_bytes(const char *p)
{
        const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
        uint64_t word, quote, slash;

        memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        quote = word ^ (ones * '"');
        slash = word ^ (ones * '\\');
        /* The lowest of these bits is that of the first byte that is zero. */
        word = (((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & highs;
        return word ? (unsigned)__builtin_ctzll(word) / 8 : 8;
}

/* Returns the position after the closing quote of the string that opens at p; NULL if it is not closed. Most
 * bytes of a listing are in strings, and are looked at eight at a time. */
static const char *skip_string(const char *p, const char *end)
{
        for (p++; p < end; p++) {
                while (end - p >= 8) {
                        unsigned n = plain_bytes(p);

                        p += n;
                        if (n < 8)
                                break;
                }
                if (p >= end)
                        return NULL;
                if (*p == '"')
                        return p + 1;
                if (*p == '\\')
                        p++;
        }
        return NULL;
}

/* Returns the position after the value that begins at p (no white space before it); NULL if it is
 * incomplete. */
static const char *skip_value(const char *p, const char *end)
{
        unsigned depth = 0;

        do {
                if (p >= end)
                        return NULL;
                switch (meaning[(unsigned char)*p]) {
                case QUOTE:
                        p = skip_string(p, end);
                        if (!p)
                                return NULL;
                        break;
                case OPEN:
                        if (++depth > VIEW_DEPTH_MAX)
                                return NULL;
                        p++;
                        break;
                case SHUT:
                        if (depth == 0)
                                return NULL;
                        depth--;
                        p++;
                        break;
                case MARK:
                case BLANK:
                        if (depth == 0)
                                return NULL;
                        p++;
                        break;
                default:
                        while (p < end && meaning[(unsigned char)*p] == PLAIN)
                                p++;
                }
        } while (depth > 0);
        return p;
}

static const char *skip_blank(const char *p, const char *end)
{
        while (p < end && blank(*p))
                p++;
        return p;
}

struct view view_of(struct str text)
{
        const char *end, *from, *to;

        if (text.n == 0)
                return (struct view){STR_NONE};
        end = text.p + text.n;
        from = skip_blank(text.p, end);
        to = skip_value(from, end);
        return (struct view){to ? str_make(from, (size_t)(to - from)) : STR_NONE};
}

struct view view_open(struct str text)
{
        return (struct view){str_trim(text)};
}

enum view_type view_type(struct view v)
{
        if (v.text.n == 0)
                return VIEW_NONE;
        switch (v.text.p[0]) {
        case '{': return VIEW_OBJECT;
        case '[': return VIEW_ARRAY;
        case '"': return VIEW_STRING;
        case 't':
        case 'f': return VIEW_BOOLEAN;
        case 'n': return VIEW_NULL;
        default:
                return v.text.p[0] == '-' || (v.text.p[0] >= '0' && v.text.p[0] <= '9') ? VIEW_NUMBER
                                                                                        : VIEW_NONE;
        }
}

/* Takes one value from *p on, and the comma behind it. */
static bool take_value(const char **p, const char *end, struct view *ret)
{
        const char *from = skip_blank(*p, end), *to = skip_value(from, end);

        if (!to || to == from)
                return false;
        *ret = (struct view){str_make(from, (size_t)(to - from))};
        to = skip_blank(to, end);
        if (to < end && *to == ',')
                to++;
        *p = to;
        return true;
}

bool view_next(struct view v, size_t *at, struct view *ret_item)
{
        const char *p, *end;

        if (view_type(v) != VIEW_ARRAY)
                return false;
        p = v.text.p + (*at ? *at : 1);
        end = v.text.p + v.text.n - 1;
        if (!take_value(&p, end, ret_item))
                return false;
        *at = (size_t)(p - v.text.p);
        return true;
}

bool view_member(struct view v, size_t *at, struct str *ret_key, struct view *ret_value)
{
        const char *p, *end, *key;

        if (view_type(v) != VIEW_OBJECT)
                return false;
        end = v.text.p + v.text.n - 1;
        key = skip_blank(v.text.p + (*at ? *at : 1), end);
        if (key >= end || *key != '"' || !(p = skip_string(key, end)))
                return false;
        *ret_key = str_make(key + 1, (size_t)(p - key) - 2);
        p = skip_blank(p, end);
        if (p >= end || *p != ':')
                return false;
        p++;
        if (!take_value(&p, end, ret_value))
                return false;
        *at = (size_t)(p - v.text.p);
        return true;
}

struct view view_get(struct view v, const char *key)
{
        struct str name;
        struct view value;
        size_t at = 0;

        while (view_member(v, &at, &name, &value))
                if (str_eqz(name, key))
                        return value;
        return (struct view){STR_NONE};
}

void view_fields(struct view v, const struct view_field *fields, size_t count, void *ret)
{
        struct str key;
        struct view value;
        size_t at = 0, next = 0; /* next: the field after the one that was found last */

        while (view_member(v, &at, &key, &value))
                for (size_t i = 0; i < count; i++) {
                        size_t f = next + i < count ? next + i : next + i - count;

                        if (!str_eq(key, fields[f].key))
                                continue;
                        *(struct view *)(void *)((char *)ret + fields[f].offset) = value;
                        next = f + 1;
                        break;
                }
}

struct view view_enter(struct view v, const char *key)
{
        const char *p, *end, *name;
        struct str rest;
        size_t at = 0;

        if (view_type(v) != VIEW_OBJECT)
                return (struct view){STR_NONE};
        end = v.text.p + v.text.n - 1;
        for (;;) {
                struct view skipped;
                struct str other;

                name = skip_blank(v.text.p + (at ? at : 1), end);
                if (name >= end || *name != '"' || !(p = skip_string(name, end)))
                        return (struct view){STR_NONE};
                rest = str_make(name + 1, (size_t)(p - name) - 2);
                p = skip_blank(p, end);
                if (p >= end || *p != ':')
                        return (struct view){STR_NONE};
                p = skip_blank(p + 1, end);
                if (str_eqz(rest, key))
                        return (struct view){p < end && *p == '[' ? str_make(p, (size_t)(end - p) + 1)
                                                                  : STR_NONE};
                if (!view_member(v, &at, &other, &skipped))
                        return (struct view){STR_NONE};
        }
}

size_t view_leave(struct view v, struct view array, size_t at)
{
        const char *p, *end;

        if (view_type(array) != VIEW_ARRAY)
                return 0;
        end = v.text.p + v.text.n - 1;
        p = skip_blank(array.text.p + (at ? at : 1), end);
        if (p < end && *p == ']')
                p = skip_blank(p + 1, end);
        if (p < end && *p == ',')
                p++;
        return (size_t)(p - v.text.p);
}

bool view_true(struct view v)
{
        return str_eqz(v.text, "true");
}

int64_t view_integer(struct view v, int64_t otherwise)
{
        int64_t whole;
        double real;

        if (view_type(v) != VIEW_NUMBER)
                return otherwise;
        if (str_to_i64(v.text, &whole) == 0)
                return whole;
        if (str_to_double(v.text, &real) == 0 && real > -9e18 && real < 9e18)
                return (int64_t)real;
        return otherwise;
}

double view_real(struct view v)
{
        struct buf text BUF_CLEANUP = {0};
        double d = 0;

        view_text(v, &text);
        return str_to_double(buf_view(&text), &d) == 0 ? d : 0;
}

bool view_is(struct view v, const char *text)
{
        return view_type(v) == VIEW_STRING && str_eqz(str_make(v.text.p + 1, v.text.n - 2), text);
}

void view_text(struct view v, struct buf *out)
{
        if (!view_there(v))
                return;
        if (view_type(v) != VIEW_STRING) {
                buf_str(out, v.text);
                return;
        }
        json_unescape(out, str_make(v.text.p + 1, v.text.n - 2));
}

void view_safe(struct view v, struct buf *out)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(v, &text);
        human_safe(out, buf_view(&text));
}

void view_expression(struct view v, struct buf *out)
{
        struct buf text BUF_CLEANUP = {0};
        struct str t;

        if (view_type(v) == VIEW_STRING)
                view_text(v, &text);
        t = buf_view(&text);
        if (str_starts(t, STR("/Expr(")) && str_ends(t, STR(")/")))
                human_safe(out, str_skip(str_head(t, t.n - 2), 6));
        else
                buf_str(out, v.text);
}
