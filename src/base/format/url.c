#include "base/format/url.h"

bool url_unreserved(unsigned char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_' || c == '~';
}

void url_escape(struct buf *out, struct str text)
{
        for (size_t i = 0; i < text.n; i++) {
                unsigned char c = (unsigned char)text.p[i];

                if (url_unreserved(c))
                        buf_char(out, (char)c);
                else
                        buf_printf(out, "%%%02X", c);
        }
}
