#include "wire/unpack.h"

static void *unpack_alloc(void *arena, size_t n)
{
        return arena_alloc(arena, n);
}

static void unpack_free(void *arena, void *p)
{
        (void)arena;
        (void)p;
}

ProtobufCMessage *unpack_message(struct arena *a, const ProtobufCMessageDescriptor *kind, struct str bytes)
{
        ProtobufCAllocator allocator = {unpack_alloc, unpack_free, a};

        arena_reset(a);
        a->max = bytes.n * UNPACK_FACTOR + UNPACK_BASE;
        return protobuf_c_message_unpack(kind, &allocator, bytes.n, (const uint8_t *)bytes.p);
}
