/* buf: text or bytes that grow, up to a limit.
 *
 * A buf owns its bytes. It never fails in the middle: when `max` would be passed, the buf drops what was to
 * be added, remembers `overflow`, and every later add is dropped too, so a writer adds freely and asks once
 * at the end. buf_z() is always NUL-terminated. {0} is a buf with no limit.
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"

struct buf {
        char *p;
        size_t n, cap;
        size_t max; /* bytes; 0 means no limit */
        bool overflow;
};

static inline void buf_init(struct buf *b, size_t max)
{
        *b = (struct buf){.max = max};
}
void buf_deinit(struct buf *b);             /* frees, and leaves an empty buf */
static inline void buf_reset(struct buf *b) /* empties, keeps the memory */
{
        b->n = 0;
        b->overflow = false;
}
#define BUF_CLEANUP __attribute__((cleanup(buf_deinit)))

void buf_add(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_char(struct buf *b, char c);
void buf_utf8(struct buf *b, uint32_t c); /* a character of Unicode, up to U+10FFFF, as UTF-8 */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void *buf_room(struct buf *b, size_t n);   /* room for n more bytes, or NULL on overflow; then b->n += used */
void buf_consume(struct buf *b, size_t n); /* drops the first n bytes */
void buf_truncate(struct buf *b, size_t n); /* keeps the first n bytes */

static inline struct str buf_view(const struct buf *b) /* borrowed until the next change */
{
        return str_make(b->p, b->n);
}
const char *buf_z(struct buf *b); /* the same, NUL-terminated; "" when empty */
char *buf_take(struct buf *b);    /* the bytes, NUL-terminated, now the caller's; the buf is empty */
static inline int buf_check(const struct buf *b) /* 0, or -EMSGSIZE when something was dropped */
{
        return b->overflow ? -90 : 0;
}
