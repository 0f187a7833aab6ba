#include "base/format/json.h"

#include <math.h>
#include <stdio.h>

#include "base/format/hex.h"

static void comma(struct json *j)
{
        if (j->comma)
                buf_char(j->out, ',');
        j->comma = true;
}

void json_open(struct json *j, char bracket)
{
        comma(j);
        buf_char(j->out, bracket);
        j->comma = false;
}

void json_close(struct json *j, char bracket)
{
        buf_char(j->out, bracket);
        j->comma = true;
}

static bool is_plain(unsigned char c)
{
        return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Writes a character that needs an escape or a check. Returns its number of bytes in the input. */
static size_t escaped(struct buf *b, const unsigned char *p, size_t n)
{
        size_t len = str_utf8(str_make((const char *)p, n));

        if (len == 0)
                buf_addz(b, "\xef\xbf\xbd");
        else if (len == 2 && p[0] == 0xc2 && p[1] < 0xa0) /* control characters, too */
                buf_printf(b, "\\u%04x", p[1]);
        else if (len > 1)
                buf_add(b, p, len);
        else if (*p == '"' || *p == '\\')
                buf_add(b, (const char[]){'\\', (char)*p}, 2);
        else if (*p == '\n')
                buf_addz(b, "\\n");
        else if (*p == '\t')
                buf_addz(b, "\\t");
        else
                buf_printf(b, "\\u%04x", *p);
        return len ? len : 1;
}

static void quoted(struct buf *b, struct str s)
{
        const unsigned char *p = (const unsigned char *)s.p;
        size_t i = 0, from;

        buf_char(b, '"');
        while (i < s.n) {
                for (from = i; i < s.n && is_plain(p[i]); i++)
                        ;
                buf_add(b, p + from, i - from);
                if (i < s.n)
                        i += escaped(b, p + i, s.n - i);
        }
        buf_char(b, '"');
}

void json_keys(struct json *j, struct str key)
{
        comma(j);
        quoted(j->out, key);
        buf_char(j->out, ':');
        j->comma = false;
}

void json_key(struct json *j, const char *key)
{
        json_keys(j, str_of(key));
}

void json_str(struct json *j, struct str s)
{
        comma(j);
        quoted(j->out, s);
}

void json_strz(struct json *j, const char *z)
{
        if (z)
                json_str(j, str_of(z));
        else
                json_null(j);
}

static void number(struct buf *b, bool negative, uint64_t v)
{
        char text[24], *p = text + sizeof(text);

        do
                *--p = (char)('0' + v % 10);
        while ((v /= 10) != 0);
        if (negative)
                *--p = '-';
        buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

void json_int(struct json *j, int64_t v)
{
        comma(j);
        number(j->out, v < 0, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void json_uint(struct json *j, uint64_t v)
{
        comma(j);
        number(j->out, false, v);
}

void json_double(struct json *j, double v)
{
        char text[40];

        comma(j);
        if (!isfinite(v)) {
                buf_addz(j->out, "null");
                return;
        }
        /* The shortest of the two that reads back as the same number. */
        snprintf(text, sizeof(text), "%.15g", v);
        if (strtod(text, NULL) != v)
                snprintf(text, sizeof(text), "%.17g", v);
        buf_addz(j->out, text);
}

void json_bool(struct json *j, bool v)
{
        comma(j);
        buf_addz(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
        comma(j);
        buf_addz(j->out, "null");
}

void json_raw(struct json *j, struct str s)
{
        comma(j);
        buf_str(j->out, s);
}

void json_kstr(struct json *j, const char *key, struct str s)
{
        json_key(j, key);
        json_str(j, s);
}

void json_kstrz(struct json *j, const char *key, const char *z)
{
        json_key(j, key);
        json_strz(j, z);
}

void json_kint(struct json *j, const char *key, int64_t v)
{
        json_key(j, key);
        json_int(j, v);
}

void json_kbool(struct json *j, const char *key, bool v)
{
        json_key(j, key);
        json_bool(j, v);
}

/* ---- reading */

static int hex4(const char *p, const char *end)
{
        unsigned char b[2];

        return end - p >= 4 && hex_read(str_make(p, 4), b, 2) == 0 ? b[0] << 8 | b[1] : -1;
}

/* The escape at p, behind the backslash. Returns behind it. Half a surrogate pair becomes U+FFFD. */
static const char *add_escape(struct buf *out, const char *p, const char *end)
{
        static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
        const char *known;
        int c, low;

        if (*p != 'u') {
                known = strchr(from, *p);
                buf_char(out, known && *p ? to[known - from] : *p);
                return p + 1;
        }
        c = hex4(p + 1, end);
        if (c < 0)
                return p + 1;
        p += 5;
        if (c >= 0xd800 && c < 0xe000) {
                low = c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2, end) : -1;
                if (low >= 0xdc00 && low < 0xe000) {
                        buf_utf8(out, 0x10000u + ((uint32_t)(c - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
                        return p + 6;
                }
                c = 0xfffd;
        }
        buf_utf8(out, (uint32_t)c);
        return p;
}

void json_unescape(struct buf *out, struct str text)
{
        const char *p = text.p, *end = p + text.n;

        while (p < end) {
                const char *back = memchr(p, '\\', (size_t)(end - p));

                buf_add(out, p, (size_t)((back ? back : end) - p));
                if (!back || back + 1 >= end)
                        break;
                p = add_escape(out, back + 1, end);
        }
}
