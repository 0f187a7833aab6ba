/* pack: the binary form of stored records: events, snapshots, history rows.
 *
 * Numbers are LEB128 varints, signed ones zigzag; strings are a length and bytes. A reader never reads beyond
 * its end: the first invalid value sets `bad`, and from then on every read returns 0 or an empty string, so a
 * decoder can read all its fields and check once. Strings are borrowed from the input.
 */
#pragma once
#include "base/buf.h"

void pack_u64(struct buf *b, uint64_t v);
void pack_i64(struct buf *b, int64_t v);
void pack_double(struct buf *b, double v);
void pack_str(struct buf *b, struct str s);

struct unpack {
        const unsigned char *p, *end;
        bool bad;
};

static inline struct unpack unpack_from(struct str s)
{
        return (struct unpack){(const unsigned char *)s.p, (const unsigned char *)s.p + s.n, false};
}
uint64_t unpack_u64(struct unpack *u);
uint64_t unpack_max(struct unpack *u, uint64_t max); /* as unpack_u64; bad if above max (and then 0) */
int64_t unpack_i64(struct unpack *u);
double unpack_double(struct unpack *u);
struct str unpack_str(struct unpack *u);
static inline bool unpack_done(const struct unpack *u) /* all was read, and nothing was bad */
{
        return !u->bad && u->p == u->end;
}

/* CRC-32C of bytes, for records on disk; start with 0 and pass the last result to go on. */
uint32_t pack_crc32c(uint32_t crc, const void *p, size_t n);
