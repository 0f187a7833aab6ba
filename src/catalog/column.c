/* Stored form: CRC-32C of the rest (4 bytes, little-endian), the number of values, the values (pack.h), a
 * byte with the width of a code, the codes (little-endian). */
#include "catalog/column.h"

#include <errno.h>

#include "base/pack.h"

int column_read(struct column *c, struct str stored)
{
        struct unpack u;
        const unsigned char *codes;
        uint32_t crc = 0;
        unsigned width;

        buf_reset(&c->bytes);
        buf_str(&c->bytes, stored);
        c->count = 0;
        if (stored.n < 4)
                return -EBADMSG;
        u = unpack_from(str_skip(buf_view(&c->bytes), 4));
        for (unsigned i = 0; i < 4; i++)
                crc |= (uint32_t)(unsigned char)c->bytes.p[i] << (8 * i);
        if (pack_crc32c(0, u.p, (size_t)(u.end - u.p)) != crc)
                return -EBADMSG;
        c->count = unpack_max(&u, COLUMN_FILES);
        MEM_GROW(c->values, c->cap, c->count + 1);
        for (size_t i = 1; i <= c->count; i++)
                c->values[i] = unpack_str(&u);
        width = (unsigned)(u.p < u.end ? *u.p : 0);
        if (u.bad || (width != 1 && width != 2) || (size_t)(u.end - u.p) != 1 + (size_t)width * COLUMN_FILES)
                return -EBADMSG;
        codes = u.p + 1;
        for (unsigned i = 0; i < COLUMN_FILES; i++) {
                c->codes[i] = width == 1 ? codes[i] : (uint16_t)(codes[2 * i] | codes[2 * i + 1] << 8);
                if (c->codes[i] > c->count)
                        return -EBADMSG;
        }
        return 0;
}

void column_deinit(struct column *c)
{
        for (size_t i = 0; i < c->added_count; i++)
                free(c->added[i]);
        free(c->added);
        free(c->values);
        map_free(c->numbers);
        buf_deinit(&c->bytes);
        *c = (struct column){0};
}

static size_t column_number_of(struct column *c, struct str value)
{
        uintptr_t n;

        if (!c->numbers) {
                c->numbers = map_new();
                for (size_t i = 1; i <= c->count; i++)
                        map_put(c->numbers, c->values[i], (void *)(uintptr_t)i);
        }
        n = (uintptr_t)map_get(c->numbers, value);
        if (n)
                return n;
        MEM_GROW(c->added, c->added_cap, c->added_count + 1);
        MEM_GROW(c->values, c->cap, c->count + 2);
        c->added[c->added_count] = mem_dup(value.p ? value.p : "", value.n);
        c->values[++c->count] = str_make(c->added[c->added_count++], value.n);
        map_put(c->numbers, value, (void *)(uintptr_t)c->count);
        return c->count;
}

void column_set(struct column *c, unsigned file, struct str value)
{
        c->codes[file] = (uint16_t)column_number_of(c, value);
        c->changed = true;
}

void column_unset(struct column *c, unsigned file)
{
        if (c->codes[file] == 0)
                return;
        c->codes[file] = 0;
        c->changed = true;
}

bool column_write(const struct column *c, struct buf *out)
{
        uint16_t *renumbered = mem_zalloc((c->count + 1) * sizeof(*renumbered));
        size_t start = out->n, used = 0, width;
        unsigned char *room;
        uint32_t crc;

        for (unsigned i = 0; i < COLUMN_FILES; i++)
                renumbered[c->codes[i]] = 1;
        renumbered[0] = 0;
        for (size_t i = 1; i <= c->count; i++)
                if (renumbered[i])
                        renumbered[i] = (uint16_t)++used;
        buf_add(out, "\0\0\0\0", 4);
        pack_u64(out, used);
        for (size_t i = 1; i <= c->count; i++)
                if (renumbered[i])
                        pack_str(out, c->values[i]);
        width = used < 256 ? 1 : 2;
        buf_char(out, (char)width);
        room = buf_room(out, width * COLUMN_FILES);
        for (unsigned i = 0; i < COLUMN_FILES; i++) {
                uint16_t code = renumbered[c->codes[i]];

                room[width * i] = (unsigned char)code;
                if (width == 2)
                        room[2 * i + 1] = (unsigned char)(code >> 8);
        }
        out->n += width * COLUMN_FILES;
        crc = pack_crc32c(0, out->p + start + 4, out->n - start - 4);
        for (unsigned i = 0; i < 4; i++)
                out->p[start + i] = (char)(crc >> (8 * i));
        free(renumbered);
        return used > 0;
}

void column_value_pack(struct buf *out, const struct catalog_value *v)
{
        switch (v->type) {
        case CATALOG_INTEGER:
                buf_char(out, 'i');
                pack_i64(out, v->integer);
                break;
        case CATALOG_REAL:
                buf_char(out, 'r');
                pack_double(out, v->real);
                break;
        case CATALOG_BOOLEAN: buf_addz(out, v->boolean ? "b1" : "b0"); break;
        default:
                buf_char(out, 't');
                buf_str(out, v->text);
                break;
        }
}

bool column_value_unpack(struct str stored, struct catalog_value *ret)
{
        struct unpack u;

        if (stored.n == 0)
                return false;
        u = unpack_from(str_skip(stored, 1));
        switch (stored.p[0]) {
        case 'i': *ret = (struct catalog_value){.type = CATALOG_INTEGER, .integer = unpack_i64(&u)}; break;
        case 'r': *ret = (struct catalog_value){.type = CATALOG_REAL, .real = unpack_double(&u)}; break;
        case 'b':
                *ret = (struct catalog_value){.type = CATALOG_BOOLEAN, .boolean = str_eq(stored, STR("b1"))};
                return true;
        case 't':
                *ret = (struct catalog_value){.type = CATALOG_TEXT, .text = str_skip(stored, 1)};
                return true;
        default: return false;
        }
        return unpack_done(&u);
}
