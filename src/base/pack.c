#include "base/pack.h"

#include <pthread.h>

void pack_u64(struct buf *b, uint64_t v)
{
        unsigned char bytes[10];
        size_t n = 0;

        if (v < 0x80) { /* most are */
                buf_char(b, (char)v);
                return;
        }
        while (v >= 0x80) {
                bytes[n++] = (unsigned char)(v | 0x80);
                v >>= 7;
        }
        bytes[n++] = (unsigned char)v;
        buf_add(b, bytes, n);
}

void pack_i64(struct buf *b, int64_t v)
{
        pack_u64(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

void pack_double(struct buf *b, double v)
{
        unsigned char bytes[8];
        uint64_t bits;

        memcpy(&bits, &v, sizeof(bits));
        for (int i = 0; i < 8; i++)
                bytes[i] = (unsigned char)(bits >> (8 * i));
        buf_add(b, bytes, sizeof(bytes));
}

void pack_str(struct buf *b, struct str s)
{
        pack_u64(b, s.n);
        buf_str(b, s);
}

uint64_t unpack_u64(struct unpack *u)
{
        uint64_t v = 0;

        for (unsigned shift = 0; shift < 64 && !u->bad && u->p < u->end; shift += 7) {
                unsigned char c = *u->p++;

                if (shift == 63 && c > 1)
                        break;
                v |= (uint64_t)(c & 0x7f) << shift;
                if (!(c & 0x80))
                        return v;
        }
        u->bad = true;
        return 0;
}

uint64_t unpack_max(struct unpack *u, uint64_t max)
{
        uint64_t v = unpack_u64(u);

        if (v <= max)
                return v;
        u->bad = true;
        return 0;
}

int64_t unpack_i64(struct unpack *u)
{
        uint64_t v = unpack_u64(u);

        return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

double unpack_double(struct unpack *u)
{
        uint64_t bits = 0;
        double v;

        if (u->bad || u->end - u->p < 8) {
                u->bad = true;
                return 0;
        }
        for (int i = 0; i < 8; i++)
                bits |= (uint64_t)*u->p++ << (8 * i);
        memcpy(&v, &bits, sizeof(v));
        return v;
}

struct str unpack_str(struct unpack *u)
{
        uint64_t n = unpack_u64(u);
        struct str s;

        if (u->bad || n > (uint64_t)(u->end - u->p)) {
                u->bad = true;
                return STR_NONE;
        }
        s = str_make((const char *)u->p, (size_t)n);
        u->p += n;
        return s;
}

static uint32_t crc_table[256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_fill(void)
{
        for (uint32_t i = 0; i < 256; i++) {
                uint32_t c = i;

                for (int k = 0; k < 8; k++)
                        c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
                crc_table[i] = c;
        }
}

static uint32_t crc_by_table(uint32_t crc, const unsigned char *b, size_t n)
{
        pthread_once(&crc_once, crc_fill);
        while (n--)
                crc = crc_table[(crc ^ *b++) & 0xff] ^ (crc >> 8);
        return crc;
}

#ifdef __x86_64__
/* The processor has an instruction for this very polynomial, ten times as fast. */
__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *b,
                                                                     size_t n)
{
        uint64_t wide = crc;

        for (; n >= 8; n -= 8, b += 8) {
                uint64_t word;

                memcpy(&word, b, sizeof(word));
                wide = __builtin_ia32_crc32di(wide, word);
        }
        crc = (uint32_t)wide;
        while (n--)
                crc = __builtin_ia32_crc32qi(crc, *b++);
        return crc;
}
#endif

uint32_t pack_crc32c(uint32_t crc, const void *p, size_t n)
{
#ifdef __x86_64__
        if (__builtin_cpu_supports("sse4.2"))
                return ~crc_by_instruction(~crc, p, n);
#endif
        return ~crc_by_table(~crc, p, n);
}
