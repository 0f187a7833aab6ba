/* unpack: one protobuf message out of untrusted bytes, with bounded memory.
 *
 * What a message may take is UNPACK_FACTOR times its bytes and UNPACK_BASE more; what needs more than that
 * was made to need it. (The densest honest messages, many ranges or items of a few bytes each, take about 20
 * times.) */
#pragma once
#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/str.h"

#define UNPACK_FACTOR 32u
#define UNPACK_BASE   65536u

/* The message lives in the arena, until arena_reset or arena_deinit, and must not be freed otherwise. NULL
 * when the bytes are not a message of that kind, or it would take too much. Resets the arena first. */
ProtobufCMessage *unpack_message(struct arena *a, const ProtobufCMessageDescriptor *kind, struct str bytes);
