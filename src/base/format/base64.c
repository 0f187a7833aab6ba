#include "base/format/base64.h"

#include <errno.h>
#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *out, struct str bytes)
{
        size_t groups = (bytes.n + 2) / 3;
        char *to = buf_room(out, groups * 4);

        if (!to)
                return;
        out->n += groups * 4;
        for (size_t i = 0; i < bytes.n; i += 3) {
                size_t left = bytes.n - i;
                uint32_t v = (uint32_t)(unsigned char)bytes.p[i] << 16;

                if (left > 1)
                        v |= (uint32_t)(unsigned char)bytes.p[i + 1] << 8;
                if (left > 2)
                        v |= (unsigned char)bytes.p[i + 2];
                *to++ = digits[v >> 18];
                *to++ = digits[v >> 12 & 63];
                *to++ = left > 1 ? digits[v >> 6 & 63] : '=';
                *to++ = left > 2 ? digits[v & 63] : '=';
        }
}

static int base64_value_of(char c)
{
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes a group of four characters. Returns its number of bytes, 1 to 3; 0: the group is invalid. */
static size_t decode_group(const char *p, unsigned char to[3])
{
        uint32_t v = 0;
        size_t pad = p[3] != '=' ? 0 : p[2] != '=' ? 1 : 2;

        for (size_t i = 0; i < 4; i++) {
                int d = i >= 4 - pad ? 0 : base64_value_of(p[i]);

                if (d < 0)
                        return 0;
                v = v << 6 | (uint32_t)d;
        }
        to[0] = (unsigned char)(v >> 16);
        to[1] = (unsigned char)(v >> 8);
        to[2] = (unsigned char)v;
        return (v & ((1u << 8 * pad) - 1)) == 0 ? 3 - pad : 0;
}

int base64_decode(struct buf *out, struct str text)
{
        size_t before = out->n;

        for (size_t i = 0; i < text.n; i += 4) {
                unsigned char bytes[3];
                size_t n = text.n - i >= 4 ? decode_group(text.p + i, bytes) : 0;

                if (n == 0 || (n < 3 && i + 4 < text.n)) {
                        buf_truncate(out, before);
                        return -EINVAL;
                }
                buf_add(out, bytes, n);
        }
        return 0;
}

/* The two alphabets differ in two digits, and in whether the last group is padded. */
void base64url_encode(struct buf *out, struct str bytes)
{
        size_t before = out->n;

        base64_encode(out, bytes);
        for (size_t i = before; i < out->n; i++)
                if (out->p[i] == '+' || out->p[i] == '/')
                        out->p[i] = out->p[i] == '+' ? '-' : '_';
        while (out->n > before && out->p[out->n - 1] == '=')
                buf_truncate(out, out->n - 1);
}

int base64url_decode(struct buf *out, struct str text)
{
        BUF_CLEANUP struct buf padded = {0};
        int r;

        for (size_t i = 0; i < text.n; i++) {
                char c = text.p[i];

                if (c == '+' || c == '/' || c == '=')
                        return -EINVAL;
                buf_char(&padded, (char)(c == '-' ? '+' : c == '_' ? '/' : c));
        }
        while (padded.n % 4)
                buf_char(&padded, '=');
        r = base64_decode(out, buf_view(&padded));
        if (padded.p)
                explicit_bzero(padded.p, padded.n); /* it may be of a token */
        return r;
}
