#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"

static inline unsigned char fold(char c)
{
        return (c >= 'A' && c <= 'Z') ? (unsigned char)(c + 32) : (unsigned char)c;
}

static inline bool blank(char c)
{
        return c == ' ' || (c >= '\t' && c <= '\r');
}

bool str_eq(struct str a, struct str b)
{
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eqz(struct str a, const char *z)
{
        return str_eq(a, str_of(z));
}

bool str_ieq(struct str a, struct str b)
{
        if (a.n != b.n)
                return false;
        for (size_t i = 0; i < a.n; i++)
                if (fold(a.p[i]) != fold(b.p[i]))
                        return false;
        return true;
}

bool str_ieqz(struct str a, const char *z)
{
        return str_ieq(a, str_of(z));
}

int str_cmp(struct str a, struct str b)
{
        size_t n = a.n < b.n ? a.n : b.n;
        int c = n ? memcmp(a.p, b.p, n) : 0;

        return c ? c : (a.n > b.n) - (a.n < b.n);
}

int str_icmp(struct str a, struct str b)
{
        size_t n = a.n < b.n ? a.n : b.n;

        for (size_t i = 0; i < n; i++) {
                int c = fold(a.p[i]) - fold(b.p[i]);

                if (c)
                        return c;
        }
        return (a.n > b.n) - (a.n < b.n);
}

bool str_starts(struct str s, struct str prefix)
{
        return s.n >= prefix.n && str_eq(str_head(s, prefix.n), prefix);
}

bool str_istarts(struct str s, struct str prefix)
{
        return s.n >= prefix.n && str_ieq(str_head(s, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
        return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix);
}

struct str str_skip(struct str s, size_t n)
{
        n = n < s.n ? n : s.n;
        return str_make(s.p ? s.p + n : NULL, s.n - n);
}

struct str str_head(struct str s, size_t n)
{
        return str_make(s.p, n < s.n ? n : s.n);
}

struct str str_trim_left(struct str s)
{
        while (s.n && blank(s.p[0]))
                s = str_skip(s, 1);
        return s;
}

struct str str_trim(struct str s)
{
        s = str_trim_left(s);
        while (s.n && blank(s.p[s.n - 1]))
                s.n--;
        return s;
}

ptrdiff_t str_find(struct str s, char c)
{
        const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

        return at ? at - s.p : -1;
}

ptrdiff_t str_rfind(struct str s, char c)
{
        const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;

        return at ? at - s.p : -1;
}

ptrdiff_t str_search(struct str s, struct str needle)
{
        const char *at;

        if (needle.n == 0)
                return 0;
        at = s.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
        return at ? at - s.p : -1;
}

bool str_cut(struct str *rest, char sep, struct str *ret_head)
{
        ptrdiff_t at;

        if (!rest->p)
                return false;
        at = str_find(*rest, sep);
        if (at < 0) {
                *ret_head = *rest;
                *rest = STR_NONE;
        } else {
                *ret_head = str_head(*rest, (size_t)at);
                *rest = str_skip(*rest, (size_t)at + 1);
        }
        return true;
}

bool str_word(struct str *rest, struct str *ret_word)
{
        struct str s = str_trim_left(*rest);
        size_t n = 0;

        while (n < s.n && !blank(s.p[n]))
                n++;
        *rest = str_skip(s, n);
        if (n == 0)
                return false;
        *ret_word = str_head(s, n);
        return true;
}

int str_to_u64(struct str s, uint64_t *ret)
{
        uint64_t v = 0;

        if (s.n == 0)
                return -EINVAL;
        for (size_t i = 0; i < s.n; i++) {
                unsigned d = (unsigned)(s.p[i] - '0');

                if (d > 9)
                        return -EINVAL;
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, d, &v))
                        return -ERANGE;
        }
        *ret = v;
        return 0;
}

int str_to_i64(struct str s, int64_t *ret)
{
        bool minus = s.n && s.p[0] == '-';
        uint64_t v;
        int r;

        if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
                s = str_skip(s, 1);
        r = str_to_u64(s, &v);
        if (r)
                return r;
        if (v > (uint64_t)INT64_MAX + (minus ? 1 : 0))
                return -ERANGE;
        *ret = minus ? (int64_t)(0 - v) : (int64_t)v;
        return 0;
}

int str_to_double(struct str s, double *ret)
{
        char small[128], *end;
        double v;

        if (s.n == 0 || s.n >= sizeof(small) || blank(s.p[0]))
                return -EINVAL;
        memcpy(small, s.p, s.n);
        small[s.n] = '\0';
        errno = 0;
        v = strtod(small, &end);
        if (*end != '\0')
                return -EINVAL;
        if (errno == ERANGE && (v == HUGE_VAL || v == -HUGE_VAL))
                return -ERANGE;
        *ret = v;
        return 0;
}

char *str_dupz(struct str s)
{
        return mem_dup(s.p, s.n);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
        unsigned m = a < b ? a : b;

        return m < c ? m : c;
}

unsigned str_distance(struct str a, struct str b, unsigned max)
{
        unsigned char rows[3][66];
        unsigned char *before = rows[0], *above = rows[1], *row = rows[2];

        if (a.n > 64 || b.n > 64 || (a.n > b.n ? a.n - b.n : b.n - a.n) > max)
                return max + 1;
        for (size_t j = 0; j <= b.n; j++)
                above[j] = (unsigned char)j;
        for (size_t i = 1; i <= a.n; i++) {
                unsigned char *t;

                row[0] = (unsigned char)i;
                for (size_t j = 1; j <= b.n; j++) {
                        unsigned same = fold(a.p[i - 1]) == fold(b.p[j - 1]) ? 0 : 1;
                        unsigned d = min3(above[j] + 1u, row[j - 1] + 1u, above[j - 1] + same);

                        if (i > 1 && j > 1 && fold(a.p[i - 1]) == fold(b.p[j - 2]) &&
                            fold(a.p[i - 2]) == fold(b.p[j - 1]) && before[j - 2] + 1u < d)
                                d = before[j - 2] + 1u;
                        row[j] = (unsigned char)d;
                }
                t = before;
                before = above;
                above = row;
                row = t;
        }
        return above[b.n] <= max ? above[b.n] : max + 1;
}

size_t str_utf8(struct str s)
{
        const unsigned char *p = (const unsigned char *)s.p;
        size_t n = s.n, len;

        if (n == 0)
                return 0;
        len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

        if (len == 0 || len > n)
                return 0;
        for (size_t i = 1; i < len; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
            (p[0] == 0xf4 && p[1] > 0x8f))
                return 0;
        return len;
}
