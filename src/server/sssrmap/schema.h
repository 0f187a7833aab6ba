/* schema: sssrmap.xsd, built into the server, which checks each message by it. */
#pragma once
#include <stddef.h>

extern const char sssrmap_schema_text[];
extern const size_t sssrmap_schema_size;
