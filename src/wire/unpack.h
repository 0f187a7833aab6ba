/* unpack: unpacks one protobuf message from untrusted bytes with bounded memory.
 *
 * A message may take UNPACK_FACTOR times its bytes plus UNPACK_BASE; one that needs more was crafted. (The
 * densest honest messages, many ranges or items of a few bytes each, take about 20 times.)
 */
#pragma once
#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/str.h"

#define UNPACK_FACTOR 32u
#define UNPACK_BASE   65536u

/* Unpacks a message into the arena, where it lives until arena_reset or arena_deinit; it must not be freed
 * otherwise. Resets the arena first. Returns NULL if the bytes are not a message of that kind or it would
 * take too much memory. */
ProtobufCMessage *unpack_message(struct arena *a, const ProtobufCMessageDescriptor *kind, struct str bytes);
