/* json_read: jansson, for files that also include base/format/json.h. Both declare json_null; jansson's,
 * which is not used, is renamed. */
#pragma once
#define json_null jansson_json_null
#include <jansson.h>
#undef json_null
