#include "base/format/hex.h"

#include <errno.h>

int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void hex_print(char *ret, const void *bytes, size_t n)
{
        static const char digits[] = "0123456789abcdef";
        const unsigned char *b = bytes;

        for (size_t i = 0; i < n; i++) {
                *ret++ = digits[b[i] >> 4];
                *ret++ = digits[b[i] & 15];
        }
        *ret = '\0';
}

void hex_print_uuid(char ret[HEX_UUID], const unsigned char uuid[16])
{
        static const unsigned char parts[] = {4, 2, 2, 2, 6};

        for (size_t i = 0; i < sizeof(parts); i++) {
                hex_print(ret, uuid, parts[i]);
                ret += 2 * parts[i];
                uuid += parts[i];
                *ret++ = '-';
        }
        ret[-1] = '\0';
}

int hex_read(struct str text, void *ret, size_t n)
{
        unsigned char *b = ret;

        if (text.n != 2 * n)
                return -EINVAL;
        for (size_t i = 0; i < text.n; i++)
                if (hex_digit(text.p[i]) < 0)
                        return -EINVAL;
        for (size_t i = 0; i < n; i++)
                b[i] = (unsigned char)(hex_digit(text.p[2 * i]) << 4 | hex_digit(text.p[2 * i + 1]));
        return 0;
}
