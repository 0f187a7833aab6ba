/* HTTP heads, percent encoding and chunked bodies, as the server reads them before it knows who is calling.
 */
#include <stdint.h>
#include <stdlib.h>

#include "ev/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A body in chunks must come out the same however it is cut. */
static void chunks(struct str text)
{
        BUF_CLEANUP struct buf at_once = {.max = 1 << 20}, bytewise = {.max = 1 << 20};
        struct http_chunks a = {0}, b = {0};
        size_t used, i = 0;
        struct err err;
        int r, s = 0;

        r = http_chunks_take(&a, text, &used, &at_once, &err);
        while (i < text.n && s == 0 && b.state != CHUNK_DONE) {
                /* what is not taken is given again with one byte more */
                size_t n = 1;

                do {
                        s = http_chunks_take(&b, str_make(text.p + i, n), &used, &bytewise, &err);
                } while (s == 0 && used == 0 && i + n++ < text.n);
                i += used;
                if (used == 0)
                        break;
        }
        if (r == 0 && a.state == CHUNK_DONE && (s != 0 || !str_eq(buf_view(&at_once), buf_view(&bytewise))))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct str text = str_make((const char *)data, size), decoded;
        struct http_head head;
        struct arena arena = {.max = 1 << 20};
        struct err err;
        size_t n = http_head_size(text);

        if (n > size)
                abort();
        if (n > 0 && http_head_parse(&arena, str_head(text, n), &head, &err) == 0)
                http_head_field(&head, "Host");
        http_decode(&arena, text, size % 2, &decoded);
        arena_deinit(&arena);
        chunks(n ? str_skip(text, n) : text);
        return 0;
}
