#include "base/format/name.h"

#include <ctype.h>

bool name_is_queue(struct str name)
{
        for (size_t i = 0; i < name.n; i++)
                if (!isascii(name.p[i]) ||
                    (!isalnum((unsigned char)name.p[i]) && !memchr("-_.+", name.p[i], 4)))
                        return false;
        return name.n > 0 && name.n <= NAME_QUEUE_MAX;
}

bool name_is_line(struct str text, size_t max)
{
        if (text.n > max)
                return false;
        while (text.n) {
                size_t n = str_utf8(text);
                unsigned char first = (unsigned char)text.p[0];

                if (n == 0 || first < ' ' || first == 0x7f ||
                    (first == 0xc2 && (unsigned char)text.p[1] < 0xa0))
                        return false;
                text = str_skip(text, n);
        }
        return true;
}
