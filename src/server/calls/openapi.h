/* openapi: docs/openapi.json, built into the server. */
#pragma once
#include <stddef.h>

extern const char openapi_text[];
extern const size_t openapi_size;
