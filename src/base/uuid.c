#include "base/uuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void uuid_new(char ret[UUID_TEXT])
{
        unsigned char b[16];
        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                abort();
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        snprintf(ret, UUID_TEXT, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                 b[15]);
}

bool uuid_valid(struct str text)
{
        if (text.n != UUID_TEXT - 1)
                return false;
        for (size_t i = 0; i < text.n; i++) {
                char c = text.p[i];
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;
                bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
                if (dash ? c != '-' : !hex)
                        return false;
        }
        return true;
}
