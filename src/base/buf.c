#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(EMSGSIZE == 90, "buf_check returns -EMSGSIZE");

void buf_deinit(struct buf *b)
{
        free(b->p);
        *b = (struct buf){.max = b->max};
}

/* Always allocates one byte more than asked for, for the NUL that buf_z() and buf_take() write. */
void *buf_room(struct buf *b, size_t n)
{
        size_t want, cap;

        if (b->overflow || __builtin_add_overflow(b->n, n, &want) || (b->max && want > b->max)) {
                b->overflow = true;
                return NULL;
        }
        if (want + 1 > b->cap) {
                cap = b->cap * 2 < 64 ? 64 : b->cap * 2;
                if (cap < want + 1)
                        cap = want + 1;
                b->p = mem_realloc(b->p, cap);
                b->cap = cap;
        }
        return b->p + b->n;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
        void *to = buf_room(b, n);

        if (to && n) {
                memcpy(to, p, n);
                b->n += n;
        }
}

void buf_str(struct buf *b, struct str s)
{
        buf_add(b, s.p, s.n);
}

void buf_addz(struct buf *b, const char *z)
{
        buf_add(b, z, strlen(z));
}

void buf_char(struct buf *b, char c)
{
        char *to = buf_room(b, 1);

        if (to) {
                *to = c;
                b->n++;
        }
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
        va_list again;
        char small[256];
        int n;

        va_copy(again, ap);
        n = vsnprintf(small, sizeof(small), fmt, ap);
        if (n >= 0 && (size_t)n < sizeof(small)) {
                buf_add(b, small, (size_t)n);
        } else if (n >= 0) {
                char *to = buf_room(b, (size_t)n);

                if (to) {
                        vsnprintf(to, (size_t)n + 1, fmt, again);
                        b->n += (size_t)n;
                }
        }
        va_end(again);
}

void buf_utf8(struct buf *b, uint32_t c)
{
        if (c < 0x80) {
                buf_char(b, (char)c);
        } else if (c < 0x800) {
                buf_char(b, (char)(0xc0 | c >> 6));
                buf_char(b, (char)(0x80 | (c & 63)));
        } else if (c < 0x10000) {
                buf_char(b, (char)(0xe0 | c >> 12));
                buf_char(b, (char)(0x80 | (c >> 6 & 63)));
                buf_char(b, (char)(0x80 | (c & 63)));
        } else {
                buf_char(b, (char)(0xf0 | c >> 18));
                buf_char(b, (char)(0x80 | (c >> 12 & 63)));
                buf_char(b, (char)(0x80 | (c >> 6 & 63)));
                buf_char(b, (char)(0x80 | (c & 63)));
        }
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(b, fmt, ap);
        va_end(ap);
}

void buf_consume(struct buf *b, size_t n)
{
        if (n >= b->n) {
                b->n = 0;
                return;
        }
        memmove(b->p, b->p + n, b->n - n);
        b->n -= n;
}

void buf_truncate(struct buf *b, size_t n)
{
        if (n < b->n)
                b->n = n;
}

const char *buf_z(struct buf *b)
{
        if (!b->p)
                return "";
        b->p[b->n] = '\0';
        return b->p;
}

char *buf_take(struct buf *b)
{
        char *p = b->p ? b->p : mem_zalloc(1);

        p[b->n] = '\0';
        *b = (struct buf){.max = b->max};
        return p;
}
