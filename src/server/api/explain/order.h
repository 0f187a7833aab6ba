/* order: writes the terms of a job's priority as JSON members. */
#pragma once
#include "base/format/json.h"
#include "core/core.h"
#include "core/query.h"

void priority_write(struct json *j, const struct core_priority *p); /* writes into an open object */
