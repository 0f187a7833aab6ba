/* Frames between agents and server: unpacked within bounded memory, from either side. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/drover.pb-c.h"
#include "wire/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
                if (m && protobuf_c_message_get_packed_size(m) == SIZE_MAX)
                        abort();
        }
        arena_deinit(&arena);
        return 0;
}
