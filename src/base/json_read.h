/* json_read: reading JSON documents, beside base/json.h, which writes them. Both have a json_null; jansson's
 * is not needed here, and its declaration gets out of the way. */
#pragma once
#define json_null jansson_json_null
#include <jansson.h>
#undef json_null
