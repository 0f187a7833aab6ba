/* Frames between agents and server: unpacked within bounded memory, from either side. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/drover.pb-c.h"
#include "wire/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every field; and what was packed must unpack to as much. */
static void pack_again(const ProtobufCMessage *m)
{
        BUF_CLEANUP struct buf bytes = {0};
        struct arena arena = {0};
        size_t n = protobuf_c_message_get_packed_size(m);
        const ProtobufCMessage *again;

        if (protobuf_c_message_pack(m, buf_room(&bytes, n + 1)) != n)
                abort();
        bytes.n = n;
        again = unpack_message(&arena, m->descriptor, buf_view(&bytes));
        if (again && protobuf_c_message_get_packed_size(again) != n)
                abort();
        arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const ProtobufCMessageDescriptor *const kinds[] = {&drover__to_server__descriptor,
                                                           &drover__to_agent__descriptor};
        struct str bytes = str_make((const char *)data, size);
        struct arena arena = {0};

        for (size_t i = 0; i < 2; i++) {
                ProtobufCMessage *m = unpack_message(&arena, kinds[i], bytes);

                if (arena.used > UNPACK_FACTOR * size + UNPACK_BASE)
                        abort();
                if (m)
                        pack_again(m);
        }
        arena_deinit(&arena);
        return 0;
}
