/* order: what a job's place in the order is made of, as JSON members. */
#pragma once
#include "base/format/json.h"
#include "core/core.h"
#include "core/query.h"

void priority_write(struct json *j, const struct core_priority *p); /* within an object */
