#include "base/system/uuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/format/hex.h"

void uuid_new(char ret[UUID_TEXT])
{
        unsigned char b[16];

        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                abort();
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        hex_print_uuid(ret, b);
}

bool uuid_valid(struct str text)
{
        if (text.n != UUID_TEXT - 1)
                return false;
        for (size_t i = 0; i < text.n; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;

                if (dash ? text.p[i] != '-' : hex_digit(text.p[i]) < 0)
                        return false;
        }
        return true;
}
